"""A component: one part of the Spark process that starts, works, fails and stops by itself.

`Pipeline`, `Archiving`, `LateLanes` and `Evaluating` are components. Each is built with a session of its own over the
one Spark context, so that settings and temporary views of one do not reach another. `driver.component_thread` runs one,
`driver.application` runs all of a process.
"""

from __future__ import annotations

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
