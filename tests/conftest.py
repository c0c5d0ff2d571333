"""What all tests share: one Spark session, one Kafka broker, golden files, and hypothesis without a stopwatch.

The session has a few slots, one shuffle partition, no UI and bounded memory. Under `-n 2` each of the two processes has
at most one session and one broker. Tests that start processes of their own are the group `live`, which comes first
because it is the longest; the conformance suite, whose engines run once for all its tests, is the next; a module with
Spark or Kafka stays together, so that what it makes for its tests is made once.
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


FIRST = ("live", "conformance")
"""The groups that start before all others, in this order."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue
        if item.path.parent.name == "conformance":
            item.add_marker(pytest.mark.xdist_group("conformance"))
        elif any(item.get_closest_marker(name) for name in ("spark", "kafka")):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    return FIRST.index(group.args[0]) if group and group.args[0] in FIRST else len(FIRST)


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
