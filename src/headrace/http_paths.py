"""The paths of the HTTP interface, each written once: routes, the OpenAPI document and the client read them.

A part in braces is filled in. `{key:path}` stands for all that follows, slashes included, or for nothing.
"""

from __future__ import annotations

from urllib.parse import quote

FEATURES = "/v1/features/{view}/{key:path}"
FEATURES_OF_KEYS = "/v1/features"
SCORE = "/v1/score/{model}"
EVENTS = "/v1/events/{stream}"
OPENAPI = "/openapi.json"
METRICS = "/metrics"
HEALTH = "/health"
READY = "/ready"
STATUS = "/status.json"
PAGE = "/"


def fixed_part(path: str) -> str:
    """What a path begins with, whatever is filled in.

    >>> fixed_part(EVENTS), fixed_part(READY)
    ('/v1/events/', '/ready')
    """
    return path.partition("{")[0]


def fill_path(path: str, *parts: str) -> str:
    """A path with its parts filled in, in their order; a slash inside a part is `%2F`.

    >>> fill_path(EVENTS, "payments"), fill_path(FEATURES, "cards", "a/b"), fill_path(FEATURES, "everyone")
    ('/v1/events/payments', '/v1/features/cards/a%2Fb', '/v1/features/everyone')
    """
    return fixed_part(path) + "/".join(quote(part, safe="") for part in parts)
