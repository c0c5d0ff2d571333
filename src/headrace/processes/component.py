"""A component: a part of a project that starts, works, fails and stops by itself, and the loop that runs it.

The parts of the Spark process are components, each in a thread (`driver.component_thread`); the audit and the scorers
are components with a process each. A component publishes its status in its steps (`status.topic`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Component(Protocol):
    """What a component can do.

    Attributes
    ----------
    pause
        Seconds to wait after a step that found nothing to do.
    """

    pause: float

    def step(self) -> bool:
        """Do what is due. True when there was work, and the next step should follow at once."""

    def is_ready(self) -> bool:
        """Whether it takes new input."""

    def stop(self) -> None:
        """Finish or abandon the work under way, and release what it holds. Called once, also after a failed step."""


def run_component(
    component: Component,
    stop: threading.Event,
    *,
    after_step: Callable[[], None] = lambda: None,
    wait: Callable[[float], object] | None = None,
) -> None:
    """Step a component until told to stop, with its pause after each step that found nothing to do.

    Parameters
    ----------
    after_step
        Called after each step, before the pause.
    wait
        Waits for so many seconds, or until told to stop; the event's own wait when left out.
    """
    wait = wait or stop.wait
    try:
        while not stop.is_set():
            has_worked = component.step()
            after_step()
            if not has_worked:
                wait(component.pause)
    finally:
        component.stop()
