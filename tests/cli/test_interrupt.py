"""Ctrl-C at the bad moments: while Python loads the command, in an import, in a finalizer, and while a JVM starts."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.cli.init import create
from headrace.cli.interrupt import Interrupts, if_interrupted
from headrace.cli.main import main

HEADRACE = Path(sys.executable).with_name("headrace")
HOOK = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""


def wait(seconds: float = 30) -> None:
    """Do nothing until an interrupt comes."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("module", ["headrace", "click.core", "headrace.project"])
def test_an_interrupt_while_python_loads_the_command_ends_it_without_a_traceback(tmp_path, module):
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    create(tmp_path / "shop")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPT_AT": module}
    command = [HEADRACE, "check", "--project", tmp_path / "shop"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.strip()) == (130, "Interrupted.")


def test_an_interrupt_in_a_finalizer_is_not_lost():
    class Closed:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            len("the signal is taken here")

    with Interrupts():
        Closed()
        gc.collect()
        with pytest.raises(KeyboardInterrupt):
            wait()


def test_an_interrupt_in_an_import_waits_for_its_end(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhole = True\n"
    (tmp_path / "half_a_module.py").write_text(text)
    with Interrupts() as interrupts:
        assert importlib.import_module("half_a_module").whole
        assert interrupts.is_pending
        with pytest.raises(KeyboardInterrupt):
            wait()
    del sys.modules["half_a_module"]


def test_an_interrupt_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGINT)
        assert not interrupts.happened
    finally:
        signal.signal(signal.SIGINT, before)


def test_work_that_fails_because_it_was_interrupted_is_interrupted_and_says_what_stands(monkeypatch, capsys, caplog):
    def work(*_: object, **__: object) -> None:
        try:
            with if_interrupted(lambda: "Two rows stay."):
                os.kill(os.getpid(), signal.SIGINT)
                wait()
        finally:
            logging.error("the other side is gone")
            raise ConnectionError("the other side is gone")

    monkeypatch.setattr("headrace.cli.main.cli.main", work)
    assert main(["import"]) == 130
    assert capsys.readouterr().err == "Interrupted. Two rows stay.\n"
    assert not caplog.records
    assert logging.root.manager.disable == 0


SUBMIT = """#!/bin/sh
echo $$ > {pid}
exec sleep 600
"""


def test_an_interrupt_while_a_jvm_starts_leaves_none_behind(tmp_path):
    create(tmp_path / "shop")
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "card": "1", "amount": 1, "country": "DE", "at": 1}\n')
    submit, pid = tmp_path / "spark/bin/spark-submit", tmp_path / "pid"
    submit.parent.mkdir(parents=True)
    submit.write_text(SUBMIT.format(pid=pid))
    submit.chmod(0o755)
    command = [HEADRACE, "import", "../rows.jsonl", "--stream", "payments", "--arrival-delay", "5s"]
    # With a Python of its own for Spark's workers, no host is started for them.
    environment = {**os.environ, "SPARK_HOME": str(tmp_path / "spark"), "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(command, cwd=tmp_path / "shop", env=environment, stderr=subprocess.PIPE, text=True) as run:
        deadline = time.monotonic() + 30
        while not (pid.exists() and pid.read_text().strip()):
            assert time.monotonic() < deadline, run.poll()
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=30)
    assert run.returncode == 130
    assert said.startswith("\nInterrupted. No batch was whole yet; what earlier runs imported stays")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
