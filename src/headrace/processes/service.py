"""A service in a folder of its own: started, found again by whoever knows the folder, asked to end and then killed.

    lock         inherited, locked, by the service's own process: it says whether the service runs, however it ended
    NAME.json    where it listens, its pid, and whether it was told to stop
    NAME.log     what it says; what it said the last time is in NAME.log.1

It goes on when whoever started it ends. What is started, and how one knows that it is ready, is its own module's
business: `processes.redis`, `processes.broker`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from headrace.errors import HeadraceError, MachineError, shown
from headrace.files import FileLock, is_locked, write_or_overwrite
from headrace.processes.child import ChildProcess, name_exit
from headrace.processes.ports import HOST, last_or_free, refuse_taken

STARTING, STOPPING, KILLED = 60.0, 20.0, 5.0
SETTLED = 1.0
"""Seconds within which whoever only looks at a lock has let go of it."""
LOOK = 0.05


@dataclass(frozen=True)
class Service:
    """A service: where it keeps everything, what people call it, and the verb that starts and stops it.

    >>> Service(Path("data/kafka"), "broker", "kafka").log.as_posix()
    'data/kafka/broker.log'
    """

    folder: Path
    name: str
    verb: str

    @property
    def lock(self) -> Path:
        """Locked while it runs."""
        return self.folder / "lock"

    @property
    def file(self) -> Path:
        """What is known of it."""
        return self.folder / f"{self.name.lower()}.json"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / f"{self.name.lower()}.log"

    @property
    def log_before(self) -> Path:
        """What it said the last time: why it ended may be there."""
        return self.log.with_name(f"{self.log.name}.1")


@dataclass(frozen=True)
class RunningService:
    """A service that runs."""

    address: str
    pid: int


@dataclass(frozen=True)
class _ServiceRecord:
    """What the file says: no pid while it is being started."""

    address: str
    pid: int | None
    stopped: bool


def running(service: Service) -> RunningService | None:
    """The service if it runs, else None."""
    if not is_locked(service.lock):
        return None
    known = _read(service)
    return None if known is None or known.pid is None else RunningService(known.address, known.pid)


def expected(service: Service) -> str | None:
    """Where it runs, or where it will be again: None for one that was never started, or that was told to stop.

    One that was killed, or that a restart of the machine has ended, keeps its address.
    """
    known = _read(service)
    return None if known is None or known.stopped else known.address


@contextlib.contextmanager
def claimed(service: Service) -> Iterator[int]:
    """Be the one that starts the service; gives the lock to hand on to `launch`.

    One that runs, or that another process is just starting, is refused. After a failure all is as it was before.
    """
    with FileLock(service.lock) as lock:
        _claim(service, lock)
        before = _read(service)
        if before is not None:
            if before.pid is not None:
                # If this very process had started it: it is collected here at the latest.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(before.pid, os.WNOHANG)
            # Nobody may take the old pid for the service's own while the lock is held.
            _write(service, replace(before, pid=None))
        try:
            yield lock.descriptor
        except BaseException:
            if before is None:
                service.file.unlink(missing_ok=True)
            else:
                _write(service, before)
            raise


def port_for(service: Service, wanted: int | None) -> int:
    """Where it is to listen: where it is told to, else where it did last time, else anywhere."""
    if wanted is not None:
        return refuse_taken(wanted, service.name)
    known = _read(service)
    return last_or_free(None if known is None else int(known.address.rpartition(":")[2]))


def launch(
    service: Service, lock: int, command: Sequence[str], *, port: int, ready: Callable[[str], bool]
) -> RunningService:
    """Start a claimed service and wait until it is ready; it goes on when this process ends.

    Parameters
    ----------
    lock
        What `claimed` gave.
    command
        What runs it, in the foreground.
    port
        Where it will listen.
    ready
        Asked again and again, with its address, until it says so.
    """
    with contextlib.suppress(FileNotFoundError):
        service.log.replace(service.log_before)
    with service.log.open("wb") as log:
        started = ChildProcess(command, output=log, descriptors=[lock])
    made = RunningService(f"{HOST}:{port}", started.pid)
    try:
        _write(service, _ServiceRecord(made.address, made.pid, stopped=False))
        _await(started, service, lambda: ready(made.address))
    except BaseException:
        started.end()
        raise
    started.leave_running()
    return made


def stop(service: Service, *, grace: float = STOPPING) -> bool:
    """Stop a service: asked first, killed if it does not go. False when it did not run."""
    found, known = running(service), _read(service)
    if known is not None:
        # Before it goes: whoever keeps services up must not start it again.
        _write(service, replace(known, stopped=True))
    if found is None:
        return False
    for number, within in ((signal.SIGTERM, grace), (signal.SIGKILL, KILLED)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, number)
        if _gone(service, found, within):
            return True
    hint = "End the process by its number, or look at its log."
    raise MachineError("no-answer", f"The local {service.name} does not end.", got=f"pid {found.pid}", hint=hint)


def _gone(service: Service, found: RunningService, within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        # One that this very process started is a zombie until it is collected.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(found.pid, os.WNOHANG)
        if running(service) is None:
            return True
        time.sleep(LOOK)
    return False


def _claim(service: Service, lock: FileLock) -> None:
    if not lock.try_acquire(SETTLED, lambda: running(service) is not None):
        found = running(service)
        got = "being started" if found is None else f"{found.address}, pid {found.pid}"
        hint = f"Use it, or stop it with `headrace {service.verb} down`."
        raise HeadraceError("already-running", f"The local {service.name} runs already.", got=got, hint=hint)


def _read(service: Service) -> _ServiceRecord | None:
    try:
        known = _ServiceRecord(**json.loads(service.file.read_text("utf-8")))
        int(known.address.rpartition(":")[2])
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return known


def _write(service: Service, known: _ServiceRecord) -> None:
    write_or_overwrite(service.file, json.dumps(asdict(known)) + "\n")


def _await(started: ChildProcess, service: Service, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STARTING
    while (code := started.code()) is not None or not ready():
        if code is not None or time.monotonic() > deadline:
            raise _failed(service, code)
        time.sleep(LOOK)


def _failed(service: Service, code: int | None) -> MachineError:
    said = service.log.read_text("utf-8", "replace").splitlines()
    told = next((line for line in said if "ERROR" in line or "FATAL" in line), said[-1] if said else "")
    message = f"The local {service.name} did not start."
    got = f"{'no answer' if code is None else name_exit(code)}: {shown(told, 200)}"
    return MachineError("start-failed", message, got=got, hint=f"See {service.log}.")
