"""The driver's side of the worker host: it starts the host, and names the launcher as the Python of Spark's workers."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from headrace.processes.child import ChildProcess
from headrace.spark import worker_launcher

VARIABLE = "PYSPARK_PYTHON"
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1"}
"""A library that starts threads when it is imported cannot be forked."""


def start_worker_host() -> None:
    """Have this process's Spark take its Python workers from a host, unless the user has named another Python.

    Called before the JVM starts, so that both get ready at the same time.
    """
    if VARIABLE in os.environ or sys.platform != "linux":
        os.environ.setdefault(VARIABLE, sys.executable)
        return
    folder = Path(tempfile.mkdtemp(prefix="headrace-workers-"))
    address, launcher = folder / "socket", folder / "python"
    line = [sys.executable, "-I", "-S", worker_launcher.__file__, sys.executable, str(address)]
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(line)} "$@"\n', encoding="utf-8")
    launcher.chmod(0o700)
    command = [sys.executable, "-P", "-m", "headrace.spark.worker_host", str(address)]
    environment = {**os.environ, **SINGLE_THREADED}
    host = ChildProcess(
        command, input=subprocess.PIPE, environment=environment, prepare=_ignore_interrupts, own_session=False
    )
    os.environ[VARIABLE] = str(launcher)
    atexit.register(_end, host, folder)


def _ignore_interrupts() -> None:
    """A terminal's Ctrl-C reaches every process; what becomes of the host is for the driver to decide."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(host: ChildProcess, folder: Path) -> None:
    if host.stdin is not None:
        host.stdin.close()
    host.wait(2)
    host.end()
    shutil.rmtree(folder, ignore_errors=True)
