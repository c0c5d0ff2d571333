"""The JVM of this process: it never outlives an interrupted start or interrupted work.

PySpark starts it and hands it over when it is connected. An interrupt before that leaves a JVM that waits for ever, so
it is noted as soon as it is started. An interrupt during a job leaves a connection that answers nothing more until the
job has ended; then only ending the JVM helps, which is harmless, because whatever we write is whole or not there.
"""

from __future__ import annotations

import _thread
import contextlib
import logging
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pyspark.java_gateway
from pyspark import SparkContext
from pyspark.sql import SparkSession

GRACE = 3.0
"""Seconds that a JVM has to end in order, and to remove its temporary files."""
BREAKING = 0.5
"""Seconds from the first broken connection of a JVM that dies to its end."""


@contextlib.contextmanager
def killed_if_interrupted() -> Iterator[None]:
    """While entered, a JVM that PySpark starts is killed if it does not come to its end; our Ctrl-C stays ours."""
    started: list[subprocess.Popen[bytes]] = []

    class NotedPopen(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            with _interrupts_held():
                super().__init__(*arguments, **options)
                started.append(self)

    handler = signal.getsignal(signal.SIGINT)
    gateway = vars(pyspark.java_gateway)
    before, gateway["Popen"] = gateway["Popen"], NotedPopen
    try:
        yield
    except BaseException:
        for each in started:
            each.kill()
            each.wait()
        if started:
            _forget()
        raise
    finally:
        gateway["Popen"] = before
        # PySpark's own speaks to the JVM over the connection that is being interrupted.
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def ended_if_interrupted() -> Iterator[None]:
    """While entered, Ctrl-C ends the JVM before anything else: nobody need wait for its answer to clean up."""
    jvm, before = _process(), signal.getsignal(signal.SIGINT)
    if jvm is None or not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted, disabled = False, logging.root.manager.disable

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            # Py4J tells of every call that comes to nothing now, to whatever logger there is.
            logging.disable(logging.CRITICAL)
            jvm.terminate()
            # Not a `Timer`: the interrupted code may hold a lock that it needs.
            _thread.start_new_thread(_kill_later, (jvm,))
        before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException as error:
        if not interrupted:
            raise
        _end(jvm)
        # Whoever cleaned up without a JVM has failed; what has happened is the interrupt.
        raise (error if isinstance(error, KeyboardInterrupt) else KeyboardInterrupt()) from None
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(disabled)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """While entered, Ctrl-C waits: a process must not be started without being noted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


def has_ended() -> bool:
    """Whether the JVM of this process has ended, which nobody asked it to."""
    jvm = _process()
    try:
        # Its connections break a moment before it is gone.
        return jvm is not None and jvm.wait(BREAKING) is not None
    except subprocess.TimeoutExpired:
        return False


def _process() -> subprocess.Popen[bytes] | None:
    found: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return found


def _kill_later(jvm: subprocess.Popen[bytes]) -> None:
    time.sleep(GRACE)
    jvm.kill()


def _end(jvm: subprocess.Popen[bytes]) -> None:
    """Wait until a JVM is gone; an impatient second Ctrl-C kills it at once."""
    try:
        jvm.wait(GRACE)
    except BaseException:
        jvm.kill()
        jvm.wait()
    finally:
        _forget()


def _forget() -> None:
    """Have PySpark start another JVM the next time."""
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
