"""What the verbs of `headrace dead-letters` share: whose letters are meant, and how a letter is shown."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.cli.options import since_when
from headrace.errors import UsageError, shown
from headrace.safe_text import printable

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.ingest.dead_letters.replay import LetterTopics
    from headrace.ingest.dead_letters.replay_record import ReplayRecord
    from headrace.ingest.dead_letters.selection import LetterSelection
    from headrace.log.protocol import Log
    from headrace.meaning.verdict import Read
    from headrace.project import Project
    from headrace.spark.dead_letter import DeadLetter

ID = re.compile(r"\d+/\d+", re.ASCII)


class Opened(NamedTuple):
    """A project with its log."""

    project: Project
    log: Log

    def topics(self, stream: Stream) -> LetterTopics:
        """The topics of a stream and of its letters."""
        from headrace.config.config import names
        from headrace.ingest.dead_letters.replay import LetterTopics

        named = names(self.project.config)
        return LetterTopics(named.topic(stream.name), named.topic(f"{stream.name}.dead"))

    def reader(self, stream: Stream) -> Read:
        """What admission says of a record of a stream, with the project's registry to look up schemas in."""
        from headrace.codec.registry.ids import registry_of
        from headrace.meaning.verdict import reader

        return reader(stream, registry_of(self.project.config, self.project.streams))

    def letters(self, stream: Stream, *, values: bool) -> dict[str, DeadLetter]:
        """The letters of a stream; a topic that nobody has made yet has none."""
        from headrace.spark.dead_letter import present, walk

        dead = self.topics(stream).dead
        return present(walk(self.log, dead), values=values) if dead in self.log.topics() else {}


@contextlib.contextmanager
def opened(path: Path | None, env: str | None) -> Iterator[Opened]:
    """A project and its log, closed afterwards."""
    from headrace import project
    from headrace.topics import open_log

    loaded = project.load(path, env)
    with open_log(loaded.config) as log:
        yield Opened(loaded, log)


def streams(loaded: Project, name: str | None) -> list[Stream]:
    """The stream of that name, or all of them."""
    from headrace.define.stream import find_stream

    chosen = loaded.streams if name is None else [find_stream(loaded.streams, name)]
    return [stream.base for stream in chosen]


def named(loaded: Project, given: Sequence[str]) -> tuple[Stream, tuple[str, ...]]:
    """A stream and the names of letters, from `[STREAM] [ID]...`."""
    name, ids = (None, given) if not given or ID.fullmatch(given[0]) else (given[0], given[1:])
    for each in ids:
        if not ID.fullmatch(each):
            hint = "A letter is named by its position, PARTITION/OFFSET, as in 0/17."
            raise UsageError("bad-usage", "That is no name of a dead letter.", got=shown(each), hint=hint)
    found = streams(loaded, name)
    if len(found) != 1:
        hint = f"One of {', '.join(stream.name for stream in found)}."
        raise UsageError("bad-usage", "Say which stream is meant.", hint=hint)
    return found[0], tuple(dict.fromkeys(ids))


def select_letters(
    ids: tuple[str, ...], *, verdict: str | None = None, reason: str | None = None, since: str | None = None
) -> LetterSelection:
    """The letters that names and options mean."""
    from headrace.ingest.dead_letters.selection import LetterSelection

    return LetterSelection(ids, verdict, reason, None if since is None else since_when(since))


def restricted(chosen: LetterSelection, *, every: bool) -> LetterSelection:
    """The choice, if it says something: nothing at all must be said with --all."""
    if chosen.everything and not every:
        hint = "Name letters, restrict them with --verdict, --reason or --since, or say --all."
        raise UsageError("bad-usage", "Say which letters are meant.", hint=hint)
    if every and not chosen.everything:
        raise UsageError("bad-usage", "--all means all of them: leave the others out.")
    return chosen


def brief(letter: DeadLetter) -> dict[str, Any]:
    """A letter in a list."""
    from headrace.clock import show_time

    return {
        "id": letter.id,
        "arrived_at": show_time(letter.arrived_at),
        "verdict": letter.verdict,
        "reason": letter.reason,
        "size": letter.size,
        "replaying": letter.replaying is not None,
    }


def letter_json(letter: DeadLetter) -> dict[str, Any]:
    """A letter with all it has; bytes that are not UTF-8 are under `..._base64`."""
    from headrace.cli.tail import as_object
    from headrace.log.record import Record

    record = Record("", letter.partition, letter.offset, letter.arrived_at, letter.key, letter.value, letter.headers)
    return brief(letter) | as_object(record)


def current_verdict(made: ReplayRecord) -> dict[str, Any]:
    """What admission says of a letter today."""
    judged = made.judgement
    return {"verdict": judged.verdict, "reason": judged.reason, "lane": judged.lane, "replayable": made.good}


def readable(data: bytes) -> str:
    r"""Bytes for eyes: their text when they are UTF-8, with what would move the cursor escaped, else hexadecimal.

    >>> readable(b"caf\xc3\xa9\x1b"), readable(b"\xff\x00")
    ('café\\x1b', 'hex ff00')
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"hex {data.hex()}"
    return printable(text, "\n")
