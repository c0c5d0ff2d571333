"""A dead letter as its topic keeps it: the record's own bytes, and in headers where it came from and why.

The topic `<stream>.dead` is compacted; a letter's key is the position of its record, "partition/offset". A letter that
is being replayed is written again with how far the stream had come (`replaying`); one that is done with is a tombstone.
`spark.archive.refused_records` writes letters, `headrace.ingest.dead_letters` lists, replays and drops them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.log.protocol import Log
from headrace.log.record import Headers, Message, Record

KEY, NULL, REPLAYING, DONE, ORIGINAL = "key", "value_is_null", "replaying", "done", "header:"
PART_BYTES = 8 * 1024 * 1024
"""About the most bytes of letters in one append."""
_ID = re.compile(r"(\d{1,9})/(\d{1,18})", re.ASCII)


@dataclass(frozen=True)
class DeadLetter:
    """A record that was refused.

    Parameters
    ----------
    partition, offset
        Where it stands in the stream's topic.
    arrived_at
        When it arrived, in microseconds.
    verdict, reason
        What admission said.
    key, value, headers
        The record's own, to the byte.
    size
        Bytes of the value.
    replaying
        Where the stream's topic ended when a replay of it was begun; None when there is none.

    Examples
    --------
    >>> letter = DeadLetter(0, 7, 5, "malformed", "it is not JSON", b"k", b"{", (("trace", b"1"),), 1)
    >>> kept = letter.message
    >>> read(Record("payments.dead", 0, 0, 9, kept.key, kept.value, kept.headers)) == letter
    True
    """

    partition: int
    offset: int
    arrived_at: int
    verdict: str
    reason: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    size: int
    replaying: Mapping[int, int] | None = None

    @property
    def id(self) -> str:
        """The letter's name: its record's position."""
        return f"{self.partition}/{self.offset}"

    @property
    def message(self) -> Message:
        """The letter as it is appended to its topic."""
        told: list[tuple[str, Any]] = [
            ("verdict", self.verdict),
            ("reason", self.reason),
            ("partition", self.partition),
            ("offset", self.offset),
            ("arrived_at", self.arrived_at),
        ]
        if self.value is None:
            # In a compacted topic a null would say that the letter is gone.
            told.append((NULL, "true"))
        if self.replaying is not None:
            told.append((REPLAYING, json.dumps({str(number): at for number, at in self.replaying.items()})))
        headers = [(name, str(text).encode()) for name, text in told]
        if self.key is not None:
            headers.append((KEY, self.key))
        headers += [(f"{ORIGINAL}{name}", value) for name, value in self.headers]
        return Message(b"" if self.value is None else self.value, self.id.encode(), tuple(headers))

    def done(self, why: str) -> Message:
        """The tombstone that takes the letter out of its topic; it says whose it was, should a batch be run again."""
        told = ((DONE, why.encode()), ("arrived_at", str(self.arrived_at).encode()))
        return Message(None, self.id.encode(), told)


def read(record: Record) -> DeadLetter:
    """A letter from its topic. What was written by hand or by an earlier version is read as far as it goes."""
    own = [(name, value) for name, value in record.headers if not name.startswith(ORIGINAL)]
    told = {name: value.decode("utf-8", "replace") for name, value in own}
    place = _ID.fullmatch((record.key or b"").decode("utf-8", "replace"))
    value = record.value or b""
    return DeadLetter(
        partition=int(place[1]) if place else record.partition,
        offset=int(place[2]) if place else record.offset,
        arrived_at=_parse_number(told.get("arrived_at"), record.arrived_at),
        verdict=told.get("verdict", "malformed"),
        reason=told.get("reason", ""),
        key=next((value for name, value in own if name == KEY), None),
        value=None if NULL in told else value,
        headers=tuple((n.removeprefix(ORIGINAL), v) for n, v in record.headers if n.startswith(ORIGINAL)),
        size=len(value),
        replaying=_offsets(told.get(REPLAYING)),
    )


def present(records: Iterable[Record], *, values: bool = True) -> dict[str, DeadLetter]:
    """The letters that are there after these records of their topic, by name; without values, those are left empty.

    A batch of the archive that was cut off is run again and writes its letters again. A letter that was done with in
    the meantime stays so, and one whose replay was begun keeps that.
    """
    found: dict[str, DeadLetter] = {}
    ended: dict[str, int] = {}
    for record in records:
        letter = read(record)
        before = found.get(letter.id)
        again = before is not None and before.arrived_at == letter.arrived_at and letter.replaying is None
        if record.value is None:
            ended[letter.id] = letter.arrived_at
            found.pop(letter.id, None)
        elif not again and ended.get(letter.id) != letter.arrived_at:
            found[letter.id] = letter if values else replace(letter, value=b"")
    return found


def read_arrivals(records: Iterable[Record]) -> dict[str, int]:
    """The arrival of every letter that is or was there, by name."""
    return {letter.id: letter.arrived_at for letter in map(read, records)}


def walk(log: Log, topic: str) -> Iterator[Record]:
    """The records of a dead-letter topic, up to where it ends now."""
    for number, end in log.end_offsets(topic).items():
        at = log.start_offsets(topic)[number]
        while at < end and (records := log.read(topic, number, at)):
            yield from records
            at = records[-1].offset + 1


def in_parts(letters: Iterable[DeadLetter], most: int) -> Iterator[list[DeadLetter]]:
    """Letters in parts of one append each, by number and by bytes: a letter may be megabytes.

    >>> one = DeadLetter(0, 0, 0, "malformed", "", None, b"{", (), 1)
    >>> [len(part) for part in in_parts([one] * 5, most=2)]
    [2, 2, 1]
    """
    part: list[DeadLetter] = []
    size = 0
    for letter in letters:
        part.append(letter)
        size += letter.size
        if len(part) >= most or size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _parse_number(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,18}", text) else otherwise


def _offsets(text: str | None) -> dict[int, int] | None:
    return None if text is None else {int(number): at for number, at in json.loads(text).items()}
