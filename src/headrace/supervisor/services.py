"""The services that a project has on this machine when its settings name none: a Kafka broker, a Redis.

`headrace up` starts those that the settings ask for before anything that needs them, and starts again what dies. They
are no children of the supervisor: they go on when it ends, with what they hold, until they are told to stop. A broker
or a Redis that the settings name is never touched.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headrace.config.config import Config
from headrace.disk import has_room, translated
from headrace.errors import DiskFullError, HeadraceError, MachineError
from headrace.log.kafka import client as kafka_client
from headrace.processes import broker, jars, redis, service
from headrace.processes.backoff import LONGEST, LOOP_EXITS, LOOP_SECONDS, Backoff
from headrace.processes.service import Service
from headrace.store.redis import client as redis_client
from headrace.topics import broker_folder

Say = Callable[[str], None]


@dataclass
class Local:
    """A service of a project, and how it has been doing; times are seconds of a steady clock."""

    service: Service
    prepare: Callable[[Say], None]
    """Gets what it and its clients need, or refuses; called before anything is started."""
    start: Callable[[], str]
    """Starts it, and gives its address."""
    backoff: Backoff = field(default_factory=Backoff)
    started_at: float = 0.0
    due_at: float = 0.0

    @property
    def name(self) -> str:
        """What it is called in a line: its verb."""
        return self.service.verb


def list_services(config: Config) -> list[Local]:
    """The services that a project can have."""
    broker_at, redis_at = broker_folder(config), redis.redis_folder(config)

    def prepare_broker(say: Say) -> None:
        kafka_client.require()
        _fetch(say)

    def prepare_redis(_: Say) -> None:
        redis_client.require()
        if redis.running(redis_at) is None:
            redis.find()

    return [
        Local(broker.broker_service(broker_at), prepare_broker, lambda: broker.up(broker_at).brokers),
        Local(redis.redis_service(redis_at), prepare_redis, lambda: redis.up(redis_at).address),
    ]


def _fetch(say: Say) -> None:
    """Have the jars that the broker and Spark need, those that are missing from where Maven gets them."""
    for use in (jars.BROKER, jars.CONNECTOR):
        try:
            jars.present(use)
        except MachineError:
            say(f"kafka: fetching the jars of the {use}, once")
            jars.fetch(use)


def find_required(config: Config, say: Say) -> Iterator[Local]:
    """The services that the settings ask for and do not name; what is used instead of one is said."""
    kafka, shared = list_services(config)
    if config.log.kind == "kafka" and not config.kafka.brokers:
        yield kafka
    if config.store.kind == "redis" and not redis.named(config):
        # A Redis of the machine's own is as good; but who has one of their own means that.
        if service.expected(shared.service) is None and redis.answers(redis.USUAL):
            say(f"redis: the one at {redis.USUAL} is used")
        else:
            yield shared


@dataclass(frozen=True)
class LocalState:
    """How a service of the project stands: `ready`, or `stopped` when it does not run."""

    state: str
    pid: int | None
    port: int
    log: Path


def find_running(config: Config) -> dict[str, LocalState]:
    """The services that a project has on this machine, by name: those that run, and those that are to run again."""
    found: dict[str, LocalState] = {}
    for local in list_services(config):
        expected, now = service.expected(local.service), service.running(local.service)
        address = expected if now is None else now.address
        if address is not None:
            state, pid = ("stopped", None) if now is None else ("ready", now.pid)
            found[local.name] = LocalState(state, pid, int(address.rpartition(":")[2]), local.service.log)
    return found


def logs(config: Config) -> dict[str, Path]:
    """The log files of the services that a project has ever had on this machine."""
    return {local.name: local.service.log for local in list_services(config) if local.service.log.is_file()}


def running(config: Config) -> dict[str, str]:
    """The services of a project that run, by name, with their addresses."""
    found = {local.name: service.running(local.service) for local in list_services(config)}
    return {name: each.address for name, each in found.items() if each is not None}


def stop(config: Config) -> list[str]:
    """Stop the services of a project; gives the names of those that ran."""
    return [local.name for local in reversed(list_services(config)) if service.stop(local.service)]


class Services:
    """The services that a project's settings ask for, while it is up.

    Parameters
    ----------
    config
        The project's settings.
    say
        Told, in a line, of every change.
    now
        Seconds of a steady clock.
    """

    def __init__(self, config: Config, say: Say, now: Callable[[], float] = time.monotonic) -> None:
        self._config, self._say, self._now = config, say, now
        self._kept: list[Local] = []

    def start(self) -> None:
        """Start what does not run. If one cannot be started, those that this call has started are stopped again."""
        started: list[Local] = []
        self._kept = list(find_required(self._config, self._say))
        for local in self._kept:
            local.prepare(self._say)
        try:
            for local in self._kept:
                found = service.running(local.service)
                if found is not None:
                    self._say(f"{local.name}: runs at {found.address}")
                else:
                    self._start(local)
                    started.append(local)
        except BaseException:
            for local in reversed(started):
                service.stop(local.service)
            raise

    def look(self) -> None:
        """Start again what has died: at once the first time, then after 1 s, 2 s, 4 s; what was stopped stays so.

        While its disk is full nothing is started.
        """
        for local in self._kept:
            gone = service.running(local.service) is None and service.expected(local.service) is not None
            if gone and self._now() >= local.due_at and has_room(local.service.folder):
                self._restart(local)

    def _restart(self, local: Local) -> None:
        self._say(f"{local.name}: gone, starting it again (see {local.service.log_before})")
        now = self._now()
        delay = local.backoff.exited(at=now, healthy=now - local.started_at)
        try:
            with translated():
                self._start(local)
        except DiskFullError as error:
            self._say(f"{local.name}: {error.brief}")
            local.backoff.exits.pop()
            local.due_at = self._now() + LONGEST
            return
        except HeadraceError as error:
            self._say(f"{local.name}: {error.brief}")
        if delay is None:
            often = f"for the {LOOP_EXITS}th time in {LOOP_SECONDS / 60:.0f} minutes"
            self._say(f"{local.name}: was gone {often}; from now on it is left to you (`headrace {local.name} up`)")
        local.due_at = math.inf if delay is None else self._now() + delay

    def _start(self, local: Local) -> None:
        began = self._now()
        address = local.start()
        local.started_at = self._now()
        self._say(f"{local.name}: started at {address} ({local.started_at - began:.1f} s)")
