"""Every log there is, on a clock that tests turn by hand. A new log joins the suite with one line of `LOGS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.clock import SECOND, Clock
from headrace.log import EmbeddedLog, Log, MemoryLog

START = 1_767_225_600 * SECOND

LOGS: dict[str, Callable[[Path, Clock], Log]] = {
    "memory": lambda _, clock: MemoryLog(clock=clock),
    "embedded": lambda folder, clock: EmbeddedLog(folder, clock=clock),
}


class HandClock:
    """A clock that moves when told to, also backwards."""

    def __init__(self, time: int = START) -> None:
        self.time = time

    def now(self) -> int:
        return self.time


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=sorted(LOGS))
def log(request, tmp_path, clock) -> Iterator[Log]:
    with closing(LOGS[request.param](tmp_path / "log", clock)) as made:
        yield made


@pytest.fixture(params=sorted(LOGS))
def fresh(request, tmp_path_factory) -> Callable[[HandClock], Log]:
    """For generated cases: a new empty log each time it is called."""
    return lambda clock: LOGS[request.param](tmp_path_factory.mktemp("log"), clock)
