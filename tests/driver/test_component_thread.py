"""One component in its thread: ready, failing, refused, hanging, stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from headrace.driver.component_thread import HUNG, RESTARTING, RUNNING, STOPPED, ComponentThread
from headrace.errors import ConfigError, MachineError
from headrace.spark.failure import GONE
from headrace.testing import FakeClock
from tests.spark.test_failure import java_error


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


class Sequence:
    """A component whose steps do what a list says, and which waits for the next one when the list is at its end."""

    pause = 0.001

    def __init__(self, *outcomes: Callable[[], object]) -> None:
        self.outcomes, self.steps, self.is_stopped = list(outcomes), 0, False

    def step(self) -> bool:
        self.steps += 1
        if self.outcomes:
            self.outcomes.pop(0)()
        return False

    def is_ready(self) -> bool:
        return self.steps > 1

    def stop(self) -> None:
        self.is_stopped = True


def fail() -> None:
    raise RuntimeError("the lake is away")


def short_delays(monkeypatch) -> list[float]:
    """Have components wait a millisecond; gives the seconds that they wanted to wait."""
    delays: list[float] = []

    def wait(_: ComponentThread, seconds: float) -> None:
        delays.append(seconds)
        time.sleep(0.001)

    monkeypatch.setattr(ComponentThread, "_wait", wait)
    return delays


@pytest.fixture
def run() -> Iterator[Callable[..., ComponentThread]]:
    started: list[ComponentThread] = []

    def start(build: Callable[[], object], **more: object) -> ComponentThread:
        started.append(ComponentThread("archive", build, clock=FakeClock(1_000_000), **more))
        started[-1].start()
        return started[-1]

    yield start
    for thread in started:
        thread.stop()
        assert thread.join(10)


def test_a_component_is_ready_when_it_says_so_and_not_when_it_has_started(run):
    gate = threading.Event()
    thread = run(lambda: Sequence(lambda: None, gate.wait))
    wait_until(lambda: thread.state == RUNNING)
    assert not thread.status().ready
    gate.set()
    wait_until(lambda: thread.status().ready)


def test_a_component_that_fails_is_stopped_and_built_again_after_its_delay(run, monkeypatch):
    delays = short_delays(monkeypatch)
    built: list[Sequence] = []

    def build() -> Sequence:
        built.append(Sequence(fail) if not built else Sequence())
        return built[-1]

    thread = run(build)
    wait_until(lambda: thread.state == RUNNING)
    assert built[0].is_stopped
    assert delays[0] == 1.0
    status = thread.status()
    assert (status.state, status.ready, status.restarts, status.error) == (RUNNING, thread.is_ready, 1, "")


def test_a_component_that_fails_at_every_start_says_why_and_is_never_given_up(run, monkeypatch):
    delays = short_delays(monkeypatch)
    thread = run(fail)
    wait_until(lambda: len(delays) >= 12)
    assert delays[:5] == [1.0, 2.0, 4.0, 8.0, 30.0]
    assert delays[5:] == [30.0] * len(delays[5:])
    assert thread.error == "RuntimeError: the lake is away."
    assert not thread.is_ready


def test_a_component_whose_spark_is_gone_says_so_and_not_that_its_error_cannot_be_shown(run, monkeypatch, caplog):
    delays = short_delays(monkeypatch)

    def fail_in_spark() -> None:
        raise java_error()

    thread = run(fail_in_spark)
    wait_until(lambda: delays)
    assert thread.error == GONE
    assert "exception str() failed" not in caplog.text


def test_an_error_that_another_start_would_repeat_is_kept_for_the_process_to_end_with(run):
    def refuse() -> Sequence:
        raise ConfigError("bad-setting", "The lake is nowhere.")

    thread = run(refuse)
    wait_until(lambda: thread.state == RESTARTING)
    assert thread.refusal is not None
    assert thread.refusal.code == "bad-setting"


def test_the_same_error_after_it_has_worked_is_a_failure_like_any_other(run):
    def refuse() -> None:
        raise ConfigError("bad-setting", "The lake is nowhere.")

    thread = run(lambda: Sequence(lambda: None, refuse))
    wait_until(lambda: thread.state == RESTARTING)
    assert thread.refusal is None
    assert thread.error == "The lake is nowhere."


def test_a_step_that_does_not_end_is_silence_and_cancelling_its_jobs_brings_the_component_back(run):
    clock, jobs, cancelled = [0.0], [0], threading.Event()

    def hang() -> None:
        cancelled.wait()
        raise RuntimeError("cancelled")

    built: list[Sequence] = []

    def build() -> Sequence:
        built.append(Sequence(hang) if not built else Sequence())
        return built[-1]

    thread = run(build, now=lambda: clock[0], activity=lambda: jobs[0], cancel=cancelled.set)
    wait_until(lambda: built and built[0].steps)
    thread.silence()
    clock[0] = 100.0
    assert thread.silence() == 100.0
    jobs[0] += 1
    assert thread.silence() == 0.0, "a job of Spark that goes on is a sign of life"
    clock[0] = 250.0
    assert thread.silence() == 150.0
    thread.report_hung(thread.silence())
    assert thread.status().state == HUNG
    assert thread.status().error == "It has done nothing for 150 s."
    thread.cancel()
    wait_until(lambda: thread.restarts == 1)


def test_a_component_that_waits_for_its_next_step_is_not_silent(run):
    clock = [0.0]
    component = Sequence()
    component.pause = 3_600.0
    thread = run(lambda: component, now=lambda: clock[0])
    wait_until(lambda: thread.state == RUNNING and thread._is_waiting)
    clock[0] = 10_000.0
    assert thread.silence() == 0.0


def test_a_component_that_is_told_to_stop_ends_in_order(run):
    component = Sequence()
    thread = run(lambda: component)
    wait_until(lambda: thread.state == RUNNING)
    thread.stop()
    assert thread.join(10)
    assert thread.state == STOPPED
    assert component.is_stopped


def test_a_failure_while_stopping_is_no_failure(run):
    gate = threading.Event()

    def cut_off() -> None:
        gate.wait()
        fail()

    thread = run(lambda: Sequence(cut_off))
    thread.stop()
    gate.set()
    assert thread.join(10)
    assert thread.restarts == 0
    assert thread.state == STOPPED


def test_a_lake_that_cannot_be_used_is_waited_for_also_at_the_first_start(run):
    def fail_at_lake() -> Sequence:
        raise MachineError("lake-failed", "The lake's table payments/silver cannot be used.")

    thread = run(fail_at_lake)
    wait_until(lambda: thread.state == RESTARTING)
    assert thread.refusal is None
    assert thread.error == "The lake's table payments/silver cannot be used."
