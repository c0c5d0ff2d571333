"""The thread that runs one component: it builds it, steps it, and builds it again after a failure.

    starting ──► running ──► (failure) restarting ──► starting ...      stopped: when the process ends
        └───────────┴──► hung: no step has ended and Spark has done nothing for a while

A failure of one component does not reach another. The delays between two starts grow from 1 s to 30 s and start again
from 1 s after a minute of health; a component is never given up, because what it lacked may come back. One that failed
because the disk is full is started again as soon as there is room.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from headrace.clock import Clock, SystemClock, show_time
from headrace.disk import as_full, is_full
from headrace.errors import HeadraceError
from headrace.processes.backoff import FIRST, LONGEST, Backoff
from headrace.processes.component import Component, run_component
from headrace.spark.failure import cause_of, traceback_of
from headrace.status.records import ComponentStatus

STARTING, RUNNING, RESTARTING, HUNG, STOPPED = "starting", "running", "restarting", "hung", "stopped"
REFUSALS = (2, 3)
"""Exit codes of errors that another start would repeat: a wrong setting, something that the machine lacks."""
MENDED = frozenset({"lake-failed"})
"""Codes of errors all the same that a component waits out: somebody may mend a table that others do not need."""

_logger = logging.getLogger(__name__)


class ComponentThread:
    """Runs one component until told to stop.

    Parameters
    ----------
    name
        What people call the component.
    build
        Makes the component; called again after each failure.
    activity
        What the component's Spark jobs have done so far, as a value that changes whenever they do something.
    cancel
        Ends the component's Spark jobs, so that a step that waits for one fails.
    room
        Whether the disk under the data folder is not full.

    Attributes
    ----------
    refusal
        The error that refused the very first start, for the process to end with.
    """

    def __init__(
        self,
        name: str,
        build: Callable[[], Component],
        *,
        activity: Callable[[], object] = lambda: None,
        cancel: Callable[[], None] = lambda: None,
        room: Callable[[], bool] = lambda: True,
        now: Callable[[], float] = time.monotonic,
        clock: Clock | None = None,
    ) -> None:
        self.name, self._build, self._activity, self._cancel = name, build, activity, cancel
        self._room = room
        self._now, self._clock = now, clock or SystemClock()
        self.state, self.since = STARTING, self._clock.now()
        self.restarts, self.error, self.is_ready = 0, "", False
        self.refusal: HeadraceError | None = None
        self._backoff, self._stop = Backoff(), threading.Event()
        self._steps, self._is_waiting = 0, False
        self._last_sign: tuple[object, float] = (None, now())
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the component to end; `join` waits for it."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Wait until the component has stopped; false when it has not within so many seconds."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End the component's Spark jobs."""
        self._cancel()

    def silence(self) -> float:
        """Seconds since the component last ended a step or a task of Spark. A component that waits is not silent."""
        sign = (self._steps, self.state if self.state != HUNG else None, self._activity())
        if self._is_waiting or sign != self._last_sign[0]:
            self._last_sign = (sign, self._now())
        return self._now() - self._last_sign[1]

    def report_hung(self, seconds: float) -> None:
        """Note that the component has been silent for too long."""
        self.error = f"It has done nothing for {seconds:.0f} s."
        _logger.error("%s: %s", self.name, self.error)
        self._change(HUNG)

    def status(self) -> ComponentStatus:
        """How this component is."""
        return ComponentStatus(
            state=self.state,
            ready=self.is_ready,
            since=show_time(self.since),
            restarts=self.restarts,
            error=self.error,
        )

    def _run(self) -> None:
        while not self._stop.is_set():
            running_since = None
            try:
                component = self._build()
                running_since = self._now()
                run_component(component, self._stop, after_step=partial(self._note_step, component), wait=self._wait)
            except Exception as error:  # one component's failure must not reach the others
                if self._stop.is_set():
                    # Its jobs were cancelled; what was under way is done again at the next start.
                    break
                self._fail(error, running_since)
        self._change(STOPPED)

    def _note_step(self, component: Component) -> None:
        self._steps += 1
        self.is_ready = component.is_ready()
        if self.state != RUNNING:
            self.error = ""
            self._change(RUNNING)

    def _fail(self, error: Exception, running_since: float | None) -> None:
        """Note a failure and wait before the next start."""
        now = self._now()
        self.is_ready = False
        self.error = f"It waits for space. {as_full(error).brief}" if is_full(error) else cause_of(error)
        if isinstance(error, HeadraceError) and not is_full(error):
            is_refusal = error.exit_code in REFUSALS and error.code not in MENDED
            if not self._steps and is_refusal and self._room():
                self.refusal = error
        _logger.error("%s has failed: %s\n%s", self.name, self.error, traceback_of(error))
        healthy = 0.0 if running_since is None else now - running_since
        delay = self._backoff.exited(at=now, healthy=healthy)
        self.restarts += 1
        self._change(RESTARTING)
        if self._room():
            self._wait(LONGEST if delay is None else delay)
        while not self._room() and not self._stop.is_set():
            self._wait(FIRST)
        if not self._stop.is_set():
            self._change(STARTING)

    def _wait(self, seconds: float) -> None:
        self._is_waiting = True
        self._stop.wait(seconds)
        self._is_waiting = False

    def _change(self, state: str) -> None:
        self.state, self.since = state, self._clock.now()
