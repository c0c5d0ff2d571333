"""Components in one Spark process: one fails or hangs, the others go on; how they are is told."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.clock import SystemClock
from headrace.config.config import names
from headrace.config.settings import ProcessSettings
from headrace.errors import ConfigError, MachineError
from headrace.status.records import ProcessStatus
from headrace.status.topic import read_status
from headrace.topics import create as create_topics
from headrace.topics import open_log, topics
from tests.driver.test_component_thread import wait_until

pytestmark = pytest.mark.spark


class Counter:
    """A component that counts its steps, each of which runs a job of Spark."""

    pause = 0.01

    def __init__(self, session, **settings):
        self.session, self.settings, self.steps = session, settings, 0

    def step(self):
        self.session.range(1).count()
        self.steps += 1
        return False

    def is_ready(self):
        return self.steps > 0

    def stop(self):
        pass


class Sleeper(Counter):
    """A component whose only step waits for a job that takes for ever."""

    def step(self):
        self.session.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 600000L)").collect()
        return False


@pytest.fixture
def shop(tmp_path):
    create(tmp_path / "shop")
    return project.load(tmp_path / "shop")


@pytest.fixture
def quieted(monkeypatch):
    """The sessions that were to log nothing more; the shared one of the tests goes on logging."""
    sessions = list[object]()
    monkeypatch.setattr("headrace.driver.application.end_quietly", sessions.append)
    return sessions


@pytest.fixture
def ends():
    """The event that ends each application."""
    return list[threading.Event]()


@pytest.fixture
def run(spark, shop, quieted, ends):
    """Runs components, by name and class, in an application; gives it and the event that ends it."""
    from headrace.driver.application import SparkApplication

    started = []

    def start(**kinds):
        hung_after = kinds.pop("hung_after", shop.config.processes.hung_after)
        config = replace(shop.config, processes=replace(shop.config.processes, hung_after=hung_after))
        with open_log(config) as log:
            create_topics(log, topics(shop.plan(), names(config), 1))
        builds = {name: lambda _, __, session, ___, kind=kind: kind(session) for name, kind in kinds.items()}
        application = SparkApplication("spark", builds, shop.plan(), config, spark, SystemClock())
        stop, errors = threading.Event(), []

        def work():
            try:
                application.run(stop)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        started.append((thread, stop))
        ends.append(stop)
        return application, errors, thread

    yield start
    for thread, stop in started:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


def told(shop):
    with open_log(shop.config) as log:
        return read_status(log, "headrace.status", ProcessStatus).get(ProcessStatus)


def test_the_others_start_when_the_pipeline_is_ready_and_each_has_a_session_and_settings_of_its_own(run, spark):
    application, _, _ = run(archive=Counter, pipeline=Counter)
    wait_until(lambda: all(thread.is_ready for thread in application.threads))
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"
    assert application.threads[1].since <= application.threads[0].since


def test_spark_logs_nothing_of_the_jobs_that_an_orderly_end_cancels(run, spark, quieted, ends):
    class Last(Counter):
        def stop(self):
            quieted.append(self)

    application, _, _ = run(archive=Last)
    wait_until(lambda: application.threads[0].is_ready)
    assert quieted == []
    ends[0].set()
    wait_until(lambda: len(quieted) == 2)
    assert quieted[0] is spark
    assert isinstance(quieted[1], Last)


def test_a_component_that_fails_takes_no_other_with_it_and_is_told_of(run, shop):
    class Failing(Counter):
        def step(self):
            raise RuntimeError("the disk is full")

    application, _, _ = run(pipeline=Counter, archive=Failing)
    pipeline, archive = application.threads
    wait_until(lambda: archive.restarts)
    steps = pipeline._steps
    wait_until(lambda: pipeline._steps > steps + 3)
    application.look()
    said = told(shop)
    assert said.components["archive"].error == "RuntimeError: the disk is full."
    assert [alarm.kind for alarm in said.alarms] == ["component_restarting"]
    written = json.loads(names(shop.config).path("run", "spark.json").read_text())
    assert written["components"]["pipeline"]["ready"]


def test_a_component_that_waits_for_a_dead_job_is_noticed_and_its_job_is_cancelled(run):
    application, errors, _ = run(pipeline=Counter, archive=Sleeper, hung_after=1_500_000)
    pipeline, archive = application.threads
    wait_until(lambda: archive.restarts)
    assert pipeline.restarts == 0
    assert errors == []


def test_a_component_that_cannot_be_woken_ends_the_process(run):
    gate = threading.Event()

    class Stuck(Counter):
        def step(self):
            gate.wait()
            return False

    _, errors, thread = run(pipeline=Counter, archive=Stuck, hung_after=600_000)
    time.sleep(0)
    wait_until(lambda: errors)
    gate.set()
    thread.join(20)
    (error,) = errors
    assert isinstance(error, MachineError)
    assert (error.code, error.got) == ("component-hung", "archive")


def test_a_first_start_that_is_refused_ends_the_process_with_that_error(run):
    class Refused(Counter):
        def __init__(self, session):
            raise ConfigError("bad-setting", "The lake is nowhere.")

    _, errors, thread = run(pipeline=Refused, archive=Counter)
    thread.join(20)
    assert [error.code for error in errors] == ["bad-setting"]


def test_parts_that_are_separated_are_not_in_the_spark_process(shop):
    from headrace.driver.application import together

    assert together(shop.plan(), shop.config) == ["pipeline", "archive", "late"]
    assert together(shop.plan(), replace(shop.config, processes=ProcessSettings(("archive", "late")))) == ["pipeline"]
