"""The process that Spark's Python workers come from: it imports what they need once, then forks each of them.

    JVM ── launcher ──► host ──┬── fork: daemon of a kind of worker, which forks the workers of tasks
                               └── fork: planner, one thread for each streaming source

The planners of all streaming sources are threads of one process, however many tile sets read: each only asks a log
where it ends. The host itself runs no thread, so that forking is safe. It ends with the driver that started it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

from headrace.spark.worker_launcher import CODE, LENGTH, STREAMS

PLANNER = "pyspark.sql.streaming.python_streaming_source_runner"
DAEMON = "pyspark.daemon"
SECONDS = 5.0
"""How long a launcher may take for its request."""


class WorkerRequest:
    """What a launcher asks for: a module to run, with its arguments, environment, working folder and streams."""

    def __init__(self, launcher: socket.socket, streams: list[int], text: bytes) -> None:
        said = json.loads(text)
        self.launcher, self.streams = launcher, streams
        self.arguments: list[str] = said["arguments"]
        self.environment: dict[str, str] = said["environment"]
        self.folder: str = said["folder"]
        self.pid: int = said["pid"]
        self.text = text

    @property
    def module(self) -> str:
        """The module to run."""
        return self.arguments[1]

    def close(self) -> None:
        """Release the streams; the connection to the launcher stays open."""
        for stream in self.streams:
            os.close(stream)


def receive(launcher: socket.socket) -> WorkerRequest:
    """Read a whole request."""
    launcher.settimeout(SECONDS)
    head, streams, _, _ = socket.recv_fds(launcher, LENGTH.size, len(STREAMS))
    (size,) = LENGTH.unpack(head)
    text = launcher.recv(size, socket.MSG_WAITALL)
    if len(text) != size:
        raise OSError("the request was cut off")
    launcher.settimeout(None)
    return WorkerRequest(launcher, list(streams), text)


class Host:
    """Forks workers, and tells each launcher how its worker ended."""

    def __init__(self, listener: socket.socket, driver: int) -> None:
        self._listener, self._driver = listener, driver
        self._launchers: dict[int, socket.socket] = {}
        self._planner: tuple[int, socket.socket] | None = None
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        self._selector = selectors.DefaultSelector()
        for source in (listener, driver, self._woken):
            self._selector.register(source, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the driver has ended."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == self._driver:
                    # Nothing is ever written there: its end is the driver's.
                    return self._end()
                if key.fileobj == self._listener:
                    self._accept()
                elif key.fileobj == self._woken:
                    os.read(self._woken, 4096)
                elif isinstance(key.data, int):
                    self._abandon(key.data)
            self._collect()

    def _accept(self) -> None:
        launcher, _ = self._listener.accept()
        try:
            request = receive(launcher)
        except (OSError, ValueError):
            launcher.close()
            return
        if request.module == PLANNER:
            self._plan(request)
            request.launcher.close()
        elif (pid := os.fork()) == 0:
            self._become(request)
        else:
            self._launchers[pid] = launcher
            self._selector.register(launcher, selectors.EVENT_READ, pid)
        request.close()

    def _become(self, request: WorkerRequest) -> None:
        """What a fork does: be the worker, and end."""
        self._release()
        code = 1
        try:
            code = run_worker(request)
        finally:
            os._exit(code)

    def _release(self) -> None:
        """Give back, in a fork, what is the host's."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        self._listener.close()
        os.close(self._driver)
        for launcher in self._launchers.values():
            launcher.close()

    def _plan(self, request: WorkerRequest) -> None:
        """Hand a streaming source to the planner, which is started for the first one."""
        for _ in range(2):
            if self._planner is None:
                self._planner = self._fork_planner()
            try:
                fds = [request.launcher.fileno()]
                socket.send_fds(self._planner[1], [LENGTH.pack(len(request.text))], fds)
                self._planner[1].sendall(request.text)
                return
            except OSError:
                self._planner[1].close()
                self._planner = None

    def _fork_planner(self) -> tuple[int, socket.socket]:
        here, there = socket.socketpair()
        if (pid := os.fork()) == 0:
            here.close()
            self._release()
            try:
                run_planner(there)
            finally:
                os._exit(0)
        there.close()
        return pid, here

    def _abandon(self, pid: int) -> None:
        """A launcher was killed: so is its worker."""
        if (launcher := self._launchers.pop(pid, None)) is not None:
            self._selector.unregister(launcher)
            launcher.close()
            os.kill(pid, signal.SIGTERM)

    def _collect(self) -> None:
        """Take note of workers that have ended."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if self._planner is not None and pid == self._planner[0]:
                    self._planner[1].close()
                    self._planner = None
                if (launcher := self._launchers.pop(pid, None)) is not None:
                    self._selector.unregister(launcher)
                    with contextlib.suppress(OSError):
                        launcher.sendall(CODE.pack(os.waitstatus_to_exitcode(status)))
                    launcher.close()

    def _end(self) -> None:
        for pid in self._launchers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def run_worker(request: WorkerRequest) -> int:
    """Run a worker's module in this process, with the streams and the environment of its launcher."""
    for stream, number in zip(request.streams, STREAMS, strict=True):
        os.dup2(stream, number)
    request.close()
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.folder)
    # What `python -m` does: a function of a module in the working folder is found there.
    folders = [request.folder, *request.environment.get("PYTHONPATH", "").split(os.pathsep)]
    sys.path[:0] = [folder for folder in folders if folder and folder not in sys.path]
    sys.argv = [request.module, *request.arguments[2:]]
    try:
        if request.module == DAEMON:
            from pyspark import daemon

            daemon.manager()
        else:
            with warnings.catch_warnings():
                # It is imported already, which is the point.
                warnings.simplefilter("ignore", RuntimeWarning)
                runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def run_planner(requests: socket.socket) -> None:
    """Run the planner of each streaming source that is asked for, in a thread of its own, until the host ends."""
    while True:
        head, launchers, _, _ = socket.recv_fds(requests, LENGTH.size, 1)
        if len(head) != LENGTH.size:
            return
        text = requests.recv(LENGTH.unpack(head)[0], socket.MSG_WAITALL)
        request = WorkerRequest(socket.socket(fileno=launchers[0]), [], text)
        threading.Thread(target=_plan_source, args=(request,), daemon=True).start()


