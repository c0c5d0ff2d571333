"""A request's body: read up to the limit and no further, decompressed up to the limit, and cut into events.

Compressed bodies are bounded twice, as they come and as they are: a few kilobytes can become gigabytes. What an event
means is `events`' business.
"""

from __future__ import annotations

import threading
import zlib

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from headrace.errors import DataError, shown
from headrace.plural import show_count
from headrace.serve.limits import Take

LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
"""Content types that say: one event a line."""
JSON = "application/json"
"""The content type that says: one event, or an array of them."""

MOST_EVENTS = 100_000
USUAL_RATIO = 16
"""How much larger JSON usually is than its gzip, generously: so much room is taken before it is known."""
MOST_MEMBERS = 1_000
"""Members of a gzip body. Each costs some work of its own, and an empty one is of 20 bytes."""
STEP = 64 * 1024
"""Bytes of gzip that are decompressed at once; between two steps it is seen whether the request has ended."""
_GZIP = 16 + zlib.MAX_WBITS
_array = msgspec.json.Decoder(list[msgspec.Raw])


async def read_body(request: Request, limit: int, take: Take) -> bytes:
    """The body as the producer meant it. Refused as soon as it is known to be too large, the rest unread."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        hint = "Send the body as it is, or with Content-Encoding: gzip."
        message = "The body's content encoding is not one the server reads."
        raise DataError("bad-encoding", message, got=shown(encoding), hint=hint)
    sent = await _received(request, limit, take)
    if encoding == "identity":
        return sent
    guess = min(limit, USUAL_RATIO * len(sent))
    take(guess)
    plain = await _unzip(sent, guess)
    if plain is None and guess < limit:
        take(limit - guess)
        plain = await _unzip(sent, limit)
    if plain is None:
        raise too_large(limit, f"more than {show_count(limit, 'byte')} from {len(sent):,} of gzip")
    return plain


async def _received(request: Request, limit: int, take: Take) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) > 18:
        raise too_large(limit, f"{shown(declared)} bytes")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large(limit, show_count(int(declared), "byte"))
    body = bytearray()
    async for chunk in request.stream():
        if len(body) + len(chunk) > limit:
            raise too_large(limit, f"more than {show_count(limit, 'byte')}")
        take(len(chunk))
        body += chunk
    return bytes(body)


def refuse_too_large(body: bytes, limit: int) -> None:
    """Refuse a body beyond the limit."""
    if len(body) > limit:
        raise too_large(limit, show_count(len(body), "byte"))


def too_large(limit: int, got: str) -> DataError:
    """The error for a body beyond the limit."""
    hint = "Send fewer events at a time, or raise serve.max_body."
    return DataError("too-large", f"A request's body takes at most {show_count(limit, 'byte')}.", got=got, hint=hint)


async def _unzip(sent: bytes, limit: int) -> bytes | None:
    """Decompress in a thread, whose work ends with the request."""
    ended = threading.Event()
    try:
        return await run_in_threadpool(unzipped, sent, limit, ended)
    finally:
        ended.set()


def unzipped(body: bytes, limit: int, ended: threading.Event | None = None) -> bytes | None:
    """What a gzip body holds, all its members; None when that is more than `limit` bytes, or nobody waits for it.

    Parameters
    ----------
    ended
        Is set when the request has ended: then nothing more is decompressed.

    Examples
    --------
    >>> import gzip
    >>> unzipped(gzip.compress(b"ab") + gzip.compress(b"c"), 3), unzipped(gzip.compress(b"abcd"), 3)
    (b'abc', None)
    """
    plain, sent, at, members = bytearray(), memoryview(body), 0, 0
    while at < len(sent):
        if members == MOST_MEMBERS:
            hint = "Compress the events of a request together."
            message = f"A gzip body has at most {MOST_MEMBERS:,} members."
            raise DataError("bad-encoding", message, hint=hint)
        member, members = zlib.decompressobj(_GZIP), members + 1
        while not member.eof:
            if ended is not None and ended.is_set():
                return None
            part = sent[at : at + STEP]
            if not part:
                raise _no_gzip("it ends in the middle")
            try:
                plain += member.decompress(part, limit + 1 - len(plain))
            except zlib.error as error:
                raise _no_gzip(str(error)) from None
            if len(plain) > limit:
                return None
            # What follows a member was copied, which is why it is never more than a step.
            at += len(part) - len(member.unused_data)
    return bytes(plain)


def _no_gzip(why: str) -> DataError:
    hint = "Send it whole, or without Content-Encoding."
    return DataError(
        "bad-encoding", "The body is not gzip, though its Content-Encoding says so.", got=shown(why), hint=hint
    )


def events_of(body: bytes, content_type: str) -> list[bytes]:
    r"""The events of a body: lines, the elements of an array, or the whole of it.

    Examples
    --------
    >>> events_of(b'{"a": 1}\r\n\n{"a": 2}', "application/x-ndjson")
    [b'{"a": 1}', b'{"a": 2}']
    >>> events_of(b'[{"a": 1}, {"a":2}]', "application/json; charset=utf-8")
    [b'{"a": 1}', b'{"a":2}']
    >>> events_of(b'[{"a": 1}]', "")
    [b'[{"a": 1}]']
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in LINES:
        _refuse_too_many(body.count(b"\n"))
        found = [line for each in body.split(b"\n") if (line := each.strip(b" \t\r"))]
    elif kind == JSON and body.lstrip(b" \t\r\n")[:1] == b"[":
        found = _elements(body)
    else:
        found = [body]
    _refuse_too_many(len(found))
    return found


def _elements(body: bytes) -> list[bytes]:
    try:
        return [bytes(element) for element in _array.decode(body)]
    except (msgspec.DecodeError, RecursionError) as error:
        hint = "Nothing was appended. Events with mistakes in them are told apart when they are sent as JSON lines."
        raise DataError("bad-record", "The array of events is not JSON.", got=shown(str(error)), hint=hint) from None


def _refuse_too_many(count: int) -> None:
    if count > MOST_EVENTS:
        message, hint = f"A request takes at most {MOST_EVENTS:,} events.", "Send fewer events at a time."
        raise DataError("too-large", message, got=show_count(count, "event"), hint=hint)
