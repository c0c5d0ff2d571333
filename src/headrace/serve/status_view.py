"""How things stand, as those who answer requests see it, and what they tell of their own work.

In one process it is the `monitor`; where several answer, each has what it last `heard` from the one that fills the
store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from headrace.serve.limits import Behind

READS = 2_000
"""How many of the newest read times are kept."""
ANSWERED = ("features", "events", "errors", "samples_kept", "samples_dropped")
"""What is counted for the page."""


class Watch(Protocol):
    """What requests ask, and what they tell.

    Attributes
    ----------
    behind
        How far the pipeline is behind each stream.
    free_disk
        Bytes that are left where the embedded log is; None if that is not known.
    reads
        How long the newest reads took, in microseconds.
    answered
        Keys read, events taken, errors, and samples kept or not, since the start.
    """

    @property
    def behind(self) -> Mapping[str, Behind]: ...

    @property
    def free_disk(self) -> int | None: ...

    @property
    def reads(self) -> deque[float]: ...

    @property
    def answered(self) -> dict[str, int]: ...

    def readiness(self) -> Mapping[str, bool]:
        """What must be true before values are served: the parts of `/ready`."""
        ...

    def status(self) -> dict[str, Any]:
        """Everything the page shows; it may take a while."""
        ...
