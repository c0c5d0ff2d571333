"""On which terms callers are served: who may ask, over what, how many connections, and what is kept of it.

What cannot be kept is refused before anything listens, and by `headrace check` as far as the settings alone tell.
"""

from __future__ import annotations

import logging
import math
import ssl
from dataclasses import dataclass, field, replace

from headrace.config.config import Config
from headrace.config.serve_settings import DEFAULTS, ServeSettings
from headrace.serve.access import Access, access_of, is_loopback, refuse_malformed, refuse_unprotected
from headrace.serve.origins import Callers
from headrace.serve.tls import certificate_of

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerOptions:
    """Who is served and how.

    Parameters
    ----------
    access
        The API keys, and what each may do.
    tls
        The certificate to serve over https; None to serve over http.
    settings
        The section [serve]; `max_connections` is what this process may have open.

    Examples
    --------
    >>> ServerOptions().access.keys, ServerOptions().settings.max_keys
    ((), 1000)
    """

    access: Access = field(default_factory=Access)
    tls: ssl.SSLContext | None = None
    settings: ServeSettings = DEFAULTS

    @property
    def callers(self) -> Callers:
        """Who is served, by the headers of a request."""
        return Callers(self.access, self.settings.without_keys == "anywhere")


def terms_of(config: Config, workers: int = 1) -> ServerOptions:
    """The terms a project sets, for one of so many processes that share the connections."""
    from headrace.serve.connections import room_for_connections

    serve, access = config.serve, access_of(config)
    refuse_unprotected(config)
    tls = certificate_of(serve.certificate, serve.certificate_key)
    if access.keys and tls is None and not is_loopback(serve.host):
        _logger.warning("API keys come over plain HTTP: set serve.certificate, or have a proxy that speaks https")
    most = room_for_connections(serve.max_connections)
    if most < serve.max_connections:
        _logger.warning("open files allow %d connections, not %d", most, serve.max_connections)
    return ServerOptions(access, tls, replace(serve, max_connections=math.ceil(most / workers)))


def refuse_unusable(config: Config) -> None:
    """Refuse what serving would refuse; variables and files of keys may be there only where it runs."""
    refuse_malformed(config)
    refuse_unprotected(config)
    certificate_of(config.serve.certificate, config.serve.certificate_key)
