"""The verdict of a record, in plain Python: exactly one each, from facts in the log alone.

Tested in this order: malformed, invalid, future, late, duplicate, admitted. The order records are handed in does not
matter: they are judged by (arrived_at, partition, offset).

A record that was appended again later (a replayed dead letter, say) carries its arrival in the header
`headrace.arrived_at`, whatever the stream's arrival source is, and its verdict goes by that arrival. What has happened
in the meantime it cannot undo: among copies of one event it stands where it was appended, and if its tile was closed by
then it travels in the late lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.clock import SECOND, parse_timestamp
from headrace.codec.json.read import Decoded, RecordFault
from headrace.codec.json.rules import EARLIEST, LATEST
from headrace.codec.wire import SchemaIds, decoder
from headrace.define.stream import Stream
from headrace.log.record import Record
from headrace.meaning.event import Event, Place
from headrace.meaning.verdict_names import DEAD as DEAD
from headrace.meaning.verdict_names import VERDICTS as VERDICTS

RESERVED = "headrace."
"""What the names of Headrace's own headers begin with."""
ARRIVED_AT, REPLAY_OF = "headrace.arrived_at", "headrace.replay_of"
"""A record's arrival in microseconds when it is not the append's; the partition/offset it was appended at before."""


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
    closed: bool = False

    @property
    def lane(self) -> str | None:
        """The lane in which the event counts, if its stream's late policy lets it; None when it does not count."""
        if not self.contributes:
            return None
        return "late" if self.closed or self.verdict == "late" else "on_time"

    @property
    def order(self) -> Place:
        """Its place among the copies of its event: that of its append when it was appended again later."""
        appended_again = any(name == ARRIVED_AT for name, _ in self.record.headers)
        return (self.record.arrived_at, *self.place[1:]) if appended_again else self.place

    @property
    def contributes(self) -> bool:
        """Whether the event counts where its lane is read: admitted, or late and not seen before."""
        return self.verdict == "admitted" or (self.verdict == "late" and self.first is None)


def judge(stream: Stream, records: Iterable[Record], ids: SchemaIds | None = None) -> list[Judgement]:
    """Every record's verdict, in the order in which the records became known.

    `ids` is where the schemas of Avro records are looked up; without it only the stream's own is known.
    """
    read = reader(stream, ids)
    readings = sorted((read(record) for record in records), key=lambda judged: judged.order)
    seen: dict[tuple[str, int], Judgement] = {}
    return sorted((_against_copies(judged, seen) for judged in readings), key=lambda judged: judged.place)


def _against_copies(judged: Judgement, seen: dict[tuple[str, int], Judgement]) -> Judgement:
    """A copy of something already present is a duplicate; a late copy stays late but never contributes."""
    event = judged.event
    if event is None or judged.verdict not in ("late", "admitted"):
        return judged
    first = seen.setdefault((event.event_id, event.event_time), judged)
    if first is judged or first.event is None:
        return judged
    return replace(as_copy(judged, first.place), conflict=first.event.row != event.row)


def as_copy(judged: Judgement, first: Place) -> Judgement:
    """The judgement of a record whose event was there before it, at the place of the first copy."""
    verdict = "late" if judged.verdict == "late" else "duplicate"
    reason = copy_reason(first[1], first[2], is_earlier=judged.place[0] < first[0])
    return replace(judged, verdict=verdict, reason=reason, first=first)


def copy_reason(partition: int, offset: int, *, is_earlier: bool) -> str:
    """Why a record does not count: which copy does, and whether this one arrived before it.

    >>> copy_reason(0, 7, is_earlier=True)
    'a copy of partition 0, offset 7, which arrived later'
    """
    return f"a copy of partition {partition}, offset {offset}{', which arrived later' if is_earlier else ''}"


def row_checker(stream: Stream) -> Callable[[Decoded], Decoded]:
    """A function that adds the first check which a row fails as its fault."""
    checks = [(f"check {name} is false", check.python()) for name, check in stream.checks]

    def check_row(decoded: Decoded) -> Decoded:
        row = decoded.row
        if row is not None:
            for reason, holds in checks:
                if holds(row) is False:
                    return Decoded(row, RecordFault("invalid", reason))
        return decoded

    return check_row


Read = Callable[[Record], Judgement]


def reader(stream: Stream, ids: SchemaIds | None = None) -> Read:
    """A function that gives a record its verdict as far as the record alone decides it."""
    decode, check_row = decoder(stream, ids), row_checker(stream)
    time_field, id_field = stream.event_time, stream.event_id
    lateness, skew, stored = (
        stream.allowed_lateness,
        stream.max_clock_skew,
        stream.arrival.source in ("log", "producer"),
    )

    def read(record: Record) -> Judgement:
        again = next((value for name, value in record.headers if name == ARRIVED_AT), None)
        row, fault = check_row(decode(record.value or b""))
        if again is not None:
            arrived_at = whole_micros(again.decode("utf-8", "replace"))
        else:
            arrived_at = record.arrived_at if stored else _declared_arrival(stream, record, row)
        place = (record.arrived_at if arrived_at is None else arrived_at, record.partition, record.offset)
        if row is None or fault is not None:
            return Judgement(record, place, *(fault or ("malformed", None)))
        if arrived_at is None:
            source = stream.arrival.name if again is None else ARRIVED_AT
            return Judgement(record, place, "invalid", f"header {source} holds no arrival time")
        event_time = row[time_field]
        identity = f"{record.topic}/{record.partition}/{record.offset}" if id_field is None else str(row[id_field])
        event = Event(row, event_time, identity, place)
        if event_time - arrived_at > skew:
            ahead = (event_time - arrived_at) // SECOND
            return Judgement(record, place, "future", f"dated {ahead} s after its arrival", event)
        if arrived_at - event_time > lateness:
            behind = (arrived_at - event_time) // SECOND
            return Judgement(record, place, "late", f"arrived {behind} s after it happened", event)
        closed = again is not None and record.arrived_at - event_time > lateness
        return Judgement(record, place, "admitted", None, event, closed=closed)

    return read


def _declared_arrival(stream: Stream, record: Record, row: Mapping[str, Any] | None) -> int | None:
    """Arrival from the field or header the stream names; a header holds RFC 3339 text or microseconds."""
    if stream.arrival.source == "field":
        return None if row is None else int(row[stream.arrival.name or ""])
    for name, value in record.headers:
        if name == stream.arrival.name:
            text = value.decode("utf-8", "replace")
            if text.isascii() and text.isdigit():
                return whole_micros(text)
            moment = parse_timestamp(text)
            return moment if moment is not None and EARLIEST <= moment <= LATEST else None
    return None


def whole_micros(text: str) -> int | None:
    """Microseconds as a header holds them, within the years 1 to 9999: beyond them a difference could overflow."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(LATEST))):
        return None
    return int(text) if EARLIEST <= int(text) <= LATEST else None


def count_verdicts(judged: Iterable[Judgement]) -> dict[str, int]:
    """How many records got each verdict; every verdict is there, and they add up to the records read."""
    counts = Counter(judgement.verdict for judgement in judged)
    return {verdict: counts[verdict] for verdict in VERDICTS}
