"""When a child that exited is started again, and when that is given up. Times are seconds of any steady clock."""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST, LONGEST = 1.0, 30.0
HEALTHY = 60.0
"""Seconds in the ready state after which an exit is taken for the first one again."""
LOOP_EXITS, LOOP_SECONDS = 5, 120.0


@dataclass
class Backoff:
    """One child's exits. The delays are 1 s, 2 s, 4 s and so on to 30 s, the same every time: children are few.

    >>> backoff = Backoff()
    >>> [backoff.exited(at=at, healthy=0) for at in (0, 10, 20, 30, 40)]
    [1.0, 2.0, 4.0, 8.0, None]
    """

    delay: float = FIRST
    exits: list[float] = field(default_factory=list)

    def exited(self, *, at: float, healthy: float) -> float | None:
        """Seconds until the next start; None when it exits too often to go on.

        Parameters
        ----------
        at
            When it exited.
        healthy
            How long it had been ready.
        """
        self.exits = [exit for exit in self.exits if at - exit < LOOP_SECONDS] + [at]
        return None if len(self.exits) >= LOOP_EXITS else self.waits(healthy=healthy)

    def waits(self, *, healthy: float) -> float:
        """The same for an exit that is not the child's own doing, and never too often."""
        if healthy >= HEALTHY:
            self.delay = FIRST
        now, self.delay = self.delay, min(self.delay * 2, LONGEST)
        return now
