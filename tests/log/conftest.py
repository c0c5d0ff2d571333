"""Every log there is. A new log joins the suite with a line of `LOGS`.

The clock of a local log is turned by hand, in microseconds. That of a Kafka log is the broker's own: it moves by
waiting, in milliseconds, and never back. Tests speak of its `unit`, and hold for both.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck

from headrace.clock import MILLISECOND, SECOND, Clock
from headrace.errors import HeadraceError
from headrace.log import EmbeddedLog, Log, MemoryLog
from headrace.log.kafka.log import KafkaLog
from headrace.log.topic import NAME
from tests.budget import examples

START = 1_767_225_600 * SECOND

LOCAL: dict[str, Callable[[Path, Clock], Log]] = {
    "memory": lambda _, clock: MemoryLog(clock=clock),
    "embedded": lambda folder, clock: EmbeddedLog(folder, clock=clock),
}
LOGS = [*LOCAL, pytest.param("kafka", marks=pytest.mark.kafka)]
_numbers = itertools.count()


class HandClock:
    """A clock that moves when told to, also backwards."""

    unit = 1

    def __init__(self, time: int = START) -> None:
        self.time = time

    def now(self) -> int:
        return self.time

    def tick(self, units: int) -> None:
        self.time += units * self.unit


class BrokersClock:
    """The clock of a broker on this machine, as it stamps records."""

    unit = MILLISECOND

    def now(self) -> int:
        return time.time_ns() // 1_000_000 * MILLISECOND

    def tick(self, units: int) -> None:
        until = self.now() + units * self.unit
        while self.now() < until:
            time.sleep(0.0002)


class Apart:
    """A part of a shared cluster in which a test is alone: its topics and groups carry a prefix that it never sees."""

    def __init__(self, log: KafkaLog) -> None:
        self._log, self._prefix = log, f"test-{next(_numbers)}-"

    def __getattr__(self, method: str) -> Any:
        done = getattr(self._log, method)

        def call(*arguments: Any, **named: Any) -> Any:
            count = 2 if method in ("commit", "committed") else 1
            named_first = [self._apart(name) for name in arguments[:count]]
            with self._unseen():
                return self._own(done(*named_first, *arguments[count:], **named))

        return call

    def _apart(self, name: Any) -> Any:
        if isinstance(name, dict):
            return {self._apart(each): at for each, at in name.items()}
        return self._prefix + name if isinstance(name, str) and NAME.fullmatch(name) else name

    def _own(self, found: Any) -> Any:
        """Topics and records by the names that the test gave."""
        match found:
            case dict() if any(isinstance(name, str) for name in found):
                mine = {name: topic for name, topic in found.items() if name.startswith(self._prefix)}
                return {name.removeprefix(self._prefix): self._own(topic) for name, topic in mine.items()}
            case list():
                return [self._own(item) for item in found]
            case _ if hasattr(found, "arrival"):
                kept = {name: getattr(found, name) for name in found.__struct_fields__}
                return type(found)(**kept | {"name": found.name.removeprefix(self._prefix)})
            case _ if hasattr(found, "arrived_at"):
                kept = {name: getattr(found, name) for name in found.__struct_fields__}
                return type(found)(**kept | {"topic": found.topic.removeprefix(self._prefix)})
        return found

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        try:
            yield
        except HeadraceError as error:
            for name in ("message", "got", "hint", "where"):
                text = getattr(error, name)
                setattr(error, name, None if text is None else text.replace(self._prefix, ""))
            raise

    def close(self) -> None:
        """The cluster is shared: it stays open."""


@pytest.fixture(scope="session")
def kafka_log(kafka) -> Iterator[KafkaLog]:
    with KafkaLog(kafka.brokers) as log:
        yield log


class Fresh:
    """Makes new empty logs, for generated cases."""

    def __init__(self, kind: str, request: Any) -> None:
        self.kind, self._request = kind, request

    def __call__(self) -> tuple[Log, Any]:
        """A log and its clock."""
        if self.kind == "kafka":
            return Apart(self._request.getfixturevalue("kafka_log")), BrokersClock()
        clock = HandClock()
        return LOCAL[self.kind](self._request.getfixturevalue("tmp_path_factory").mktemp("log"), clock), clock

    def holds(self, test: Callable[[], None]) -> None:
        """Try a generated case: as often as the log is quick."""
        quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.nested_given]
        examples(1 / 10 if self.kind == "kafka" else 1 / 2, quiet=quiet)(test)()


@pytest.fixture(params=LOGS)
def fresh(request) -> Fresh:
    return Fresh(request.param, request)


@pytest.fixture(params=sorted(LOCAL))
def fresh_local(request) -> Fresh:
    return Fresh(request.param, request)


@pytest.fixture(params=LOGS)
def timed(request) -> Iterator[tuple[Log, Any]]:
    """A log and its clock."""
    log, clock = Fresh(request.param, request)()
    with closing(log):
        yield log, clock


@pytest.fixture
def log(timed: tuple[Log, Any]) -> Log:
    """Any log."""
    return timed[0]


@pytest.fixture
def clock(timed) -> Any:
    """The clock of the log."""
    return timed[1]


@pytest.fixture(params=sorted(LOCAL))
def local(request) -> Iterator[tuple[Log, HandClock]]:
    """A log that cleans when it is told to, by a clock that can be turned back: not Kafka, which does it by itself."""
    log, clock = Fresh(request.param, request)()
    with closing(log):
        yield log, clock


@pytest.fixture
def local_log(local: tuple[Log, HandClock]) -> Log:
    return local[0]


@pytest.fixture
def hand_clock(local: tuple[Log, HandClock]) -> HandClock:
    return local[1]
