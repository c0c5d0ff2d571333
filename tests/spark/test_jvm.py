"""A JVM whose work is interrupted ends before anything else; a process that only waits stands for it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from headrace.cli.main import main
from headrace.errors import HeadraceError
from headrace.spark import jvm, session
from headrace.spark.failure import GONE
from headrace.spark.session import end_quietly

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"


def interrupted_work() -> None:
    """A job that is waited for; whoever cleans up after it finds that the JVM does not answer."""
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    finally:
        raise Py4JNetworkError("Answer from Java side is empty")


@pytest.mark.parametrize("program", ["import time; print(flush=True); time.sleep(600)", STUBBORN])
def test_an_interrupt_ends_the_jvm_and_stays_an_interrupt(monkeypatch, program):
    monkeypatch.setattr(jvm, "GRACE", 0.1)
    forgotten: list[bool] = []
    monkeypatch.setattr(jvm, "_forget", lambda: forgotten.append(True))
    process = subprocess.Popen([sys.executable, "-S", "-c", program], stdout=subprocess.PIPE)
    with process:
        process.stdout.readline()
        monkeypatch.setattr(jvm, "_process", lambda: process)
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), jvm.ended_if_interrupted():
            interrupted_work()
        assert process.poll() is not None
    assert forgotten == [True]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_failure_that_is_no_interrupt_stays_what_it_is(monkeypatch):
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as process:
        monkeypatch.setattr(jvm, "_process", lambda: process)
        with pytest.raises(Py4JNetworkError), jvm.ended_if_interrupted():
            raise Py4JNetworkError("Answer from Java side is empty")
        assert process.poll() is None
        process.kill()


def test_work_whose_jvm_has_ended_by_itself_says_so(monkeypatch, tmp_path):
    def refused() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "local_session", lambda *_, **__: SimpleNamespace(stop=refused))
    logger = logging.getLogger("py4j")
    monkeypatch.setattr(logger, "level", logger.level)
    with subprocess.Popen(["true"]) as process:
        process.wait()
        monkeypatch.setattr(jvm, "_process", lambda: process)
        with pytest.raises(HeadraceError) as caught, session.quiet_session("work", tmp_path / "spark.log"):
            refused()
    assert (caught.value.code, caught.value.got) == ("spark-failed", GONE)


def test_an_interrupted_verb_ends_its_jvm_and_shows_no_traceback(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(jvm, "GRACE", 0.1)
    monkeypatch.setattr(jvm, "_forget", lambda: None)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "local_session", lambda *_, **__: SimpleNamespace(stop=lambda: None))
    logger = logging.getLogger("py4j")
    monkeypatch.setattr(logger, "level", logger.level)

    def verb(*_: object, **__: object) -> None:
        with session.quiet_session("work", tmp_path / "spark.log"):
            interrupted_work()

    monkeypatch.setattr("headrace.cli.main.cli.main", verb)
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as process:
        monkeypatch.setattr(jvm, "_process", lambda: process)
        try:
            code = main(["import"])
            has_ended = process.poll() is not None
        finally:
            process.kill()
    assert has_ended
    assert (code, capsys.readouterr().err.strip()) == (130, "Interrupted.")


def test_a_quiet_end_is_quiet_also_when_the_jvm_is_gone(monkeypatch):
    levels: list[str] = []

    def set_level(level: str) -> None:
        levels.append(level)
        raise Py4JNetworkError("Answer from Java side is empty")

    logger = logging.getLogger("py4j")
    monkeypatch.setattr(logger, "level", logger.level)
    end_quietly(SimpleNamespace(sparkContext=SimpleNamespace(setLogLevel=set_level)))
    assert (levels, logger.level) == (["OFF"], logging.CRITICAL)
