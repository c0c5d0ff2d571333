"""Replays of dead letters after a crash: every letter's record is appended to its stream exactly once."""

from __future__ import annotations

import pytest

from headrace.clock import HOUR
from headrace.ingest.dead_letters import replay as module
from headrace.ingest.dead_letters.replay import drop, replay
from headrace.ingest.dead_letters.selection import LetterSelection
from headrace.log import EmbeddedLog
from headrace.meaning.verdict import REPLAY_OF
from headrace.spark.dead_letter import present, walk
from headrace.testing import FakeClock
from tests.faults.image import CrashImages, at_each_point, copy
from tests.ingest.test_replay import CLICKS, EVERYTHING, PLACES, letter, prepared
from tests.streams import BASE

CLOCK = FakeClock(BASE + HOUR)
LETTERS = [f"0/{number}" for number in range(6)]
DROPPED = {"0/4", "0/5"}


def opened(folder):
    return EmbeddedLog(folder, clock=FakeClock(BASE + HOUR))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Two letters at a time are replayed, and two are dropped; one replay goes on where another was cut off."""
    folder = tmp_path_factory.mktemp("letters")
    made = CrashImages(folder / "world", folder / "images", "letters")
    with pytest.MonkeyPatch.context() as patched, opened(folder / "world") as log:
        patched.setattr(module, "PART", 2)
        prepared(log, [letter(number) for number in range(6)])
        drop(log, PLACES, LetterSelection(ids=tuple(sorted(DROPPED))), made)
        replay(log, CLICKS, PLACES, EVERYTHING, CLOCK, faults=made)
        cut_off = folder / "cut-off"
        copy(made.of("letters.records.after")[0].folder, cut_off)
        after = CrashImages(cut_off, folder / "again", "letters")
        with opened(cut_off) as again:
            replay(again, CLICKS, PLACES, EVERYTHING, CLOCK, faults=after)
    for name, found in after.taken.items():
        made.taken.setdefault(name, []).extend(found)
    return made


@at_each_point("letters")
def test_a_replay_that_is_begun_again_appends_every_record_once(images, name):
    for taken in images.of(name):
        with opened(taken.folder) as log:
            if left := present(walk(log, "clicks.dead")).keys() & DROPPED:
                drop(log, PLACES, LetterSelection(ids=tuple(left)))
            replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
            assert present(walk(log, "clicks.dead")) == {}, taken
            records = [record for p in (0, 1) for record in log.read("clicks", p, 0)]
            sent = sorted(dict(record.headers)[REPLAY_OF].decode() for record in records)
            assert sent == [each for each in LETTERS if each not in DROPPED], taken
