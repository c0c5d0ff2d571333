"""The supervisor: starts children in order, waits until they are ready, restarts what exits, ends them all.

    starting ──► ready ──► (exit) restarting ──► starting ...      stopped: when all is over
                                ├──► failed: it exits too often, or refuses to run at the start (exit codes 2 and 3)
                                └──► waiting for space: the disk is full, and it is started when there is room again

`step` looks at every child once and never waits, so tests drive it with a clock of their own. Every change goes to the
status file, which is written later where the disk is full. What the children are is `stack`'s business.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace.clock import Clock, SystemClock, show_time
from headrace.disk import has_room, is_full
from headrace.errors import DiskFullError, HeadraceError
from headrace.processes import log_file
from headrace.processes import process_identity as process
from headrace.processes.backoff import LOOP_EXITS, LOOP_SECONDS, Backoff
from headrace.processes.child import ChildProcess, show_exit
from headrace.processes.state_folder import StateFolder, write_status
from headrace.supervisor.child import ChildCommand, start_child

GRACE = 8.0
"""Seconds a child has to end by itself."""
REFUSED = (2, 3)
"""Exit codes of a child that refuses what was asked, or lacks something.

At the start it would say the same thing again. Once all were ready it lacks what was there: a log, say, that is away.
"""
SHOWN_LINES = 12
NO_ROOM = "waiting for space"
"""The state of a child that has exited because the disk is full. It is never given up for that."""
FAILING = ("restarting", "hung")
"""States of a part of a child that make the whole degraded."""


@dataclass(frozen=True)
class ChildExit:
    """How a child exited: its code, negative for a signal, when in microseconds, and the reason in words."""

    code: int
    at: int
    reason: str


@dataclass
class ChildState:
    """A child and how it is doing. Times ending in `_at` are of the steady clock, `since` is microseconds."""

    child: ChildCommand
    state: str = "waiting"
    since: int = 0
    process: ChildProcess | None = None
    started: int = 0
    started_at: float = 0.0
    ready_at: float | None = None
    due_at: float = 0.0
    restarts: int = 0
    last_exit: ChildExit | None = None
    why: str | None = None
    touched: int = 0
    touched_at: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)


class Supervisor:
    """Keeps children running.

    Parameters
    ----------
    children
        In the order in which they are started.
    place
        Where logs and status go.
    say
        Told, in a line, of every change.
    now
        Seconds of a steady clock.
    clock
        The time that is shown.
    grace
        Seconds a child has to end by itself.
    about
        What the status file says besides.
    room
        Whether the disk under the data folder is not full.
    """

    def __init__(
        self,
        children: Sequence[ChildCommand],
        place: StateFolder,
        *,
        say: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        clock: Clock | None = None,
        grace: float = GRACE,
        about: dict[str, Any] | None = None,
        room: Callable[[], bool] | None = None,
    ) -> None:
        self.watched = [ChildState(child) for child in children]
        self.was_ready = False
        self._place, self._say, self._now, self._grace = place, say, now, grace
        self._clock = clock or SystemClock()
        self._about, self._stopping = about or {}, False
        self._me = process.identify(os.getpid())
        self._began = self._clock.now()
        self._room = room or partial(has_room, place.data)
        self._full_since: int | None = None
        self._is_written = True

    @property
    def state(self) -> str:
        """How the whole is doing: starting, ready, degraded, failed, stopping or stopped."""
        first = {watched.state for watched in self.watched if watched.child.after is None}
        others = {watched.state for watched in self.watched if watched.child.after is not None}
        states = first | others
        if self._stopping:
            return "stopped" if states <= {"stopped", "failed"} else "stopping"
        if first <= {"ready"} and others <= {"ready", "waiting", "starting"}:
            limited = self.failing() or self._full_since is not None
            return "degraded" if self.was_ready and limited else "ready"
        if self.was_ready:
            return "degraded"
        return "failed" if "failed" in states else "starting"

    def failing(self) -> list[str]:
        """Parts of ready children that are being started again, or hang."""
        parts = [part for watched in self.watched for part in watched.details.get("components", {}).items()]
        return [name for name, part in parts if part["state"] in FAILING]

    def missing(self) -> list[str]:
        """Children that do not run, and of those that do the parts that do not, each with its state."""
        return [said for watched in self.watched if (said := _missing(watched))]

    def start(self) -> None:
        """Start every child that waits for no other, in order."""
        for watched in self.watched:
            if watched.child.after is None:
                self._spawn(watched)

    def step(self) -> None:
        """Look at every child once, and do what is due."""
        self._look_at_disk()
        for watched in self.watched:
            running = watched.process
            if watched.state == "waiting" and self._ready(watched.child.after):
                self._spawn(watched)
            elif watched.state in ("restarting", NO_ROOM) and self._is_due(watched):
                watched.restarts += 1
                self._spawn(watched)
            elif running is not None and (code := running.code()) is not None:
                self._exited(watched, code, watched.why or show_exit(code))
            elif running is not None and watched.state == "starting" and watched.why is None:
                self._ask(watched, running)
            elif running is not None and watched.state == "ready" and watched.why is None:
                self._check(watched, running)
            log_file.rotate(self._place.log(watched.child.name))
        if self.state == "ready":
            self.was_ready = True
        if not self._is_written:
            self._write()

    def _look_at_disk(self) -> None:
        """Say once that the disk is full, and once that there is room again."""
        if self._room() == (self._full_since is None):
            return
        data = self._place.data
        if self._full_since is None:
            self._full_since = self._clock.now()
            self._say(f"the disk of {data} is full: reads are answered, everything else waits for space")
        else:
            self._full_since = None
            self._say(f"there is space again on the disk of {data}")
        self._write()

    def _is_due(self, watched: ChildState) -> bool:
        """Whether a child that exited is to be started: after its delay, and if it needs room when there is some."""
        return self._now() >= watched.due_at and (self._full_since is None or not watched.child.needs_room)

    def _ready(self, name: str | None) -> bool:
        return any(watched.child.name == name and watched.state == "ready" for watched in self.watched)

    def check_start(self) -> None:
        """Refuse to go on when a child failed before all were ready."""
        if self.state != "failed":
            return
        failed = next(watched.child.name for watched in self.watched if watched.state == "failed")
        log = self._place.log(failed)
        hint = f"The reason is above, and in {log}."
        raise HeadraceError("start-failed", f"The {failed} process could not be started.", hint=hint)

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """End every child: ask, wait for `grace` seconds or until told to hurry, kill. Nothing is left running."""
        self._stopping = True
        running = [watched for watched in self.watched if watched.process is not None]
        for watched in running:
            self._change(watched, "stopping")
            if watched.process is not None:
                watched.process.ask_to_end()
        running = self._wait(running, self._grace, hurry)
        for watched in running:
            self._say(f"{watched.child.name}: does not end by itself, killing it")
            if watched.process is not None:
                watched.process.kill()
        self._wait(running, process.KILLED, lambda: False)
        for watched in self.watched:
            if watched.state != "failed":
                self._change(watched, "stopped")
        self._write()

    def _spawn(self, watched: ChildState) -> None:
        name = watched.child.name
        log = self._place.log(name)
        log_file.rotate(log)
        self._place.ready(name).unlink(missing_ok=True)
        watched.started, watched.started_at = self._clock.now(), self._now()
        watched.ready_at, watched.why, watched.details = None, None, {}
        log_file.mark(log, f"{show_time(watched.started)} {name} starts")
        try:
            watched.process = start_child(watched.child, self._place)
        except OSError as error:
            log_file.mark(log, f"{show_time(self._clock.now())} {name} cannot be started: {error}")
            self._exited(watched, DiskFullError.exit_code if is_full(error) else 127, f"cannot be started: {error}")
            return
        self._say(f"{name}: starting (pid {watched.process.pid})")
        self._change(watched, "starting")

    def _ask(self, watched: ChildState, running: ChildProcess) -> None:
        """Whether a starting child is ready by now; one that takes too long is killed."""
        details = watched.child.ready(running.pid, watched.started)
        seconds = self._now() - watched.started_at
        if details is not None:
            watched.details, watched.ready_at, watched.touched_at = dict(details), self._now(), self._now()
            self._say(f"{watched.child.name}: ready ({seconds:.1f} s)")
            self._change(watched, "ready")
            return
        self._update_details(watched, running)
        if seconds >= watched.child.deadline and self._full_since is None:
            watched.why = f"was not ready within {watched.child.deadline:.0f} s"
            running.kill()

    def _check(self, watched: ChildState, running: ChildProcess) -> None:
        """Notice what has changed in a ready child, and kill one that hangs."""
        self._update_details(watched, running)
        silence = self._silence(watched)
        if silence >= watched.child.silence:
            watched.why = f"gave no sign of life for {silence:.0f} s"
            running.kill()

    def _silence(self, watched: ChildState) -> float:
        """Seconds since a child last touched its file, by the steady clock: a machine that slept was not silent."""
        try:
            touched = 0 if watched.child.sign is None else watched.child.sign.stat().st_mtime_ns
        except OSError:
            touched = watched.touched
        # On a full disk a file may stay untouched for want of room.
        if watched.child.sign is None or touched != watched.touched or self._full_since is not None:
            watched.touched, watched.touched_at = touched, self._now()
        return self._now() - watched.touched_at

    def _update_details(self, watched: ChildState, running: ChildProcess) -> None:
        health = watched.child.health
        details = None if health is None else health(running.pid, watched.started)
        if details is not None and details != watched.details:
            watched.details = dict(details)
            self._write()

    def _exited(self, watched: ChildState, code: int, how: str) -> None:
        now, name, log = self._now(), watched.child.name, self._place.log(watched.child.name)
        healthy = 0.0 if watched.ready_at is None else now - watched.ready_at
        log_file.mark(
            log, f"{show_time(self._clock.now())} {name} {how}, {now - watched.started_at:.1f} s after its start"
        )
        watched.process, watched.details = None, {}
        watched.last_exit = ChildExit(code, self._clock.now(), how)
        if code == DiskFullError.exit_code or not self._room():
            watched.due_at = now + watched.backoff.waits(healthy=healthy)
            self._say(f"{name}: {how}, waiting for space on the disk (see {log})")
            self._change(watched, NO_ROOM)
            return
        delay = watched.backoff.exited(at=now, healthy=healthy)
        refused = code in REFUSED and not self.was_ready
        if delay is not None and not refused:
            watched.due_at = now + delay
            self._say(f"{name}: {how}, restarting in {delay:.0f} s (see {log})")
            self._change(watched, "restarting")
            return
        why = "" if refused else f" for the {LOOP_EXITS}th time in {LOOP_SECONDS / 60:.0f} minutes"
        last = "\n".join(f"  {line}" for line in log_file.last_lines(log, SHOWN_LINES))
        self._say(f"{name}: {how}{why}, not restarting it; the end of {log}:\n{last}")
        self._change(watched, "failed")

    def _wait(self, running: list[ChildState], seconds: float, hurry: Callable[[], bool]) -> list[ChildState]:
        """Wait until children are over; those that are not in time are given back."""
        deadline = self._now() + seconds
        while running := [watched for watched in running if not self._over(watched)]:
            if self._now() >= deadline or hurry():
                break
            time.sleep(process.LOOK)
        return running

    def _over(self, watched: ChildState) -> bool:
        """Whether a child that was asked to end has done so."""
        code = None if watched.process is None else watched.process.code()
        if code is None:
            return watched.process is None
        seconds = self._now() - watched.started_at
        said = f"{watched.child.name} {show_exit(code)}, {seconds:.1f} s after its start"
        log_file.mark(self._place.log(watched.child.name), f"{show_time(self._clock.now())} {said}")
        watched.process, watched.details = None, {}
        watched.last_exit = ChildExit(code, self._clock.now(), watched.why or show_exit(code))
        self._change(watched, "stopped")
        return True

    def _change(self, watched: ChildState, state: str) -> None:
        watched.state, watched.since = state, self._clock.now()
        self._write()

    def _write(self) -> None:
        """Write the status file. What cannot be written, as on a full disk, is no reason to end: it is tried again."""
        try:
            write_status(self._place, self.status())
        except OSError as error:
            if self._is_written:
                self._say(f"the status file cannot be written: {error}")
            self._is_written = False
        else:
            self._is_written = True

    def status(self) -> dict[str, Any]:
        """What the status file says."""
        me = None if self._me is None or self.state == "stopped" else self._me._asdict()
        processes = {watched.child.name: _record(watched, self._place) for watched in self.watched}
        return {
            **self._about,
            "state": self.state,
            "since": show_time(self._began),
            "full_since": None if self._full_since is None else show_time(self._full_since),
            "supervisor": me,
            "processes": processes,
        }


def _missing(watched: ChildState) -> str:
    """What of a child does not run; empty when all of it does."""
    name, components = watched.child.name, watched.details.get("components", {})
    parts = [f"{part} {said['state']}" for part, said in components.items() if not said["ready"]]
    if watched.state == "ready" and not parts:
        return ""
    state = [] if watched.state == "ready" else [watched.state]
    return f"{name} ({', '.join([*state, *parts])})"


def _record(watched: ChildState, place: StateFolder) -> dict[str, Any]:
    identity = None if watched.process is None else watched.process.identity
    last = watched.last_exit
    return {
        "state": watched.state,
        "since": show_time(watched.since),
        "restarts": watched.restarts,
        "exit": None if last is None else last.code,
        "exited_at": None if last is None else show_time(last.at),
        "exit_reason": None if last is None else last.reason,
        "log": str(place.log(watched.child.name)),
        **(identity._asdict() if identity is not None else {"pid": None}),
        **watched.details,
    }
