"""A Kafka broker on this machine, for development and tests: one KRaft node, its data in a folder of its own.

It listens on the loopback alone and keeps one copy of everything, so it is no production cluster. How its process is
started, found and stopped is that of every local service (`processes.service`). `log.kafka.log` talks to it as to any
other broker; `topics` finds it when a project names no brokers.
"""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import MachineError, shown
from headrace.log.kafka.client import answers, require
from headrace.log.record import LARGEST_MESSAGE
from headrace.machine import find_java
from headrace.processes import service
from headrace.processes.jars import BROKER, present
from headrace.processes.ports import HOST, free_ports
from headrace.processes.service import STOPPING, Service

HEAP_MEGABYTES = 512
_LOGGING = """rootLogger.level = WARN
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c: %m%n
"""


@dataclass(frozen=True)
class LocalBroker:
    """A local broker that runs."""

    brokers: str
    pid: int


def broker_service(folder: Path) -> Service:
    """A broker by its folder."""
    return Service(folder, "broker", "kafka")


def running(folder: Path) -> LocalBroker | None:
    """The broker of a folder if it runs, else None."""
    found = service.running(broker_service(folder))
    return None if found is None else LocalBroker(found.address, found.pid)


def up(folder: Path, *, port: int | None = None, properties: Mapping[str, str] | None = None) -> LocalBroker:
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
    made = broker_service(folder)
    with service.claimed(made) as lock:
        listen = service.port_for(made, port)
        _write_properties(folder, listen, properties or {})
        command = [str(java / "bin" / "java"), f"-Xmx{HEAP_MEGABYTES}m", "-Xms128m", "-XX:+UseSerialGC"]
        command += [f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", "-cp", ":".join(map(str, jars))]
        _format(command, folder)
        command += ["kafka.Kafka", str(folder / "server.properties")]
        started = service.launch(made, lock, command, port=listen, ready=answers)
        return LocalBroker(started.address, started.pid)


def down(folder: Path, *, grace: float = STOPPING) -> bool:
    """Stop the broker of a folder: asked first, killed if it does not go. False when none runs."""
    return service.stop(broker_service(folder), grace=grace)


def _write_properties(folder: Path, port: int, more: Mapping[str, str]) -> None:
    (controller,) = free_ports(1)
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
        hint = "Look at the permissions of the data folder, and at the room on its disk."
        raise MachineError(
            "start-failed", "The local broker's storage cannot be prepared.", got=shown(said, 300), hint=hint
        )
