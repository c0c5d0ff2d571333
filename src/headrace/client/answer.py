"""What the service says, as values or as errors.

Given a view by name, values are what JSON has: timestamps are text and decimals floats. Given the view itself, they are
of the features' types: aware datetimes, `decimal.Decimal` with all digits.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.client.wire import Reply
from headrace.errors import CODES, DataError, HeadraceError, MachineError, ProjectError, shown

if TYPE_CHECKING:
    from headrace.define.view import View
    from headrace.schema.types import Type

HINT = "Is this the address of Headrace's serving process, and of a version that speaks the same way?"
_CLASSES: Mapping[int, type[HeadraceError]] = {
    **dict.fromkeys((400, 405, 413, 415), DataError),
    404: ProjectError,
    **dict.fromkeys((429, 502, 503, 504), MachineError),
}


class Answer(msgspec.Struct, frozen=True):
    """The features of one key, and how fresh they are.

    Parameters
    ----------
    features
        Every value by name; None means that there is nothing to measure.
    at
        The time the values are for: the server's clock.
    as_of
        All that had arrived before is included; None when the pipeline has not said anything yet.
    freshness_ms
        Milliseconds from `as_of` to `at`.
    missing
        Whether there is nothing of this key at all.
    stale
        Whether the freshness exceeds the view's `max_staleness`, or is not known.
    mode
        How the tiles are computed: `micro-batch` or `real-time`.

    Examples
    --------
    >>> body = b'''{"view": "users", "key": {"user": "ann"}, "features": {"clicks_1h": 2}, "mode": "micro-batch",
    ... "at": "2026-01-01T00:00:01Z", "as_of": "2026-01-01T00:00:00Z", "freshness_ms": 1000, "missing": false,
    ... "stale": false}'''
    >>> answer = answer_of(Reply(200, body), "users")
    >>> answer.features["clicks_1h"], answer.as_of.isoformat(), answer.stale
    (2, '2026-01-01T00:00:00+00:00', False)
    """

    view: str
    key: dict[str, Any]
    features: dict[str, Any]
    at: datetime
    as_of: datetime | None
    freshness_ms: float | None
    missing: bool
    stale: bool
    mode: str


class Ready(msgspec.Struct, frozen=True):
    """Whether values can be served, and what is waited for; true when it is ready.

    >>> bool(Ready(False, ("pipeline",)))
    False
    """

    ready: bool
    waiting_for: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.ready


class Place(msgspec.Struct, frozen=True):
    """Where an event went, and when it arrived."""

    partition: int
    offset: int
    arrived_at: datetime | None


class _Positions(msgspec.Struct):
    positions: list[Place]


_plain = msgspec.json.Decoder(Answer)
_exact = msgspec.json.Decoder(Answer, float_hook=decimal.Decimal)
_positions = msgspec.json.Decoder(_Positions)


def answer_of(reply: Reply, view: str | View) -> Answer:
    """The answer to a read; an error of the server's is raised."""
    refuse(reply)
    try:
        if isinstance(view, str):
            return _plain.decode(reply.body)
        told, types = _exact.decode(reply.body), {feature.name: feature.type for feature in view.features}
        read = {name: _typed(types.get(name), value) for name, value in told.features.items()}
        return msgspec.structs.replace(told, features=read)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise _strange(reply, str(error)) from error


def places_of(reply: Reply) -> list[Place]:
    """Where events went."""
    refuse(reply)
    try:
        return _positions.decode(reply.body).positions
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _strange(reply, str(error)) from error


def ready_of(reply: Reply) -> Ready:
    """Readiness, which is an answer whichever way it goes."""
    told = _object(reply)
    if reply.status not in (200, 503) or not isinstance(told.get("ready"), bool):
        refuse(reply)
        raise _strange(reply, "it does not say whether it is ready")
    return Ready(told["ready"], tuple(name for name, there in told.items() if name != "ready" and there is False))


def object_of(reply: Reply) -> dict[str, Any]:
    """A JSON object; an error of the server's is raised."""
    refuse(reply)
    return _object(reply)


def refuse(reply: Reply) -> None:
    """Raise what the server refused with, in its own words."""
    if 200 <= reply.status < 300:
        return
    told = _object(reply).get("error")
    if not isinstance(told, dict) or str(told.get("code")) not in CODES:
        raise _strange(reply, None)
    got, hint, where = (None if (text := told.get(name)) is None else str(text) for name in ("got", "hint", "where"))
    kind = _CLASSES.get(reply.status, HeadraceError)
    raise kind(told["code"], str(told.get("message")), got=got, hint=hint, where=where)


def _object(reply: Reply) -> dict[str, Any]:
    try:
        return msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _strange(reply, str(error)) from error


def _strange(reply: Reply, why: str | None) -> HeadraceError:
    body = shown(reply.body[:2_000].decode("utf-8", "replace"))
    got = body if why is None else f"{body}: {shown(why)}"
    kind = MachineError if reply.status in (502, 503, 504) else HeadraceError
    message = f"Serving answered with HTTP status {reply.status}, not as it should."
    return kind("no-answer", message, got=got, hint=HINT)


def _typed(kind: Type | None, value: Any) -> Any:
    """A value as JSON has it, its floats as decimals, in the type of its feature; of an unknown one, as if by name."""
    from headrace.schema.types import Decimal, List, Struct, Timestamp

    match kind, value:
        case _, None:
            return None
        case Timestamp(), _:
            return datetime.fromisoformat(value)
        case Decimal(), _:
            return decimal.Decimal(value)
        case List(element), _:
            return [_typed(element, each) for each in value]
        case Struct(fields), _:
            types = {field.name: field.type for field in fields}
            return {name: _typed(types.get(name), each) for name, each in value.items()}
        case _, decimal.Decimal():
            return float(value)
        case _, list():
            return [_typed(None, each) for each in value]
        case _, dict():
            return {name: _typed(None, each) for name, each in value.items()}
    return value
