"""What the service says, as values or as errors.

Given a view by name, values are what JSON has: timestamps are text and decimals floats. Given the view itself, they are
of the features' types: aware datetimes, `decimal.Decimal` with all digits.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from headrace.client.connection import Reply
from headrace.client.typed_values import typed, types_of
from headrace.errors import CODES, DataError, DiskFullError, HeadraceError, MachineError, ProjectError, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.define.dimension import Keyed
    from headrace.define.feature_set import FeatureSet
    from headrace.types.field_types import Type

HINT = "Is this the address of Headrace's serving process, and of a version that speaks the same way?"
_CLASSES: Mapping[int, type[HeadraceError]] = {
    **dict.fromkeys((400, 401, 403, 405, 408, 413, 415), DataError),
    404: ProjectError,
    **dict.fromkeys((429, 502, 503, 504), MachineError),
    507: DiskFullError,
}


class FeatureAnswer(msgspec.Struct, frozen=True):
    """The features of one key, and how fresh they are.

    Parameters
    ----------
    view
        The name of the view or feature set.
    features
        Every value by name; None means that there is nothing to measure.
    at
        The time the values are for: the server's clock.
    as_of
        All that was on time and had arrived before is included; None when the pipeline has not said anything yet.
    late_as_of
        All that had arrived before is included, late events too; None when nothing is known of the late lane.
    freshness_ms
        Milliseconds from `as_of` to `at`.
    missing
        Whether there is nothing of this key at all.
    stale
        Whether the freshness exceeds the view's `max_staleness`, or is not known.
    mode
        How it was computed: `micro-batch`, `real-time`, `lake` for a past moment, or `table` for a dimension.

    Examples
    --------
    >>> body = b'''{"view": "users", "key": {"user": "ann"}, "features": {"clicks_1h": 2}, "mode": "micro-batch",
    ... "at": "2026-01-01T00:00:01Z", "as_of": "2026-01-01T00:00:00Z", "late_as_of": null, "freshness_ms": 1000,
    ... "missing": false, "stale": false}'''
    >>> answer = answer_of(Reply(200, body), "users")
    >>> answer.features["clicks_1h"], answer.as_of.isoformat(), answer.stale
    (2, '2026-01-01T00:00:00+00:00', False)
    """

    view: str
    key: dict[str, Any]
    features: dict[str, Any]
    at: datetime
    as_of: datetime | None
    late_as_of: datetime | None
    freshness_ms: float | None
    missing: bool
    stale: bool
    mode: str


@dataclass(frozen=True)
class Refused:
    """A key of several that was not answered, and why; the others were.

    >>> Refused("users", {"user": "ann"}, DataError("bad-request", "The key is none.")).error.code
    'bad-request'
    """

    view: str
    key: Any
    error: HeadraceError


class Readiness(msgspec.Struct, frozen=True):
    """Whether values can be served, and what is waited for; true when it is ready.

    >>> bool(Readiness(False, ("pipeline",)))
    False
    """

    ready: bool
    waiting_for: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.ready


class EventPosition(msgspec.Struct, frozen=True):
    """Where an event went, and when it arrived."""

    partition: int
    offset: int
    arrived_at: datetime | None


class _KeyAnswer(msgspec.Struct):
    """An answer of several, or the error in its place."""

    key: Any
    view: str | None = None
    features: dict[str, Any] | UnsetType = UNSET
    at: datetime | UnsetType = UNSET
    as_of: datetime | UnsetType | None = UNSET
    late_as_of: datetime | UnsetType | None = UNSET
    freshness_ms: float | UnsetType | None = UNSET
    missing: bool | UnsetType = UNSET
    stale: bool | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    error: dict[str, str | None] | None = None
    status: int = 500


class _Several(msgspec.Struct):
    answers: list[_KeyAnswer]


class _RawSeveral(msgspec.Struct):
    answers: list[msgspec.Raw]


class _Positions(msgspec.Struct):
    positions: list[EventPosition]


_plain, _exact = msgspec.json.Decoder(_KeyAnswer), msgspec.json.Decoder(_KeyAnswer, float_hook=decimal.Decimal)
_plain_several = msgspec.json.Decoder(_Several)
_exact_several = msgspec.json.Decoder(_Several, float_hook=decimal.Decimal)
_raw_several = msgspec.json.Decoder(_RawSeveral)
_positions = msgspec.json.Decoder(_Positions)


def answer_of(reply: Reply, of: str | Keyed | FeatureSet) -> FeatureAnswer:
    """The answer to a read; an error of the server's is raised."""
    refuse(reply)
    try:
        told = (_plain if isinstance(of, str) else _exact).decode(reply.body)
        return _answer(told, None if isinstance(of, str) else types_of(of))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise strange(reply, str(error)) from error


