"""The broker that tests share: as `headrace kafka up` starts it, with a second listener that wants a password.

It tidies up far more often than a real one, so that tests of retention and compaction need not wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.processes import broker, jars
from headrace.processes.ports import free_ports

__all__ = ["PASSWORD", "USER", "Cluster", "free_ports", "properties", "started"]

USER, PASSWORD = "ada", "open-sesame-3141"


@dataclass(frozen=True)
class Cluster:
    """Where the broker is: for anybody, and for those who know the password."""

    folder: Path
    brokers: str
    guarded: str

    @property
    def login(self) -> dict[str, str]:
        """The options with which `guarded` lets one in."""
        return {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }


@contextmanager
def started(folder: Path) -> Iterator[Cluster]:
    """A broker that runs while the block does."""
    jars.fetch(jars.BROKER)
    port, guarded, controller = free_ports(3)
    cluster = Cluster(folder, f"127.0.0.1:{port}", f"127.0.0.1:{guarded}")
    broker.up(folder, port=port, properties=properties(port, guarded, controller))
    try:
        yield cluster
    finally:
        broker.down(folder, grace=1)


def properties(port: int, guarded: int, controller: int) -> dict[str, str]:
    """What the tests' broker has beside the settings of every local one."""
    listeners = {"PLAINTEXT": port, "SASL_PLAINTEXT": guarded, "CONTROLLER": controller}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in listeners.items()),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} required user_{USER}="{PASSWORD}";',
        "log.initial.task.delay.ms": "100",
        "log.retention.check.interval.ms": "100",
        "log.cleaner.backoff.ms": "100",
        "log.segment.delete.delay.ms": "100",
    }
