"""Verdicts as records come: what one record alone decides, and then whether it is a copy of one that came before.

It is `meaning.verdict` one record at a time. How long an event id is remembered follows from the rules: copies that
are on time share their event time, so they arrive within the allowed lateness and the clock skew of each other.
Records must come in the order of arrival, partitions apart by no more than the plan allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from headrace.codec.wire import SchemaIds
from headrace.define.stream import Stream
from headrace.log.record import Record
from headrace.meaning.event import Place
from headrace.meaning.verdict import Judgement, as_copy, reader
from headrace.plan.model import SPREAD

MOST = 2_000_000
"""Event ids that are remembered at the most: about 400 MB."""

Identity = tuple[str, int]


class Admit:
    """Gives records their verdicts.

    Attributes
    ----------
    forgotten
        Event ids that had to go before their time: a copy of one of them would be taken for an event.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"id": str, "at": hr.Timestamp}, event_time="at", event_id="id")
    >>> click = Record("clicks", 0, 0, 0, None, b'{"id":"a","at":"1970-01-01T00:00:00Z"}')
    >>> admit = Admit(clicks)
    >>> [admit.judge(click).verdict, admit.judge(click).verdict]
    ['admitted', 'duplicate']
    """

    def __init__(self, stream: Stream, ids: SchemaIds | None = None, most: int = MOST) -> None:
        self._read, self._most = reader(stream, ids), most
        self._horizon = horizon(stream)
        self._seen: dict[Identity, Place] = {}
        self._order: deque[tuple[int, Identity]] = deque()
        self.forgotten = 0

    @property
    def remembered(self) -> int:
        """How many event ids there are."""
        return len(self._seen)

    def judge(self, record: Record) -> Judgement:
        """A record's verdict."""
        judged = self._read(record)
        event = judged.event
        if event is None or judged.verdict not in ("late", "admitted"):
            return judged
        self._forget(record.arrived_at)
        identity = (event.event_id, event.event_time)
        first = self._seen.get(identity)
        if first is None:
            self._seen[identity] = judged.place
            self._order.append((record.arrived_at, identity))
            return judged
        return as_copy(judged, first)

    def judge_all(self, records: Iterable[Record]) -> list[Judgement]:
        """The verdicts of some records, in the order of arrival over all partitions."""
        return [self.judge(record) for record in in_order(records)]

    def _forget(self, now: int) -> None:
        while self._order and self._order[0][0] < now - self._horizon:
            del self._seen[self._order.popleft()[1]]
        if len(self._seen) >= self._most:
            del self._seen[self._order.popleft()[1]]
            self.forgotten += 1


def in_order(records: Iterable[Record]) -> list[Record]:
    """Records in the order in which they became known, over all partitions."""
    return sorted(records, key=order)


def order(record: Record) -> Place:
    """A record's place in that order."""
    return record.arrived_at, record.partition, record.offset


def horizon(stream: Stream) -> int:
    """How long after its arrival a copy of an event can still be on time, in microseconds."""
    return stream.allowed_lateness + stream.max_clock_skew + SPREAD