def answers_of(reply: Reply, of: str | Keyed | FeatureSet, count: int) -> list[FeatureAnswer | Refused]:
    """The answers to a read of several keys; an error of the whole request is raised."""
    refuse(reply)
    try:
        told = (_plain_several if isinstance(of, str) else _exact_several).decode(reply.body).answers
        types = None if isinstance(of, str) else types_of(of)
        found = [_answer(one, types) if one.error is None else _refused(one, one.error) for one in told]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise strange(reply, str(error)) from error
    if len(found) != count:
        raise strange(reply, f"{show_count(len(found), 'answer')} for {show_count(count, 'key')}")
    return found


def only_answer(reply: Reply) -> bytes:
    """The JSON of the one answer in a reply, as the server wrote it.

    >>> only_answer(Reply(200, b'{"at": "now", "answers": [{"features": {"spend_1h": 1.50}}]}'))
    b'{"features": {"spend_1h": 1.50}}'
    """
    (found,) = _raw_several.decode(reply.body).answers
    return bytes(found)


def _answer(told: _KeyAnswer, types: Mapping[str, Type] | None) -> FeatureAnswer:
    parts = {name: getattr(told, name) for name in FeatureAnswer.__struct_fields__}
    absent = [name for name, part in parts.items() if part is UNSET]
    if absent or parts["view"] is None or not isinstance(told.key, dict):
        raise ValueError(f"it is no answer: {', '.join(absent) or 'view and key'}")
    if types is not None:
        parts["features"] = {name: typed(types.get(name), value) for name, value in parts["features"].items()}
    return FeatureAnswer(**parts)


def _refused(told: _KeyAnswer, said: Mapping[str, str | None]) -> Refused:
    return Refused(told.view or "", told.key, error_of(told.status, said))


def places_of(reply: Reply) -> list[EventPosition]:
    """Where events went."""
    refuse(reply)
    try:
        return _positions.decode(reply.body).positions
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise strange(reply, str(error)) from error


def ready_of(reply: Reply) -> Readiness:
    """Readiness, which is an answer whichever way it goes."""
    told = _object(reply)
    if reply.status not in (200, 503) or not isinstance(told.get("ready"), bool):
        refuse(reply)
        raise strange(reply, "it does not say whether it is ready")
    waiting = [name for name, there in told.items() if name != "ready" and there is False]
    # A server that ends waits for nothing: another one will be there.
    draining = ["another server"] if told.get("draining") is True else []
    return Readiness(told["ready"], tuple(waiting + draining))


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
        raise strange(reply, None)
    raise error_of(reply.status, told)


def error_of(status: int, told: Mapping[str, Any]) -> HeadraceError:
    """An error in the server's own words."""
    got, hint, where = (None if (text := told.get(name)) is None else str(text) for name in ("got", "hint", "where"))
    kind = _CLASSES.get(status, HeadraceError)
    return kind(str(told["code"]), str(told.get("message")), got=got, hint=hint, where=where)


def _object(reply: Reply) -> dict[str, Any]:
    try:
        return msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise strange(reply, str(error)) from error


def strange(reply: Reply, why: str | None) -> HeadraceError:
    """An answer that is none of Headrace's."""
    body = shown(reply.body[:2_000].decode("utf-8", "replace"))
    got = body if why is None else f"{body}: {shown(why)}"
    kind = MachineError if reply.status in (502, 503, 504) else HeadraceError
    message = f"Serving answered with HTTP status {reply.status}, not as it should."
    return kind("no-answer", message, got=got, hint=HINT)
