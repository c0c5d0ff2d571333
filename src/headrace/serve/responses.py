"""Answers over HTTP: JSON out, and one shape for every error.

What went wrong inside is told to the log, not to the caller: from status 500 on, `where` and `got` stay here. Which
errors there are is `errors`' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.errors import DiskFullError, HeadraceError
from headrace.http_paths import PAGE
from headrace.serve.limits import BusyError

FORBIDDEN = dict.fromkeys(("wrong-role", "foreign-host", "foreign-origin"), 403)
STATUSES = {"too-large": 413, "bad-encoding": 415, "too-slow": 408, "no-key": 401, "wrong-method": 405, **FORBIDDEN}
ALWAYS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
RETRY = 1
"""Seconds after which values that were too old, or not there yet, may be asked for again."""

RETRY_FULL = 5
"""Seconds after which events may be sent again that the disk had no room for."""

# Decimals are numbers with all their digits.
encode = msgspec.json.Encoder(decimal_format="number").encode


def json_answer(content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(encode(content), status, {**ALWAYS, **(headers or {})}, "application/json")


def error_json(error: HeadraceError) -> dict[str, str | None]:
    """An error as the caller sees it.

    >>> error_json(HeadraceError("internal", "The server failed.", got="a path", where="a file"))["got"]
    """
    said = error.as_json()
    return said if status_of(error) < 500 else {**said, "where": None, "got": None}


def status_of(error: HeadraceError) -> int:
    """The HTTP status of an error."""
    return STATUSES.get(error.code, error.http_status)


def error_response(request: Request, error: Exception) -> tuple[int, Mapping[str, Any], Mapping[str, str]]:
    """Status, body and headers of an error."""
    headers: Mapping[str, str] = {}
    if isinstance(error, BusyError):
        # Whatever is left of the body is not read, so the connection ends with the answer.
        later = {"retry-after": str(error.seconds), "connection": "close"}
        return error.status, error.error.as_json(), later
    if not isinstance(error, HeadraceError):
        return 500, HeadraceError("internal", "The server failed.", hint="Its log has the details.").as_json(), headers
    status = status_of(error)
    if status in (408, 413):
        headers = {"connection": "close"}
    elif status == 401:
        headers = {"www-authenticate": challenge(request.url.path)}
    elif isinstance(error, DiskFullError):
        headers = {"retry-after": str(RETRY_FULL)}
    elif error.code in ("too-stale", "lake-behind", "dimension-unread", "model-slow", "model-down"):
        headers = {"retry-after": str(RETRY)}
    return status, error_json(error), headers


def challenge(path: str) -> str:
    """How to bring a key; a browser that opens the page asks its user for one.

    >>> challenge("/v1/features/cards/42")
    'Bearer realm="headrace"'
    """
    bearer = 'Bearer realm="headrace"'
    return f'Basic realm="headrace", charset="UTF-8", {bearer}' if path == PAGE else bearer
