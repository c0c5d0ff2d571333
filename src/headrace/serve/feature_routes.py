"""The handlers that read features: of one key now or at a past moment, and of many keys.

One key is read in the event loop, which takes microseconds. Many keys are read in slices, and the past in a thread.
"""

from __future__ import annotations

from functools import partial
from urllib.parse import unquote_to_bytes

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from headrace.errors import DataError, shown
from headrace.http_paths import FEATURES, FEATURES_OF_KEYS, fixed_part
from headrace.read import key as keys
from headrace.read.catalog import Readable, key_from_json
from headrace.serve import batch as batches
from headrace.serve.feature_reads import FLAG, staleness
from headrace.serve.feature_reads import values_json as told_of
from headrace.serve.handler_context import HandlerContext
from headrace.serve.past_reads import moment_of
from headrace.serve.responses import encode, json_answer
from headrace.tiles.changelog import KeyPart

_BEFORE = fixed_part(FEATURES).encode()


async def read_key(context: HandlerContext, request: Request) -> Response:
    """All features of a key."""
    reads = context.reads
    name, slash, rest = _raw_path(request).removeprefix(_BEFORE).partition(b"/")
    of = reads.find(unquote_to_bytes(name).decode("utf-8", "replace"))
    given = keys.named(request.scope.get("query_string", b""))
    stale = staleness(None if "stale" in of.by else given.pop("stale", None), context.limits.stale)
    at = None if "at" in of.by else given.pop("at", None)
    written = keys.segments(slash + rest)
    if written and given:
        raise DataError("bad-request", "A key is in the path or in the query, not in both.", got=shown(given))
    key = _key(of, written, given)
    needs = reads.requests(of)
    if needs.needed:
        hint = f'POST them to {FEATURES_OF_KEYS}, as in {{"view": ..., "keys": [...], "request": {{...}}}}.'
        message = f"Feature set {of.name!r} needs request values."
        raise DataError("bad-request", message, got=f"none of {', '.join(needs.needed)}", hint=hint)
    requests, now = needs.read(b"{}"), context.work.clock.now()
    if at is None:
        return json_answer(reads.answer(of, key, requests, now, stale))
    moment = moment_of(at, now)
    # It takes a while, so it has a thread and a slot.
    work = partial(run_in_threadpool, context.past.read, of, key, moment)
    answers = await context.work.reading.run(work, context.limits.timeout)
    return json_answer(told_of(of, key, answers, requests, moment, stale))


def read_at_once(context: HandlerContext, path: bytes) -> bytes | None:
    """The body of the answer for a key of a view; None for all other paths, and for those that are to be refused."""
    name, slash, rest = path.removeprefix(_BEFORE).partition(b"/")
    of = context.flagged_views.get(name)
    if of is None:
        return None
    try:
        key = _key(of, keys.segments(slash + rest), {})
        return encode(context.reads.answer(of, key, {}, context.work.clock.now(), FLAG))
    except Exception:
        # It is answered again, in the way that says why.
        return None


async def read_keys(context: HandlerContext, request: Request) -> Response:
    """All features of many keys."""
    limits, reads = context.limits, context.reads
    with context.reading_room.request() as take:
        body = await context.read_body(request, take)
        work = partial(batches.answers, batches.batch_of(body, reads, most=limits.max_keys, stale=limits.stale), reads)
        return json_answer(await context.work.reading.run(work, limits.timeout))


def _key(of: Readable, written: list[str], given: dict[str, str]) -> dict[str, KeyPart]:
    """A key from the path or the query, by the names of its columns."""
    if of.feature_set is not None:
        return key_from_json(of, dict(given) if given or not written else list(written))
    if len(written) == len(of.by):
        return {name: keys.part_of(name, of.types[name], text) for name, text in zip(of.by, written, strict=True)}
    (view,) = of.views
    key = keys.key_of(view, written) if written or not given else keys.key_of_names(view, given)
    return dict(zip(view.by, key, strict=True))


def _raw_path(request: Request) -> bytes:
    """The path as it was sent: in the decoded one a slash inside a key looks like one between two."""
    raw: bytes = request.scope["raw_path"]
    return raw.partition(b"?")[0]
