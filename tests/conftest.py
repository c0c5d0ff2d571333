"""What all tests share: one Spark session, one Kafka broker, golden files, and the profiles and seed of hypothesis.

The session has a few slots, one shuffle partition, no UI and bounded memory. Under `-n 2` all that needs it or the
broker is the group `jvm`, so that there is one of each in the whole run. Tests that start whole stacks are the group
`live`, which comes first because it waits most. The other process has everything else, test by test.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.budget import RunSeed, is_proving, register_profiles, run_seed
from tests.default_signals import restore_signals
from tests.processes.cluster import Cluster, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

restore_signals()
register_profiles()

# Every JVM of a test is short-lived, and there may be several at once: none need optimise for a long life.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

pytest_plugins = ["pytester", "tests.accounting.plugin", "tests.proving"]

GOLDEN = Path(__file__).parent / "golden"

JVM = {"spark", "kafka"}
"""Fixtures and markers of tests that need the session or the broker."""
FIRST = ("live", "jvm")
"""The groups that start before all others, in this order."""


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads its options, and before xdist hands them to its processes
def pytest_configure(config: pytest.Config) -> None:
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))
    RunSeed.value = int(config.option.hypothesis_seed)


def pytest_report_header() -> str:
    return f"seed: {run_seed()} (--hypothesis-seed repeats it)"


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not item.get_closest_marker("xdist_group") and needs_jvm(item):
            item.add_marker(pytest.mark.xdist_group("jvm"))
    items.sort(key=_turn)


def needs_jvm(item: pytest.Item) -> bool:
    """Whether a test uses the shared session or the shared broker."""
    return not JVM.isdisjoint([*getattr(item, "fixturenames", ()), *(mark.name for mark in item.iter_markers())])


def _turn(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    return FIRST.index(group.args[0]) if group and group.args[0] in FIRST else len(FIRST)


INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Compiling a query takes longer than a test's few rows. `make prove` has Spark compile, and so do the products' own
processes and the tests of expressions, which hold the two to one meaning."""


@pytest.fixture
def seed() -> int:
    """The seed of this run, for a test that leaves something to chance."""
    return run_seed()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from headrace.processes import jars
    from headrace.spark.session import local_session

    # It lives as long as the run, unlike the JVMs that tests start: Java may optimise it.
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", "-XX:+UseSerialGC")
        # More slots than cores: a real-time query holds one for each of its tasks.
        options = {} if is_proving() else INTERPRETED
        session = local_session("headrace-tests", slots=8, jars=jars.fetch(jars.CONNECTOR), options=options)
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
