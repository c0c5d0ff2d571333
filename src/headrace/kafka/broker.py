"""A Kafka broker on this machine, for development and tests: one KRaft node, its data in a folder of its own.

It listens on the loopback alone and keeps one copy of everything, so it is no production cluster. Its process inherits
a locked file: the lock says whether it runs, however it ended and whatever has its pid by now. `log.kafka` talks to it
as to any other broker; `topics` finds it when a project names no brokers.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.errors import HeadraceError, MachineError, shown
from headrace.kafka.jars import BROKER, present
from headrace.log.kafka_client import answers, require
from headrace.log.record import LARGEST_MESSAGE
from headrace.machine import find_java

HOST = "127.0.0.1"
HEAP_MEGABYTES = 512
STARTING, STOPPING, KILLED = 60.0, 20.0, 5.0
LOOK = 0.05
_LOGGING = """rootLogger.level = WARN
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c: %m%n
"""


@dataclass(frozen=True)
class Running:
    """A local broker that runs."""

    brokers: str
    pid: int


def running(folder: Path) -> Running | None:
    """The broker of a folder if it runs, else None."""
    try:
        told = json.loads((folder / "broker.json").read_text("utf-8"))
        with (folder / "lock").open("ab") as file:
            return Running(told["brokers"], told["pid"]) if not _take(file.fileno()) else None
    except (OSError, ValueError, KeyError):
        return None


def up(folder: Path, *, port: int | None = None, properties: Mapping[str, str] | None = None) -> Running:
    """Start a broker and wait until it answers; it goes on when this process ends.

    Its jars must be there: see `jars.fetch`.

    Parameters
    ----------
    folder
        Where its data, settings, log and pid are kept.
    port
        Where to listen; otherwise where it listened last time if that is free, else any free port.
    properties
        Settings of the broker beside, or in place of, those written here.
    """
    require()
    jars, java = present(BROKER), find_java().home
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as lock:
        if not _take(lock.fileno()):
            found = running(folder)
            got = None if found is None else f"{found.brokers}, pid {found.pid}"
            hint = "Use it, or stop it with `headrace kafka down`."
            raise HeadraceError("already-running", "The local broker runs already.", got=got, hint=hint)
        listen = _port(folder) if port is None else _free(port)
        _write_properties(folder, listen, properties or {})
        command = [str(java / "bin" / "java"), f"-Xmx{HEAP_MEGABYTES}m", "-Xms128m", "-XX:+UseSerialGC"]
        command += [f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", "-cp", ":".join(map(str, jars))]
        _format(command, folder)
        with (folder / "broker.log").open("wb") as log:
            started = subprocess.Popen(
                [*command, "kafka.Kafka", str(folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
        made = Running(f"{HOST}:{listen}", started.pid)
        (folder / "broker.json").write_text(json.dumps(asdict(made)), encoding="utf-8")
        _await(started, folder, lambda: answers(made.brokers))
        # It is meant to outlive this process: Python need not warn of it.
        started.returncode = 0
        return made


def down(folder: Path, *, grace: float = STOPPING) -> bool:
    """Stop the broker of a folder: asked first, killed if it does not go. False when none runs."""
    found = running(folder)
    if found is None:
        return False
    for number, within in ((signal.SIGTERM, grace), (signal.SIGKILL, KILLED)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, number)
        if _gone(folder, found, within):
            return True
    raise MachineError("no-answer", "The local broker does not end.", got=f"pid {found.pid}")


def _gone(folder: Path, found: Running, within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        # A broker that this very process started is a zombie until it is collected.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(found.pid, os.WNOHANG)
        if running(folder) is None:
            return True
        time.sleep(LOOK)
    return False


def _take(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _port(folder: Path) -> int:
    """The port of last time, so that addresses written down stay right, or any other."""
    last = 0
    with contextlib.suppress(OSError, ValueError, KeyError):
        last = int(json.loads((folder / "broker.json").read_text("utf-8"))["brokers"].rpartition(":")[2])
    for port in (last, 0):
        with contextlib.suppress(OSError), _bound(port) as taken:
            return taken
    raise MachineError("port-taken", "No port is free.")


def _free(port: int) -> int:
    # Somebody else's broker would answer there, and be taken for the new one.
    try:
        with _bound(port):
            return port
    except OSError as error:
        message = "The port for the broker is taken or may not be used."
        raise MachineError("port-taken", message, got=f"{HOST}:{port}: {error.strerror}") from None


@contextlib.contextmanager
def _bound(port: int) -> Iterator[int]:
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOST, port))
        yield held.getsockname()[1]


def _write_properties(folder: Path, port: int, more: Mapping[str, str]) -> None:
    with _bound(0) as controller:
        pass
    copies = {
        f"{name}.replication.factor": "1"
        for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic", "default")
    }
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "log.dirs": str(folder / "data"),
        **copies,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "log.message.timestamp.type": "LogAppendTime",
        "log.retention.ms": "-1",
        # Compaction has time; whoever waits for a record has not.
        "log.cleaner.io.max.bytes.per.second": str(16 * 1024 * 1024),
        "log.cleaner.dedupe.buffer.size": str(32 * 1024 * 1024),
        # As large as the other logs take them, and what a batch adds around them.
        "message.max.bytes": str(LARGEST_MESSAGE + 1024 * 1024),
        **more,
    }
    # A backslash or a line break in a path would end or change a line of a properties file.
    lines = [f"{name}={value.replace(chr(92), chr(92) * 2)}" for name, value in settings.items()]
    file = folder / "server.properties"
    file.touch(mode=0o600)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")


def _format(command: Sequence[str], folder: Path) -> None:
    """Prepare the data folder, once."""
    if (folder / "data" / "meta.properties").is_file():
        return
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
    tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(folder / "server.properties")]
    ran = subprocess.run([*command, *tool], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        said = ran.stderr.strip() or ran.stdout.strip()
        raise MachineError("start-failed", "The local broker's storage cannot be prepared.", got=shown(said, 300))


def _await(started: subprocess.Popen[bytes], folder: Path, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STARTING
    try:
        while (code := started.poll()) is not None or not ready():
            if code is not None or time.monotonic() > deadline:
                raise _failed(folder, code)
            time.sleep(LOOK)
    except BaseException:
        started.kill()
        started.wait()
        raise


def _failed(folder: Path, code: int | None) -> MachineError:
    said = (folder / "broker.log").read_text("utf-8", "replace").splitlines()
    told = next((line for line in said if "ERROR" in line or "FATAL" in line), said[-1] if said else "")
    message = "The local broker did not start."
    got = f"{'no answer' if code is None else f'exit code {code}'}: {shown(told, 200)}"
    return MachineError("start-failed", message, got=got, hint=f"See {folder / 'broker.log'}.")
