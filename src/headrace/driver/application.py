"""The Spark process: one session, and the components that run in it, each in a thread of its own.

`headrace run spark` runs all that no setting gives a process of its own; `headrace run archive` runs one. The main
thread does no work. Once a second it looks whether components are silent, and tells: in a file for the supervisor,
which also is the process's sign of life, and in the status topic for everybody else.

A component that has been silent for `processes.hung_after` is reported and its Spark jobs are cancelled. One that
cannot be woken by that ends the process after the same time again, because a thread cannot be ended from outside.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from headrace.alarms.alarm import StreamAlarm
from headrace.clock import SECOND, Clock, SystemClock
from headrace.config.config import Config, names
from headrace.disk import has_room
from headrace.driver.component_thread import HUNG, RESTARTING, ComponentThread
from headrace.errors import HeadraceError, MachineError
from headrace.files import write_or_overwrite
from headrace.log.protocol import Log
from headrace.plan.capability import refuse_impossible_mode
from headrace.plan.model import Plan
from headrace.processes.component import Component
from headrace.spark.pipeline.slots import slots
from headrace.spark.session import end_quietly, local_session
from headrace.status.records import ProcessStatus
from headrace.status.topic import StatusPublisher
from headrace.topics import STATUS, create, open_log, spark_jars, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Build = Callable[[Plan, Config, "SparkSession", Clock], Component]

PIPELINE = "pipeline"
LOOK = 1.0
"""Seconds between two looks at the components."""
FIRST_ALONE = 30.0
"""Seconds after which the others start although the pipeline is not ready: they must not wait for ever."""
ROOM = 4 * 1024
"""Bytes that the file for the supervisor has at the least: blanks keep room for longer words while the disk is full."""
DRAIN = 6.0
"""Seconds that components have to end by themselves, all together."""
SCHEDULING = {"spark.scheduler.mode": "FAIR"}
SETTINGS = {"archive": {"spark.sql.shuffle.partitions": "2", "spark.sql.execution.arrow.maxRecordsPerBatch": "20000"}}
"""What a component's session has of its own."""


class SparkApplication:
    """The components of one process.

    Parameters
    ----------
    name
        The process: "spark", or the component that has a process of its own.
    builds
        What builds each component, by name.
    """

    def __init__(
        self, name: str, builds: Mapping[str, Build], plan: Plan, config: Config, session: SparkSession, clock: Clock
    ) -> None:
        self._config, self._session, self._clock = config, session, clock
        self._log: Log = open_log(config, clock)
        self._publisher = StatusPublisher(self._log, names(config).topic(STATUS), clock, process=name)
        self._file = names(config).path("run", f"{name}.json")
        self._written = ""
        self.threads = [self._thread(part, build, plan) for part, build in builds.items()]

    def _thread(self, name: str, build: Build, plan: Plan) -> ComponentThread:
        jobs = ComponentJobs(self._session, name)

        def built() -> Component:
            jobs.claim_thread()
            session = self._session.newSession()
            for setting, value in SETTINGS.get(name, {}).items():
                session.conf.set(setting, value)
            return build(plan, self._config, session, self._clock)

        room = partial(has_room, self._file.parent)
        return ComponentThread(name, built, activity=jobs.activity, cancel=jobs.cancel, room=room, clock=self._clock)

    def run(self, stop: threading.Event) -> None:
        """Run until told to stop. The error that refuses a first start, or a component beyond help, ends it too."""
        try:
            self._start(stop)
            while not stop.wait(LOOK):
                self.look()
            end_quietly(self._session)
        finally:
            self.stop()

    def _start(self, stop: threading.Event) -> None:
        """Start the pipeline, and the others when it is ready: on a small machine they would only slow it down."""
        first = [thread for thread in self.threads if thread.name == PIPELINE]
        for thread in first:
            thread.start()
        waited = 0.0
        while first and not first[0].is_ready and waited < FIRST_ALONE and not stop.wait(LOOK / 10):
            waited += LOOK / 10
            self.look()
        for thread in self.threads:
            if thread not in first:
                thread.start()
        self.look()

    def look(self) -> None:
        """Raise a refusal; notice components that hang; tell how all of them are."""
        limit = self._config.processes.hung_after / SECOND
        for thread in self.threads:
            if thread.refusal is not None:
                raise thread.refusal
            if (silent := thread.silence()) < limit:
                continue
            if thread.state == HUNG:
                message, hint = "A component hangs and cannot be woken.", "The supervisor starts the process again."
                raise MachineError("component-hung", message, got=thread.name, hint=hint)
            thread.report_hung(silent)
            thread.cancel()
        self._publish_status()

    def _publish_status(self) -> None:
        """Publish how the components are. A full disk or a log that is away is no reason to end them."""
        components = {thread.name: thread.status() for thread in self.threads}
        alarms = [alarm.status() for thread in self.threads for alarm in _alarms(thread)]
        with self._publisher.tolerate(OSError, HeadraceError):
            self._write(msgspec.json.encode({"pid": os.getpid(), "components": components}).decode())
            self._publisher.publish(ProcessStatus(components=components, alarms=alarms))

    def _write(self, text: str) -> None:
        """Write the file for the supervisor where something has changed, and show that the process lives."""
        try:
            if text != self._written:
                write_or_overwrite(self._file, text.ljust(ROOM))
                self._written = text
        finally:
            if self._file.exists():
                os.utime(self._file)

    def stop(self) -> None:
        """Ask every component to end, cancel what they wait for, and give them a moment."""
        for thread in self.threads:
            thread.stop()
        for thread in self.threads:
            if thread.name != PIPELINE:
                thread.cancel()
        deadline = time.monotonic() + DRAIN
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._log.close()


