"""The late lanes of a pipeline's runs, pass after pass, in a thread beside its queries; and how that goes.

The lake is filled by the archive; without it there is nothing to publish, and the status says how far the lake is.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.clock import SECOND, Clock, SystemClock
from headrace.config import Config, names
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.place import Lake, look
from headrace.log.protocol import Log
from headrace.plan.model import Plan, TileSet
from headrace.run.late import LateLane, Pass, Run, late_file
from headrace.run.runs import Runs, checkpoint_of
from headrace.store.runs import FIRST_RUN
from headrace.topics import RUNS, create, open_log, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class _Lane:
    """One lane and what it has published since the process started."""

    tile_set: TileSet
    run: Run
    topic: str
    checkpoint: Path
    lane: LateLane | None = None
    passes: int = 0
    events: int = 0
    tiles: int = 0
    delay: float | None = None


class LateJob:
    """Publishes late lanes, each in its turn.

    Attributes
    ----------
    failure
        What ended the thread, for whoever started it.
    """

    def __init__(self, config: Config, log: Log, session: SparkSession, clock: Clock) -> None:
        self.config, self.log, self.session, self.clock = config, log, session, clock
        self.failure: BaseException | None = None
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, tile_set: TileSet, run: Run, topic: str, checkpoint: Path) -> None:
        """Publish the late lane of one more run."""
        with self._lock:
            self._lanes[tile_set.id, run.name] = _Lane(tile_set, run, topic, late_file(checkpoint))

    def drop(self, tile_set: TileSet, run: str) -> None:
        """Publish a run's late lane no longer."""
        with self._lock:
            self._lanes.pop((tile_set.id, run), None)

    def step(self) -> list[Pass]:
        """One pass of every lane whose stream has a lake."""
        with self._lock:
            lanes = list(self._lanes.values())
        return [done for done in map(self._pass, lanes) if done is not None]

    def _pass(self, held: _Lane) -> Pass | None:
        if held.lane is None:
            held.lane = lane_of(self.config, held.tile_set, held.run, self.log, held.topic, held.checkpoint)
        if held.lane is None:
            return None
        done = held.lane.step(self.session)
        held.passes += 1
        held.events, held.tiles = held.events + done.events, held.tiles + done.tiles
        if done.last_arrival is not None:
            held.delay = max(0, self.clock.now() - done.last_arrival) / SECOND
        return done

    def passed(self, tile_set: TileSet, run: str) -> bool:
        """Whether a run's lane is as far as the lake was when this was last looked at; true when there is no lake."""
        with self._lock:
            held = self._lanes[tile_set.id, run]
        return held.passes > 0 or SILVER not in look(self.config, tile_set.stream)

    def start(self) -> None:
        """Go on in a thread, a pass every `late.every`."""
        self._thread = threading.Thread(target=self._run, name="late", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.step()
            except Exception as error:  # whoever started the thread raises it again
                if not self._stop.is_set():
                    self.failure = error
                return
            self._stop.wait(self.config.late_every / SECOND)

    def stop(self) -> None:
        """End the thread; a pass under way is left, and done again later."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def status(self) -> dict[str, Any]:
        """What was published of each tile set, and how long after its arrival."""
        with self._lock:
            return {
                name: {
                    "run": run,
                    "passes": held.passes,
                    "events": held.events,
                    "tiles": held.tiles,
                    "delay_seconds": held.delay,
                    "positions": {} if held.lane is None else {str(p): o for p, o in held.lane.done.items()},
                }
                for (name, run), held in self._lanes.items()
            }


def lane_of(config: Config, tile_set: TileSet, run: Run, log: Log, topic: str, checkpoint: Path) -> LateLane | None:
    """The late lane of a run; None while its stream has no lake."""
    tables = look(config, tile_set.stream)
    if BRONZE not in tables or SILVER not in tables:
        return None
    return LateLane(tile_set, run, Lake(tables[BRONZE], tables[SILVER], ""), log, topic, checkpoint)


def publish_once(plan: Plan, config: Config, session: SparkSession, clock: Clock | None = None) -> dict[str, Any]:
    """One pass of the late lane of every run that serves, without a pipeline."""
    named, clock = names(config), clock or SystemClock()
    with open_log(config, clock) as log:
        create(log, topics(plan, named, config.partitions))
        runs = Runs(log, named.topic(RUNS))
        runs.look()
        job = LateJob(config, log, session, clock)
        for tile_set in plan.tile_sets:
            held = runs.serving(tile_set)
            partitions = len(log.end_offsets(named.topic(tile_set.stream.name)))
            run = Run(FIRST_RUN if held is None else held.run, held, partitions)
            checkpoint = named.path("checkpoints", checkpoint_of(tile_set, run.name))
            job.add(tile_set, run, named.topic(f"changelog.{tile_set.id}"), checkpoint)
        job.step()
        return job.status()
