"""On which terms callers are served: who may ask, over what, how many connections, and what is kept of it.

What cannot be kept is refused before anything listens, and by `headrace check` as far as the settings alone tell.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass, field

from headrace.clock import SECOND
from headrace.config.config import Config
from headrace.serve.access import Access, access_of, is_loopback, refuse_malformed, refuse_unprotected
from headrace.serve.origins import Callers
from headrace.serve.tls import certificate_of

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Terms:
    """Who is served and how: a field for each of the settings behind it.

    Parameters
    ----------
    max_connections
        The most connections of this process.
    idle, drain
        Seconds that a connection may be idle, and that requests have to end.
    sample
        The share of reads that are kept.
    any_host
        Whether requests to any host are served without keys.

    Examples
    --------
    >>> Terms().access.keys, Terms().sample
    ((), 0.0)
    """

    access: Access = field(default_factory=Access)
    tls: ssl.SSLContext | None = None
    max_connections: int = 4_096
    idle: float = 30.0
    drain: float = 5.0
    sample: float = 0.0
    any_host: bool = False

    @property
    def callers(self) -> Callers:
        """Who is served, by the headers of a request."""
        return Callers(self.access, self.any_host)


def terms_of(config: Config) -> Terms:
    """The terms a project sets."""
    from headrace.serve.connections import room_for_connections

    serve, access = config.serve, access_of(config)
    refuse_unprotected(config)
    tls = certificate_of(serve.certificate, serve.certificate_key)
    if access.keys and tls is None and not is_loopback(config.host):
        _logger.warning("API keys come over plain HTTP: set serve.certificate, or have a proxy that speaks https")
    most = room_for_connections(serve.max_connections)
    if most < serve.max_connections:
        _logger.warning("open files allow %d connections, not %d", most, serve.max_connections)
    any_host = serve.without_keys == "anywhere"
    return Terms(access, tls, most, serve.idle / SECOND, serve.drain / SECOND, serve.sample, any_host)


def refuse_unusable(config: Config) -> None:
    """Refuse what serving would refuse; variables and files of keys may be there only where it runs."""
    refuse_malformed(config)
    refuse_unprotected(config)
    certificate_of(config.serve.certificate, config.serve.certificate_key)
