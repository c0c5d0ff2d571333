"""A letter as the record it would be if it were appended again, and what admission says of that now.

The record keeps its bytes, its key and its headers. Two headers are added: when it first arrived, by which it is
judged, and whose replay it is. Whether it is a copy of another event is found by the pipeline, which knows the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.define.stream import Stream
from headrace.log.record import Message, Record
from headrace.meaning.message import row_key
from headrace.meaning.verdict import ARRIVED_AT, REPLAY_OF, RESERVED, Judgement, Read, reader
from headrace.spark.dead_letter import DeadLetter

GOOD = ("admitted", "late")


@dataclass(frozen=True)
class ReplayRecord:
    """What would be appended for a letter, and its verdict."""

    letter: DeadLetter
    message: Message
    judgement: Judgement

    @property
    def good(self) -> bool:
        """Whether it would count, or at least be late: no dead letter again."""
        return self.judgement.verdict in GOOD


def build_replay(
    letter: DeadLetter, stream: Stream, *, now: int, value: bytes | None = None, read: Read | None = None
) -> ReplayRecord:
    """The record that a replay of the letter appends now.

    Parameters
    ----------
    value
        The mended value; the letter's own when left out.
    read
        What admission says of a record alone; made from the stream when left out.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp("s")}, event_time="at", key="user")
    >>> letter = DeadLetter(0, 7, 5_000_000, "invalid", "user is required", None, b'{"at":5}', (), 8)
    >>> made = build_replay(letter, clicks, now=6_000_000)
    >>> made.judgement.verdict, made.message.headers
    ('invalid', (('headrace.arrived_at', b'5000000'), ('headrace.replay_of', b'0/7')))
    >>> mended = build_replay(letter, clicks, now=6_000_000, value=b'{"at":5,"user":"ann"}')
    >>> mended.judgement.verdict, mended.message.key
    ('admitted', b'ann')
    """
    read = read or reader(stream)
    kept = tuple(header for header in letter.headers if not header[0].startswith(RESERVED))
    body = letter.value if value is None else value
    # As it came: a stream that takes its arrival from a field or header may find it there now.
    place = (stream.name, letter.partition, letter.offset)
    came = read(Record(*place, letter.arrived_at, letter.key, body, kept))
    arrived_at = came.place[0]
    headers = (*kept, (ARRIVED_AT, str(arrived_at).encode()), (REPLAY_OF, letter.id.encode()))
    key = letter.key
    if key is None and came.event is not None:
        key = row_key(stream, came.event.row)
    return ReplayRecord(letter, Message(body, key, headers), read(Record(*place, now, key, body, headers)))
