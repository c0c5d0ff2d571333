"""Runs that take each other's place, after a crash: one run serves, and of an old one nothing is left in the end.

Queries are played by fakes that have read everything; hand-overs, changelog and checkpoints are real.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.clock import MINUTE
from headrace.config.config import names, parse
from headrace.faults import NO_FAULTS
from headrace.log import EmbeddedLog, Message
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.spark.pipeline.switch import AFTERWARDS, ChangeOver
from headrace.testing import FakeClock
from headrace.tiles.changelog import FILLED, HandOver, TileRow
from headrace.tiles.changelog_format import decode, encode
from headrace.topics import RUNS
from tests.faults.image import CrashImages, at_each_point
from tests.spark.test_runs import TILES, begun

CHANGELOG = f"changelog.{TILES.id}"
RUNS_IN_TURN = ("2", "3", "4")
LAST = RUNS_IN_TURN[-1]
"""The run that serves in the end."""


class OnePlan:
    tile_sets = (TILES,)


class Query:
    """A tile query that has read everything and is warm."""

    warming = False

    def __init__(self, folder: Path, tile_set: Any, hand_over: HandOver | None) -> None:
        self.tile_set, self.target = tile_set, self
        self.run = "1" if hand_over is None else hand_over.run
        checkpoint = folder / checkpoint_of(tile_set, self.run) / "offsets"
        checkpoint.mkdir(parents=True, exist_ok=True)
        (checkpoint / "0").write_text("v1\n{}\n{}")

    def included(self):
        return {0: 9}

    def stop(self):
        pass


class Telling:
    """A status that nobody reads."""

    def forget(self, *_):
        pass


class World:
    """A project's folder with runs, rows and checkpoints."""

    runs: ChangeOver

    def __init__(self, folder):
        self.named = names(parse('[project]\nname = "shop"', folder, {}))
        self.clock = FakeClock(0)
        self.log = EmbeddedLog(self.named.path("log"), clock=self.clock)
        for topic in (self.named.topic(RUNS), CHANGELOG):
            self.log.create_topic(topic, compacted=True)

    def start(self, faults=NO_FAULTS):
        """A pipeline begins."""
        checkpoints = self.named.path("checkpoints")
        start = partial(Query, checkpoints)
        self.runs = ChangeOver(OnePlan(), self.named, self.log, self.clock, lambda *_: True, Telling(), start, faults)

    def write(self, run):
        """The rows of a run."""
        rows = [TileRow(TILES.fingerprint, run, (user,), 0, "on_time", 1) for user in "ab"]
        encoded = [encode(row, ("user",)) for row in rows]
        self.log.append_batch(CHANGELOG, [Message(value, key) for key, value in encoded])

    def fill(self, run):
        """A run was filled from history: its rows and its hand-over are there."""
        self.write(run)
        self.hand_overs.say(begun(run, FILLED))

    def go_on(self):
        """Some turns of the pipeline, each longer than the rows of an old run stay."""
        for _ in range(4):
            self.runs.look()
            self.clock.advance(f"{AFTERWARDS + MINUTE}us")

    @property
    def hand_overs(self):
        """All hand-overs that stand, as somebody else reads them."""
        found = Runs(self.log, self.named.topic(RUNS))
        found.look()
        return found

    def rows(self):
        """The rows that stand, by run and key."""
        found = {record.key: record.value for record in self.log.read(CHANGELOG, 0, 0)}
        made = [decode(key, value) for key, value in found.items() if value is not None]
        return sorted((row.run, row.key) for row in made)

    def checkpoints(self):
        return sorted(each.name for each in self.named.path("checkpoints").iterdir())


@pytest.fixture(scope="module")
def row_by_row():
    """Rows are taken out of the changelog one by one, so that a crash leaves some of them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headrace.spark.append.PART", 1)
        yield


@pytest.fixture(scope="module")
def images(row_by_row, tmp_path_factory):
    """A project begins with a run that was filled before, and twice a newer one takes its place.

    Another one begins with the first run there is, which has no hand-over, and one takes its place.
    """
    folder, waiting = tmp_path_factory.mktemp("change-over"), [*RUNS_IN_TURN]
    made = CrashImages(folder / "world", folder / "images", "change_over", "retire", known=lambda: [*waiting])
    world = World(folder / "world")
    for run in RUNS_IN_TURN:
        world.fill(run)
        waiting.remove(run)
        if run == RUNS_IN_TURN[0]:
            world.start(made)
        world.go_on()
    assert left(world) == LEFT

    other = CrashImages(folder / "other", folder / "others", "change_over", "retire", known=list)
    world = World(folder / "other")
    world.start(other)
    world.write("1")
    world.fill(LAST)
    world.go_on()
    assert left(world) == LEFT
    for name, found in other.taken.items():
        made.taken.setdefault(name, []).extend(found)
    return made


def left(world):
    """What there is of runs: the one that serves, hand-overs, rows and checkpoints."""
    serving = world.hand_overs.serving(TILES)
    return serving and serving.run, [*world.hand_overs.of(TILES)], world.rows(), world.checkpoints()


LEFT = (LAST, [LAST], [(LAST, ("a",)), (LAST, ("b",))], [checkpoint_of(TILES, LAST)])


@at_each_point("change_over", "retire")
def test_the_newest_run_serves_and_nothing_is_left_of_the_ones_before(images, name):
    for taken in images.of(name):
        world = World(taken.folder)
        world.start()
        world.go_on()
        for run in taken.known:
            world.fill(run)
            world.go_on()
        assert left(world) == LEFT, taken
