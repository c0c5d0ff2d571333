"""The verdict of a record, in plain Python: exactly one each, from facts in the log alone.

Tested in this order: malformed, invalid, future, late, duplicate, admitted. The order records are handed in does not
matter: they are judged by (arrived_at, partition, offset).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.clock import SECOND, parse_timestamp
from headrace.define.stream import Stream
from headrace.log.record import Record
from headrace.schema.json import decoder

VERDICTS = ("malformed", "invalid", "future", "late", "duplicate", "admitted")
DEAD = ("malformed", "invalid", "future")

Place = tuple[int, int, int]
"""(arrived_at, partition, offset): the order in which things became known."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a record that could be read says, and where it stands."""

    row: Mapping[str, Any]
    event_time: int
    event_id: str
    place: Place

    @property
    def arrived_at(self) -> int:
        """When it became known."""
        return self.place[0]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A record's one verdict, why, and the event it carries when it could be read."""

    record: Record
    place: Place
    verdict: str
    reason: str | None = None
    event: Event | None = None
    first: Place | None = None
    conflict: bool = False

    @property
    def contributes(self) -> bool:
        """Whether the event counts where its lane is read: admitted, or late and not seen before."""
        return self.verdict == "admitted" or (self.verdict == "late" and self.first is None)


def judge(stream: Stream, records: Iterable[Record]) -> list[Judgement]:
    """Every record's verdict, in the order in which the records became known."""
    read = _reader(stream)
    readings = sorted((read(record) for record in records), key=lambda judged: judged.place)
    seen: dict[tuple[str, int], Judgement] = {}
    return [_against_copies(judged, seen) for judged in readings]


def _against_copies(judged: Judgement, seen: dict[tuple[str, int], Judgement]) -> Judgement:
    """A copy of something already present is a duplicate; a late copy stays late but never contributes."""
    event = judged.event
    if event is None or judged.verdict not in ("late", "admitted"):
        return judged
    first = seen.setdefault((event.event_id, event.event_time), judged)
    if first is judged or first.event is None:
        return judged
    verdict = "late" if judged.verdict == "late" else "duplicate"
    reason = f"a copy of partition {first.place[1]}, offset {first.place[2]}"
    conflict = first.event.row != event.row
    return Judgement(judged.record, judged.place, verdict, reason, event, first.place, conflict)


def _reader(stream: Stream) -> Callable[[Record], Judgement]:
    """A function that gives a record its verdict as far as the record alone decides it."""
    decode = decoder(stream.schema)
    checks = [(name, check.python()) for name, check in stream.checks]
    time_field, id_field = stream.event_time, stream.event_id
    lateness, skew, stored = (
        stream.allowed_lateness,
        stream.max_clock_skew,
        stream.arrival.source in ("log", "producer"),
    )

    def read(record: Record) -> Judgement:
        place = (record.arrived_at, record.partition, record.offset)
        decoded = decode(record.value or b"")
        row = decoded.row
        if row is None:
            fault = decoded.fault
            return Judgement(record, place, fault.kind if fault else "malformed", fault.reason if fault else None)
        for name, check in checks:
            if check(row) is False:
                return Judgement(record, place, "invalid", f"check {name} is false")
        arrived_at = record.arrived_at if stored else _declared_arrival(stream, record, row)
        if arrived_at is None:
            return Judgement(record, place, "invalid", f"header {stream.arrival.name} holds no arrival time")
        place = (arrived_at, record.partition, record.offset)
        event_time = row[time_field]
        identity = f"{record.topic}/{record.partition}/{record.offset}" if id_field is None else str(row[id_field])
        event = Event(row, event_time, identity, place)
        if event_time - arrived_at > skew:
            ahead = (event_time - arrived_at) // SECOND
            return Judgement(record, place, "future", f"dated {ahead} s after its arrival", event)
        if arrived_at - event_time > lateness:
            behind = (arrived_at - event_time) // SECOND
            return Judgement(record, place, "late", f"arrived {behind} s after it happened", event)
        return Judgement(record, place, "admitted", None, event)

    return read


def _declared_arrival(stream: Stream, record: Record, row: Mapping[str, Any]) -> int | None:
    """Arrival from the field or header the stream names; a header holds RFC 3339 text or microseconds."""
    if stream.arrival.source == "field":
        return int(row[stream.arrival.name or ""])
    for name, value in record.headers:
        if name == stream.arrival.name:
            text = value.decode("utf-8", "replace")
            return int(text) if text.isascii() and text.isdigit() else parse_timestamp(text)
    return None


def count_verdicts(judged: Iterable[Judgement]) -> dict[str, int]:
    """How many records got each verdict; every verdict is there, and they add up to the records read."""
    counts = Counter(judgement.verdict for judgement in judged)
    return {verdict: counts[verdict] for verdict in VERDICTS}
