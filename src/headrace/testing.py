"""Test your features in your own CI, with late, duplicate and poison records, in milliseconds and without a JVM.

Everything here runs on the reference interpreter: what these tests say is what every engine mode computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any

from msgspec.structs import replace

from headrace.clock import DAY, MINUTE, SECOND, duration, micros
from headrace.define.dimension import Dimension, Keyed, Row, value_at
from headrace.define.dimension_rows import rows_of
from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.errors import DataError, did_you_mean, shown
from headrace.log.memory import MemoryLog
from headrace.log.record import Record
from headrace.meaning.exact import Key, Mode
from headrace.meaning.message import MessageWriter
from headrace.meaning.reference import ReferenceResult
from headrace.meaning.verdict import VERDICTS, Judgement
from headrace.plan.build import build
from headrace.plan.model import Plan
from headrace.plural import show_count
from headrace.public_calls import check_call

__all__ = ["FakeClock", "MemoryLog", "Run", "duplicate", "future", "late", "logged", "poison", "record", "run"]


class FakeClock:
    """A clock that stands still until it is told to move.

    >>> clock = FakeClock("2026-01-01T00:00:00Z")
    >>> clock.advance("5m")
    >>> clock.now()
    1767225900000000
    """

    def __init__(self, start: Any = 0) -> None:
        self._now = micros(start, "a clock's start")

    def now(self) -> int:
        """Microseconds since 1970 in UTC."""
        return self._now

    def advance(self, by: Any) -> None:
        """Move on by a duration."""
        self._now += duration(by, "a clock's step")


@check_call
def record(
    stream: Stream,
    *,
    arrived_at: Any = None,
    partition: int = 0,
    headers: Mapping[str, bytes] | None = None,
    **fields: Any,
) -> Record:
    """A record of a stream from its fields; it arrives when it happened unless told otherwise.

    Its offset is given by `run`, in the order of the list.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> record(clicks, user="ann", at="2026-01-01T00:00:00Z").value
    b'{"user":"ann","at":"2026-01-01T00:00:00Z"}'
    """
    writer = _writer(stream)
    text, (row, _) = writer.read_fields(fields)
    happened = micros(fields.get(stream.event_time), f"field {stream.event_time!r}")
    arrived = happened if arrived_at is None else micros(arrived_at, "an arrival")
    value, key = writer.value(text, row or {}), writer.key(row)
    return Record(stream.name, partition, -1, arrived, key, value, tuple((headers or {}).items()))


_writer = lru_cache(maxsize=64)(MessageWriter)


@check_call
def late(given: Record, by: Any = DAY) -> Record:
    """The same record, arriving later by a duration: a day unless told otherwise."""
    return replace(given, arrived_at=given.arrived_at + _length(by))


@check_call
def duplicate(given: Record, after: Any = SECOND) -> Record:
    """A second copy of a record, a second after the first unless told otherwise."""
    return replace(given, arrived_at=given.arrived_at + _length(after))


@check_call
def future(given: Record, by: Any = 10 * MINUTE) -> Record:
    """The same record with a producer clock that runs ahead: it arrives before it happened."""
    return replace(given, arrived_at=given.arrived_at - _length(by))


@check_call
def poison(stream: Stream, *, value: bytes = b"{not json", arrived_at: Any = 0, partition: int = 0) -> Record:
    """A record that cannot be read."""
    return Record(stream.name, partition, -1, micros(arrived_at, "an arrival"), None, value, ())


def logged(log: MemoryLog, stream: Stream) -> list[Record]:
    """All records of a stream's topic, as `run` takes them: what your producer sent.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> log = MemoryLog(clock=FakeClock("2026-01-01T00:00:00Z"))
    >>> with hr.Producer(stream=clicks, log=log) as producer:
    ...     _ = producer.send({"user": "ann", "at": "2026-01-01T00:00:00Z"})
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> run([users], logged(log, clicks)).features(users, "ann", at="2026-01-01T00:30:00Z")
    {'clicks_1h': 1}
    """
    found: list[Record] = []
    for partition, end in log.end_offsets(stream.name).items():
        at = log.start_offsets(stream.name)[partition]
        while at < end and (records := log.read(stream.name, partition, at)):
            found += records
            at = records[-1].offset + 1
    return found


def _length(by: Any) -> int:
    return by if isinstance(by, int) else duration(by)


@dataclass(frozen=True)
class Run:
    """What a list of records, and rows of dimensions, mean under some definitions."""

    outcome: ReferenceResult
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    @property
    def verdicts(self) -> dict[str, int]:
        """Counts by verdict over all streams; they add up to the records given."""
        counts = [self.outcome.verdicts(name) for name in self.outcome.judged]
        return {verdict: sum(each[verdict] for each in counts) for verdict in VERDICTS}

    @property
    def judged(self) -> list[Judgement]:
        """Every record with its verdict and the reason for it."""
        return [judged for stream in self.outcome.judged.values() for judged in stream]

    @property
    def dead_letters(self) -> list[Judgement]:
        """The records that would go to a dead-letter topic."""
        return [judged for name in self.outcome.judged for judged in self.outcome.dead_letters(name)]

    @property
    def late_output(self) -> list[Judgement]:
        """The records that would go to a late topic."""
        return [judged for name in self.outcome.judged for judged in self.outcome.late_output(name)]

    def features(
        self,
        of: Keyed | OnDemand | FeatureSet,
        key: Any = (),
        *,
        at: Any,
        mode: Mode = "as_known",
        request: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Values of a view, a dimension, an on-demand feature or a feature set.

        Parameters
        ----------
        of
            What to read.
        key
            The key's value, a tuple of them, or a dict of column to value when several views are read.
        at
            The time t: microseconds, an aware datetime or RFC 3339 text.
        mode
            "as_known" (an event counts from its arrival) or "as_happened" (from its event time).
        request
            What the caller would send, for on-demand features.
        """
        moment = (micros(at, "`at`"),)
        if isinstance(of, View | Dimension):
            return self._values(of, _key_of(of, key), moment, mode)
        wanted = of if isinstance(of, FeatureSet) else FeatureSet(of.name, (of,))
        stored = {each.name: self._values(each, _key_of(each, key), moment, mode) for each in wanted.keyed}
        made = wanted.computed(stored, lambda each, values: each.value(request or {}, values, moment[0]))
        return {
            name: made[name] if isinstance(each, OnDemand) else stored[each[0].name][name]
            for name, each in zip(wanted.columns, wanted.picked, strict=True)
        }

    def _values(self, of: Keyed, key: Key, moment: tuple[int], mode: Mode) -> dict[str, Any]:
        if isinstance(of, View):
            return self.outcome.values(of, key, moment, mode)
        if of.name not in self.tables:
            hint = f'Give them to `run`, as in tables={{"{of.name}": [...]}}; an empty list is a table without rows.'
            raise DataError("bad-dimension", f"There are no rows of dimension {of.name!r}.", hint=hint)
        found = value_at(of, self.tables[of.name], key, moment[0])
        return of.nothing if found is None else found


