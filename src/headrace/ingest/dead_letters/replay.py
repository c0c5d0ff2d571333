"""Letters appended to their stream again, each exactly once, also when the process is killed in the middle.

    note in the letter where the stream ends ──► append the records ──► take the letters out

A letter that still carries the note when another replay begins was cut off somewhere. Its record, if it was appended,
lies behind the noted offsets and names the letter, so it is looked for there: found, the letter is taken out; not
found, it is as if the replay had never begun. What retention has removed since cannot be looked at: such a letter is
left alone. The caller holds `ingest.dead_letters.lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from headrace.clock import Clock
from headrace.define.stream import Stream
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.ingest.dead_letters.replay_record import ReplayRecord, build_replay
from headrace.ingest.dead_letters.selection import LetterSelection, choose
from headrace.log.protocol import Log
from headrace.log.record import Position
from headrace.meaning.verdict import REPLAY_OF, Read, reader
from headrace.spark.dead_letter import DeadLetter, in_parts, present, read, walk

PART = 500
"""The most letters, and about the most bytes, that are under way at once."""

UNSURE = "an earlier replay was cut off, and what would tell whether it had appended the record is no longer in the log"


@dataclass(frozen=True)
class LetterTopics:
    """The topic of a stream and that of its dead letters."""

    source: str
    dead: str


@dataclass(frozen=True)
class ReplayedLetter:
    """A letter that was appended: where, and with what verdict as far as the record alone decides it."""

    id: str
    position: Position
    verdict: str


@dataclass(frozen=True)
class SkippedLetter:
    """A letter that was not replayed, and why."""

    id: str
    verdict: str
    reason: str


@dataclass
class Replayed:
    """What a replay did; `found` are letters whose record an earlier, cut-off replay had appended already."""

    sent: list[ReplayedLetter] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    left: list[SkippedLetter] = field(default_factory=list)


@dataclass(frozen=True)
class ReplayOptions:
    """How to replay.

    Parameters
    ----------
    wanted
        Which letters.
    force
        Also those that would be dead again, and those whose earlier replay cannot be accounted for.
    value
        A mended value, for a single letter.
    read
        What admission says of a record alone; made from the stream when left out.
    """

    wanted: LetterSelection
    force: bool = False
    value: bytes | None = None
    read: Read | None = None


def replay(
    log: Log,
    stream: Stream,
    topics: LetterTopics,
    wish: ReplayOptions,
    clock: Clock,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    faults: FaultPoints = NO_FAULTS,
) -> Replayed:
    """Append the records of letters to their stream again.

    Parameters
    ----------
    progress
        Told after each part how many letters are done with, and of how many.
    """
    done, judge = Replayed(), wish.read or reader(stream)
    letters = present(walk(log, topics.dead), values=False)
    begun = {name: letter for name, letter in letters.items() if letter.replaying is not None}
    done.found, unsure = _settle(log, topics, begun, faults)
    for name in done.found:
        del letters[name]
    chosen = {letter.id: letter for letter in choose(letters, wish.wanted, gone=done.found)}
    total = len(chosen)
    if not wish.force:
        for name in unsure & chosen.keys():
            done.left.append(SkippedLetter(name, chosen.pop(name).verdict, UNSURE))
    for part in in_parts(_with_values(log, topics.dead, chosen), PART):
        made = [build_replay(letter, stream, now=clock.now(), value=wish.value, read=judge) for letter in part]
        for each in made:
            if not (each.good or wish.force):
                done.left.append(SkippedLetter(each.letter.id, each.judgement.verdict, each.judgement.reason or ""))
        done.sent += _send(log, topics, [each for each in made if each.good or wish.force], faults)
        progress(len(done.sent) + len(done.left), total)
    return done


def _send(log: Log, topics: LetterTopics, chosen: list[ReplayRecord], faults: FaultPoints) -> list[ReplayedLetter]:
    if not chosen:
        return []
    ends = log.end_offsets(topics.source)
    log.append_batch(topics.dead, [replace(each.letter, replaying=ends).message for each in chosen])
    faults.reach("letters.note.after")
    positions = log.append_batch(topics.source, [each.message for each in chosen])
    faults.reach("letters.records.after")
    log.append_batch(topics.dead, [each.letter.done("replayed") for each in chosen])
    faults.reach("letters.done.after")
    pairs = zip(chosen, positions, strict=True)
    return [ReplayedLetter(each.letter.id, position, each.judgement.verdict) for each, position in pairs]


def drop(log: Log, topics: LetterTopics, wanted: LetterSelection, faults: FaultPoints = NO_FAULTS) -> list[DeadLetter]:
    """Take letters out of their topic for good. The lake's bronze table keeps their records."""
    chosen = choose(present(walk(log, topics.dead), values=False), wanted)
    for first in range(0, len(chosen), PART):
        log.append_batch(topics.dead, [letter.done("dropped") for letter in chosen[first : first + PART]])
        faults.reach("letters.drop.after")
    return chosen


def _settle(
    log: Log, topics: LetterTopics, begun: Mapping[str, DeadLetter], faults: FaultPoints
) -> tuple[list[str], set[str]]:
    """Take out the letters whose record is there; and name those of which that cannot be known any more."""
    found = _appended(log, topics.source, begun)
    names = [name for name in begun if name in found]
    for first in range(0, len(names), PART):
        log.append_batch(topics.dead, [begun[name].done("replayed") for name in names[first : first + PART]])
        faults.reach("letters.settle.after")
    starts = log.start_offsets(topics.source)
    unsure = {
        name
        for name, letter in begun.items()
        if name not in found and any(at < starts.get(number, at) for number, at in (letter.replaying or {}).items())
    }
    return names, unsure


def _appended(log: Log, source: str, begun: Mapping[str, DeadLetter]) -> set[str]:
    """The letters whose record lies behind the offsets that were noted."""
    found: set[str] = set()
    if not begun:
        return found
    starts = log.start_offsets(source)
    for number, end in log.end_offsets(source).items():
        noted = [(letter.replaying or {}).get(number, 0) for letter in begun.values()]
        at = max(starts[number], min(noted))
        while at < end and len(found) < len(begun) and (records := log.read(source, number, at)):
            for record in records:
                name = next((value.decode("utf-8", "replace") for h, value in record.headers if h == REPLAY_OF), "")
                if name in begun and record.offset >= (begun[name].replaying or {}).get(number, 0):
                    found.add(name)
            at = records[-1].offset + 1
    return found


def _with_values(log: Log, dead: str, chosen: Mapping[str, DeadLetter]) -> Iterator[DeadLetter]:
    """The chosen letters again, now with their values: every record of a letter has the same."""
    waiting = dict(chosen)
    for record in walk(log, dead):
        if not waiting:
            return
        letter = None if record.value is None else read(record)
        if letter is not None and letter.id in waiting and waiting[letter.id].arrived_at == letter.arrived_at:
            yield replace(waiting.pop(letter.id), value=letter.value)
