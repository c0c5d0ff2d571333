"""Which hosts and origins are served: what a page on the web makes a browser send is refused.

A browser sends a page's requests to this machine like its user's own. Two headers tell them apart, and no page can
change either. `Origin` names the page that sends a request, or is `null`; `Host` names the server as the browser knows
it, so a name that was bound to this machine's address afterwards (DNS rebinding) is still there. What callers may do is
in `access`.

Without API keys the host must be this machine, unless the settings let anybody in; and an origin, if there is one, must
be the server itself. With keys only requests with a password that the browser keeps are looked at: no page can send a
bearer token that it does not have.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from headrace.errors import DataError, shown
from headrace.serve.access import Access, is_loopback

_AUTHORITY = re.compile(rb"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,254}))(?::([0-9]{0,5}))?")
_ORIGIN = re.compile(rb"(https?)://([^/?#@]+)")
_PORTS = {b"http": 80, b"https": 443}


@dataclass(frozen=True)
class Callers:
    """Who is served, by the headers of a request.

    Parameters
    ----------
    access
        The API keys.
    any_host
        Whether requests to any host are served when there are no keys.

    Examples
    --------
    >>> Callers().refuse_foreign([(b"host", b"localhost:8787")])
    >>> Callers().refuse_foreign([(b"host", b"shop.example")])
    Traceback (most recent call last):
    headrace.errors.DataError: Without API keys, only requests to this machine's own names are answered.
    ...
    """

    access: Access = field(default_factory=Access)
    any_host: bool = False

    def refuse_foreign(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise `foreign-host` or `foreign-origin` for a request that is not to be answered."""
        hosts, origins, password = list[bytes](), list[bytes](), False
        for name, value in headers:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
            elif name == b"authorization":
                password = password or value[:5].lower() == b"basic"
        keys = self.access.keys
        if not (keys or self.any_host) and not (len(hosts) == 1 and is_own_host(hosts[0])):
            raise _foreign_host(hosts)
        if origins and (password or not keys) and not _is_same(hosts, origins):
            raise _foreign_origin(origins)


@lru_cache(1_024)
def is_own_host(host: bytes) -> bool:
    """Whether a `Host` header names this machine by its loopback address or as localhost, with any port.

    >>> [is_own_host(host) for host in (b"LOCALHOST.:80", b"[::1]:8787", b"127.0.0.1", b"127.0.0.1.example", b"")]
    [True, True, True, False, False]
    """
    named = _authority(host)
    return named is not None and is_loopback(named[0])


def _authority(text: bytes) -> tuple[str, int | None] | None:
    """Name and port as they are compared, or None for what is no host."""
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        return None
    address, name, port = found.groups()
    number = int(port) if port else None
    if address is None:
        return name.decode("ascii").lower().removesuffix("."), number
    try:
        written = ipaddress.IPv6Address(address.decode("ascii"))
    except ValueError:
        return None
    return str(written.ipv4_mapped or written), number


def _is_same(hosts: list[bytes], origins: list[bytes]) -> bool:
    """Whether a request is of a page that came from the very host and port it is sent to."""
    if len(hosts) != 1 or len(origins) != 1 or (found := _ORIGIN.fullmatch(origins[0])) is None:
        return False
    to, of, usual = _authority(hosts[0]), _authority(found.group(2)), _PORTS[found.group(1)]
    return to is not None and of is not None and (to[0], to[1] or usual) == (of[0], of[1] or usual)


def _foreign_host(hosts: list[bytes]) -> DataError:
    message = "Without API keys, only requests to this machine's own names are answered."
    hint = (
        "Ask for localhost or 127.0.0.1, add a key to [serve.keys], or set "
        'serve.without_keys = "anywhere" if something else stands guard.'
    )
    return DataError("foreign-host", message, got=_got("Host", hosts), hint=hint)


def _foreign_origin(origins: list[bytes]) -> DataError:
    message = "A page of another origin has no answer."
    hint = "Let the page's own server ask, or set API keys and send one as `Authorization: Bearer KEY`."
    return DataError("foreign-origin", message, got=_got("Origin", origins), hint=hint)


def _got(name: str, values: list[bytes]) -> str:
    if not values:
        return f"no {name}"
    return ", ".join(f"{name}: {shown(value.decode('latin-1'))}" for value in values[:3])
