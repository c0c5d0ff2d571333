"""What all tests share: one Spark session, one Kafka broker, golden files, and hypothesis without a stopwatch.

The session has a few slots, one shuffle partition, no UI and bounded memory. All tests that share it carry one xdist
group, so that under `-n 2` one process has the session and the other runs what needs none. Tests that start processes
with sessions of their own are the group `live`, Kafka tests that need no Spark another: each of the two processes
starts at most one broker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.kafka.cluster import Cluster, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes says nothing about its meaning, and the machine may be busy.
settings.register_profile("headrace", deadline=None, print_blob=True)
settings.load_profile("headrace")

# Every JVM of a test is short-lived, and there may be several at once: none need optimise for a long life.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

GOLDEN = Path(__file__).parent / "golden"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue
        for name in ("spark", "kafka"):
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xdist_group(name))
                break


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from headrace.kafka import jars
    from headrace.run.session import local_session

    # More slots than cores: a real-time query holds one for each of its tasks.
    session = local_session("headrace-tests", slots=8, jars=jars.fetch(jars.CONNECTOR))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A local broker of its own for the tests of this process. Topics are shared: give yours a name nobody else has."""
    with started(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Hold a text against tests/golden/NAME.txt; UPDATE_GOLDEN=1 writes the file instead."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        text = text.rstrip("\n") + "\n"
        if os.environ.get("UPDATE_GOLDEN") == "1":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if not file.is_file():
            pytest.fail(
                f"There is no golden file {file.name}: look at the text, then run with UPDATE_GOLDEN=1.\n{text}"
            )
        assert text == file.read_text(encoding="utf-8")

    return check
