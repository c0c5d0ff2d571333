"""Crash images: a copy of every folder of a project, taken at a fault point while the code stands still there.

A copy is what a killed process leaves behind: whatever was written stays, written to disk or not, and nothing is
flushed or closed. The test recovers from the copy with fresh objects, while the live run goes on or ends.

The copy is made by another process. In this one, closing a second descriptor of a database file would give back the
locks that SQLite and LMDB hold on it.
"""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.faults import POINTS, FaultPoints

CLAIMED: set[str] = set()
"""The points that some test is parametrized over."""


@dataclass(frozen=True)
class CrashImage:
    """A project as it was at a fault point.

    Parameters
    ----------
    turn
        How often the point had been reached before.
    folder
        The copy.
    known
        What the scenario knew at that moment, such as what had been acknowledged.
    """

    name: str
    turn: int
    folder: Path
    known: Any


class CrashImages(FaultPoints):
    """Takes a crash image at every fault point of some components.

    Parameters
    ----------
    world
        The folder with all that is durable.
    into
        Where copies go.
    components
        Whose points count; the others are passed.
    known
        Asked at every image for what the scenario knows.
    turns
        Which times that a point is reached count, from 0.
    """

    def __init__(
        self,
        world: Path,
        into: Path,
        *components: str,
        known: Callable[[], Any] = lambda: None,
        turns: Container[int] = range(1_000),
    ) -> None:
        self._world, self._into, self._known, self._turns = world, into, known, turns
        self._wanted = {name for component in components for name in points_of(component)}
        self._lock = threading.Lock()
        self._reached: Counter[str] = Counter()
        self.taken: dict[str, list[CrashImage]] = {}

    def reach(self, name: str) -> None:
        """Copy the world."""
        super().reach(name)
        with self._lock:
            turn = self._reached[name]
            self._reached[name] += 1
            if name in self._wanted and turn in self._turns:
                folder = self._into / f"{name}.{turn}"
                copy(self._world, folder)
                self.taken.setdefault(name, []).append(CrashImage(name, turn, folder, self._known()))

    def of(self, name: str) -> list[CrashImage]:
        """The images of a point; a scenario that has not reached it proves nothing."""
        images = self.taken.get(name, [])
        assert images, f"the scenario never reached {name}"
        return images


def copy(world: Path, folder: Path) -> None:
    """Copy a folder by another process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "--archive", str(world), str(folder)], check=True)


def points_of(component: str) -> list[str]:
    """The fault points of a component."""
    found = [name for name in POINTS if name.startswith(f"{component}.")]
    assert found, f"{component} has no fault points"
    return found


def at_each_point(*components: str) -> pytest.MarkDecorator:
    """Run a test once for every fault point of some components, as the argument `name`."""
    names = [name for component in components for name in points_of(component)]
    CLAIMED.update(names)
    return pytest.mark.parametrize("name", names)
