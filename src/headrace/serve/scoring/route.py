"""`POST /v1/score/{model}`: scores of one key or many, from the very features that `/v1/features` gives.

    {"keys": [{"card": "42"}, {"card": "7"}], "request": {"amount": 12.5}, "stale": "refuse"}

`key` is one key in the place of `keys`; `request` an object for all keys or an array with one for each; `version` one
that serves, when it is not the key's to choose. Answers come in the order of the keys, all for one moment, each with
the version it is from. A key that cannot be scored has an `error` there and costs no other key its answer; when no
process of the model answers at all, the request is refused with 503.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from headrace.clock import show_time
from headrace.define.feature_set import FeatureSet
from headrace.errors import DataError, HeadraceError
from headrace.http_paths import SCORE, fixed_part
from headrace.read.feature_row import RequestValues, model_row, row_json
from headrace.read.reader import ViewValues
from headrace.serve.batch import SLICE, BatchRequest, batch_from, decoded, read_slice, refuse_too_many
from headrace.serve.body import refuse_too_large
from headrace.serve.feature_reads import Reads, refuse_stale, set_freshness, staleness
from headrace.serve.handler_context import HandlerContext
from headrace.serve.request_queue import done_within
from headrace.serve.responses import error_json, json_answer, status_of
from headrace.serve.scoring.lineup import Served
from headrace.serve.scoring.rows import RowScoring, Scorable, Scored
from headrace.serve.scoring.wire import row_of
from headrace.tiles.changelog import KeyPart

AWAY = frozenset({"model-slow", "model-down"})
"""What is said when a model's process does not answer."""
EXAMPLE = '{"key": {"card": "42"}, "request": {"amount": 12.5}}'


class ScoreBody(msgspec.Struct, forbid_unknown_fields=True):
    """A request as it comes."""

    key: Any = UNSET
    keys: list[Any] | UnsetType = UNSET
    request: msgspec.Raw = msgspec.Raw(b"{}")
    stale: str | None = None
    version: int | None = None


@dataclass(frozen=True)
class ScoreRequest:
    """A request that makes sense: which model, which of its versions, and what to read for it."""

    served: Served
    features: FeatureSet
    batch: BatchRequest
    version: int | None


_asked = msgspec.json.Decoder(ScoreBody)


async def score(context: HandlerContext, request: Request) -> Response:
    """Scores of one key or many."""
    served = context.scoring.find(request.path_params["model"])
    with context.reading_room.request() as take:
        return await _scored(context, served, await context.read_body(request, take))


async def score_body(context: HandlerContext, path: str, body: bytes) -> Response:
    """The same for a body that has come, without a router."""
    served = context.scoring.find(path.removeprefix(fixed_part(SCORE)))
    with context.reading_room.request() as take:
        refuse_too_large(body, context.limits.max_body)
        take(len(body))
        return await _scored(context, served, body)


async def _scored(context: HandlerContext, served: Served, body: bytes) -> Response:
    limits, reads = context.limits, context.reads
    wanted = wanted_of(body, served, reads, most=limits.max_keys, stale=limits.stale)
    work = partial(answers, wanted, reads, context.scoring)
    if len(wanted.batch.keys) != 1:
        scores = await context.work.reading.run(work, limits.timeout)
    else:
        # One key is read in a moment, as anywhere; how much is scored at once is each version's bound.
        scores = await (work() if context.scores_in_time else done_within(work, limits.timeout))
    return json_answer(scores)


def wanted_of(body: bytes, served: Served, reads: Reads, *, most: int, stale: str) -> ScoreRequest:
    """Read a request; what is wrong with it as a whole is refused.

    Parameters
    ----------
    most
        The most keys, counted once for each view that is read.
    stale
        What becomes of stale values when the request does not say.
    """
    asked = decoded(body, _asked, EXAMPLE)
    if (asked.key is UNSET) == (asked.keys is UNSET):
        message = "A request has a `key`, or several `keys`."
        hint = f"Send JSON such as {EXAMPLE}."
        raise DataError("bad-request", message, got="neither" if asked.key is UNSET else "both", hint=hint)
    keys = [asked.key] if isinstance(asked.keys, UnsetType) else asked.keys
    features = served.model.features
    of = (reads.find(features.name),)
    refuse_too_many(len(keys), of, most)
    batch = batch_from(of, keys, bytes(asked.request), reads, stale=staleness(asked.stale, stale))
    return ScoreRequest(served, features, batch, asked.version)


async def answers(wanted: ScoreRequest, reads: Reads, scoring: RowScoring) -> dict[str, Any]:
    """Every key's score for one moment; others have their turn in between."""
    t, found = reads.clock.now(), list[Any]()
    for start in range(0, len(wanted.batch.keys), SLICE):
        if start:
            await asyncio.sleep(0)
        found += _read(wanted, reads, start, t)
    rows = [each for each in found if isinstance(each, Scorable)]
    scored = await scoring.scored(wanted.served, rows, wanted.version)
    _refuse_away(scored)
    results = iter(scored)
    told = [_key_json(each, next(results)) if isinstance(each, Scorable) else each for each in found]
    return {
        "model": wanted.served.name,
        "at": show_time(t),
        "answers": told,
        "errors": sum("error" in each for each in told),
    }


def _read(wanted: ScoreRequest, reads: Reads, start: int, t: int) -> list[Any]:
    """The rows of a slice of keys, or the error of each."""
    batch, features = wanted.batch, wanted.features

    def row(key: Mapping[str, KeyPart], read: Mapping[str, ViewValues], requests: RequestValues) -> Scorable:
        refuse_stale(batch.of[0], read, batch.stale)
        values = model_row(features, read, requests, t)
        said = {"features": row_json(features, values), **set_freshness(read, t)}
        try:
            return Scorable(key, row_of(values.values()), said)
        except (TypeError, ValueError) as error:
            message = f"A value of feature set {features.name!r} is none that a model takes."
            raise HeadraceError("on-demand-failed", message, got=str(error)) from error

    return read_slice(batch, reads, 0, start, t, head={}, said=row)


def _refuse_away(scored: Sequence[Scored]) -> None:
    """Refuse a request of which no row was scored because no process answered: it may be asked again."""
    errors = [each.result for each in scored if isinstance(each.result, HeadraceError)]
    if errors and len(errors) == len(scored) and all(error.code in AWAY for error in errors):
        raise errors[0]


def _key_json(row: Scorable, scored: Scored) -> dict[str, Any]:
    """What is said of one key."""
    seat, result = scored.seat, scored.result
    if isinstance(result, HeadraceError):
        return {"key": dict(row.key), "error": error_json(result), "status": status_of(result)}
    taken = {} if scored.fallback_from is None else {"fallback_from": scored.fallback_from}
    return {
        "key": dict(row.key),
        "score": result,
        "decision": seat.manifest.decision(result),
        "version": seat.version,
        "role": seat.role,
        **taken,
        **row.said,
    }