def _key_of(view: Keyed, key: Any) -> Key:
    kind = type(view).__name__
    if isinstance(key, Mapping):
        missing = [name for name in view.by if name not in key]
        if missing:
            raise DataError("bad-request", f"{kind} {view.name!r} needs its whole key.", got=shown(dict(key)))
        return tuple(key[name] for name in view.by)
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) != len(view.by):
        message = f"{kind} {view.name!r} is kept by {show_count(len(view.by), 'column')}."
        raise DataError("bad-request", message, got=shown(key), hint=f"In this order: {', '.join(view.by) or 'none'}.")
    return parts


@check_call
def run(
    definitions: Iterable[Any],
    records: Iterable[Record],
    tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
) -> Run:
    """Run definitions over records on the reference interpreter.

    Parameters
    ----------
    definitions
        Views, dimensions, on-demand features and feature sets.
    records
        What is in the log.
    tables
        The rows of each dimension by its name, as dicts.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> one = record(clicks, user="ann", at="2026-01-01T00:00:00Z")
    >>> result = run([users], [one, late(one), poison(clicks)])
    >>> result.verdicts["late"], result.verdicts["malformed"]
    (1, 1)
    >>> result.features(users, "ann", at="2026-01-01T00:30:00Z")
    {'clicks_1h': 1}
    >>> plans = hr.dimension("plans", "plans.parquet", by="user", fields={"user": str, "plan": str}, valid_from="since")
    >>> rows = [{"user": "ann", "plan": "gold", "since": "2026-01-01T00:00:00Z"}]
    >>> run([plans], [], tables={"plans": rows}).features(plans, "ann", at="2026-01-01T00:30:00Z")
    {'plan': 'gold'}
    """
    plan = build(definitions)
    streams = {stage.stream.name for stage in plan.admissions}
    offsets: dict[tuple[str, int], Any] = {}
    placed: list[Record] = []
    for given in records:
        if given.topic not in streams:
            message = "A record belongs to a stream that no definition reads."
            raise DataError("bad-record", message, got=shown(given.topic), hint=did_you_mean(given.topic, streams))
        counter = offsets.setdefault((given.topic, given.partition), count())
        placed.append(replace(given, offset=next(counter)) if given.offset < 0 else given)
    return Run(ReferenceResult(plan, placed), _tables(plan, tables or {}))


def _tables(plan: Plan, given: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, list[Row]]:
    known = {planned.dimension.name: planned.dimension for planned in plan.dimensions}
    for name in given:
        if name not in known:
            message = "Rows are given of a dimension that is not defined."
            raise DataError("bad-dimension", message, got=shown(name), hint=did_you_mean(name, known))
    return {name: rows_of(known[name], rows) for name, rows in given.items()}