class ComponentJobs:
    """The Spark jobs of one component: a job group and a scheduling pool of its own."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self._context, self._name = session.sparkContext, name

    @property
    def group(self) -> str:
        """The name of the job group."""
        return f"headrace.{self._name}"

    def claim_thread(self) -> None:
        """Have the jobs of this thread belong to the component."""
        self._context.setJobGroup(self.group, self._name)
        self._context.setLocalProperty("spark.scheduler.pool", self._name)

    def activity(self) -> object:
        """What its jobs have done, as a value that changes whenever one begins, ends or finishes a task."""
        tracker = self._context.statusTracker()
        jobs = sorted(tracker.getJobIdsForGroup(self.group))[-3:]
        stages = [stage for job in jobs if (info := tracker.getJobInfo(job)) is not None for stage in info.stageIds]
        found = [tracker.getStageInfo(stage) for stage in stages]
        return jobs, [(info.stageId, info.numCompletedTasks) for info in found if info is not None]

    def cancel(self) -> None:
        """End its jobs. A batch that is cut off leaves nothing, so nobody need wait for it."""
        self._context.cancelJobGroup(self.group)


def _alarms(thread: ComponentThread) -> Sequence[StreamAlarm]:
    """What is wrong with a component."""
    if thread.state not in (RESTARTING, HUNG):
        return []
    says = f"Component {thread.name} is {thread.state}: {thread.error}"
    return [StreamAlarm(thread.name, None, f"component_{thread.state}", None, None, thread.since, says)]


def builders(plan: Plan, config: Config, *, accept_loss: bool = False) -> dict[str, Build]:
    """What builds each component that a project needs, in the order of their start."""
    from headrace.evaluation.component import Evaluating, is_needed
    from headrace.spark.archive.component import Archiving
    from headrace.spark.late.component import LateLanes
    from headrace.spark.pipeline.pipeline import Pipeline

    found: dict[str, Build] = {
        PIPELINE: Pipeline,
        "archive": partial(Archiving, accept_loss=accept_loss),
        "late": LateLanes,
    }
    if is_needed(plan, config):
        found["evaluate"] = Evaluating
    return found


def together(plan: Plan, config: Config) -> list[str]:
    """The components that share a process: all that no setting separates."""
    return [name for name in builders(plan, config) if name not in config.processes.separate]


def main(
    plan: Plan,
    config: Config,
    stop: threading.Event,
    clock: Clock | None = None,
    *,
    only: str | None = None,
    accept_loss: bool = False,
) -> None:
    """Run the components of a project that share a process, or only one of them, until told to stop."""
    refuse_impossible_mode(config)
    clock = clock or SystemClock()
    chosen = together(plan, config) if only is None else [only]
    builds = builders(plan, config, accept_loss=accept_loss)
    with open_log(config, clock) as log:
        create(log, topics(plan, names(config), config.log.partitions))
        needed = slots(plan, config, log) if PIPELINE in chosen else 2
    title = f"headrace {config.name} {only or ''}".strip()
    with resources.as_file(resources.files("headrace.driver") / "pools.xml") as pools:
        options = SCHEDULING | {"spark.scheduler.allocation.file": pools.as_uri()}
        session = local_session(title, needed, spark_jars(config, plan), options=options)
        try:
            wanted = {name: build for name, build in builds.items() if name in chosen}
            SparkApplication(only or "spark", wanted, plan, config, session, clock).run(stop)
        finally:
            session.stop()
