"""The dimensions of a process: their tables in memory, looked at in the background and read again when they changed.

A read takes what there is and never waits. A table that can no longer be read keeps its last good content: its answers
are flagged as stale, `/ready` and the metrics say so, and it is looked at again soon. Each worker has its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.clock import SECOND, Clock, SystemClock, show_time
from headrace.config.config import Config
from headrace.config.serve_settings import DEFAULTS
from headrace.define.dimension import Dimension
from headrace.errors import HeadraceError, MachineError
from headrace.lake.dimension import DimensionLocation, compute_digest, place_of, read
from headrace.plan.model import Plan
from headrace.read.dimension_index import DimensionIndex
from headrace.read.reader import ViewValues
from headrace.serve.metrics import Metrics
from headrace.status.serving import DimensionStatus
from headrace.tiles.changelog import Key

TABLE = "table"
"""The mode of an answer from a dimension."""
AGAIN = 1.0
"""Seconds to the next look at a table that could not be read."""
REST = 10
"""How many times longer than such a look the pause after it is: one that is refused at its end costs all of it."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedTable:
    """A table in memory, how it looked before, when it was read, and when it was last seen to be the same."""

    index: DimensionIndex
    seen: str
    loaded_at: int
    looked_at: int


class Dimensions:
    """The tables of some dimensions.

    Parameters
    ----------
    places
        Where they are.
    every
        Seconds between two looks.

    Attributes
    ----------
    failing
        Of each table that could not be read at the last look, what was wrong.
    """

    def __init__(
        self,
        places: Iterable[DimensionLocation] = (),
        every: float = DEFAULTS.dimensions_every,
        clock: Clock | None = None,
    ) -> None:
        self._places = {place.dimension.name: place for place in places}
        self._every, self._clock = every, clock or SystemClock()
        self._held: dict[str, LoadedTable] = {}
        self.failing: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop; at once, for nobody is answered before."""
        while self._places:
            began = time.monotonic()
            self.look()
            soon = max(AGAIN, REST * (time.monotonic() - began))
            if stop.wait(min(self._every, soon) if self.failing else self._every):
                return

    def look(self) -> None:
        """Look at every table, and read those that have changed."""
        for name, place in self._places.items():
            try:
                self._refresh_table(name, place)
            except Exception as error:
                # Whatever it is: what was read before stays.
                said = error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}."
                if self.failing.get(name) != said:
                    _logger.error("dimension %s keeps what it has: %s", name, error)
                # A new one each time, because requests look at it meanwhile.
                self.failing = {**self.failing, name: said}
            else:
                if name in self.failing:
                    _logger.info("dimension %s can be read again", name)
                    self.failing = {other: said for other, said in self.failing.items() if other != name}

    def _refresh_table(self, name: str, place: DimensionLocation) -> None:
        # Asked for before the look: whatever was written before then is in it.
        now, held = self._clock.now(), self._held.get(name)
        seen = compute_digest(place)
        if held is not None and held.seen == seen:
            self._held[name] = replace(held, looked_at=now)
            return
        self._held[name] = made = LoadedTable(DimensionIndex(read(place)), seen, now, now)
        _logger.info("dimension %s: %d rows of %d keys", name, made.index.rows, made.index.keys)

    def read(self, dimension: Dimension, keys: Sequence[Key], t: int) -> list[ViewValues]:
        """The features of some keys at a moment, past or present, all from one state of the table."""
        held = self._held.get(dimension.name)
        if held is None:
            message = f"The table of dimension {dimension.name!r} has not been read yet."
            hint = "Ask again in a moment; `headrace check` says what is wrong if it cannot be read."
            raise MachineError("dimension-unread", message, got=self.failing.get(dimension.name), hint=hint)
        # All that was there before the last look is included, but what a past moment is told ends with it.
        as_of, stale = min(held.looked_at, t), dimension.name in self.failing
        return [answer(dimension, key, held.index.value_at(key, t), t, as_of, stale=stale) for key in keys]

    def readiness(self) -> dict[str, bool]:
        """Whether every table was read once; nothing where there is none."""
        return {"dimensions": self._places.keys() <= self._held.keys()} if self._places else {}

    def status(self) -> dict[str, DimensionStatus]:
        """How each table stands."""
        now = self._clock.now()
        return {name: self._status(place.dimension, now) for name, place in self._places.items()}

    def _status(self, dimension: Dimension, now: int) -> DimensionStatus:
        held = self._held.get(dimension.name)
        index = None if held is None else held.index
        return DimensionStatus(
            key=list(dimension.by),
            features=len(dimension.features),
            table=dimension.path,
            rows=None if index is None else index.rows,
            keys=None if index is None else index.keys,
            bytes=None if index is None else index.bytes,
            loaded_at=None if held is None else show_time(held.loaded_at),
            as_of=None if held is None else show_time(held.looked_at),
            age_ms=None if held is None else (now - held.looked_at) / 1_000,
            failing=self.failing.get(dimension.name),
        )

    def tell(self, metrics: Metrics) -> None:
        """Let the metrics have how the tables stand."""
        now = self._clock.now()
        for name in self._places:
            held = self._held.get(name)
            rows, size, age = (0, 0, 0.0) if held is None else (held.index.rows, held.index.bytes, now - held.looked_at)
            metrics.dimension(name, rows=rows, size=size, age=age / SECOND, failing=name in self.failing)


def dimensions_of(config: Config, plan: Plan, clock: Clock | None = None) -> Dimensions:
    """The dimensions of a project."""
    places = [place_of(config, planned.dimension) for planned in plan.dimensions]
    return Dimensions(places, config.serve.dimensions_every, clock)


def answer(
    dimension: Dimension, key: Key, values: dict[str, Any] | None, t: int, as_of: int | None, *, stale: bool
) -> ViewValues:
    """What is said of a key of a dimension; without values it is missing, and every feature is null."""
    return ViewValues(
        view=dimension.name,
        key=dict(zip(dimension.by, key, strict=True)),
        values=dimension.nothing if values is None else values,
        at=t,
        as_of=as_of,
        freshness_ms=None if as_of is None else (t - as_of) / 1_000,
        missing=values is None,
        stale=stale,
        mode=TABLE,
        late_as_of=as_of,
    )