def _plan_source(request: WorkerRequest) -> None:
    """Answer the JVM's questions about one streaming source until it has no more."""
    from pyspark.serializers import write_int
    from pyspark.sql.streaming import python_streaming_source_runner as runner
    from pyspark.util import local_connect_and_auth

    code = 1
    try:
        environment = request.environment
        address = environment.get("PYTHON_WORKER_FACTORY_SOCK_PATH") or int(environment["PYTHON_WORKER_FACTORY_PORT"])
        stream, connection = local_connect_and_auth(address, environment.get("PYTHON_WORKER_FACTORY_SECRET"))
        with connection, stream:
            connection.settimeout(None)
            # The launcher's: Spark may end that one, and must not end the others' planner.
            write_int(request.pid, stream)  # type: ignore[no-untyped-call]
            stream.flush()
            runner.main(stream, stream)
        code = 0
    except (EOFError, OSError, SystemExit):
        # Spark has let go of the source.
        code = 0
    finally:
        with contextlib.suppress(OSError):
            request.launcher.sendall(CODE.pack(code))
        request.launcher.close()


def preload() -> None:
    """Import what workers need. Numerical libraries must start no threads: the host forks."""
    import pandas  # noqa: F401
    import pyarrow.compute  # noqa: F401
    import pyspark.daemon
    import pyspark.sql.streaming.python_streaming_source_runner
    import pyspark.sql.worker.create_data_source
    import pyspark.sql.worker.lookup_data_sources
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401

    import headrace.log.embedded.arrow
    import headrace.log.embedded.log
    import headrace.spark.source  # noqa: F401


def _ignore(_: int, __: FrameType | None) -> None:
    """A child has ended: the wake-up is what counts."""


def main(address: str) -> None:
    """Listen first, so that launchers can wait; then import, then serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener: Any = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    preload()
    gc.collect()
    gc.freeze()
    driver = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    try:
        Host(listener, driver).run()
    finally:
        Path(address).unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1])
