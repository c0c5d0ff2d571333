"""Tail a log: an endless read that waits for what has not been written yet, the same for every log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from headrace.log.protocol import Log, Offsets
from headrace.log.record import Record

STOP_CHECK = 0.1
"""Seconds between two looks at `stop` while nothing arrives."""


def follow(
    log: Log,
    topic: str,
    positions: Offsets,
    *,
    limit: int = 1000,
    idle: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[list[Record]]:
    """Yield records from `positions` on, in order within each partition, and wait for new ones.

    Parameters
    ----------
    positions
        Where to start, per partition; only these partitions are followed.
    limit
        The most records in one list; a list never mixes partitions.
    idle
        End after so many seconds without a new record; None waits for ever.
    stop
        Asked before every read and ten times a second while waiting; true ends the iteration.

    Examples
    --------
    >>> from headrace.log import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.create_topic("payments"), log.append("payments", b"1"), log.append("payments", b"2")
    >>> [[r.value for r in records] for records in follow(log, "payments", {0: 0}, idle=0)]
    [[b'1', b'2']]
    """
    at = dict(positions)
    quiet_since = time.monotonic()
    while not stop():
        found = False
        for partition in at:
            records = log.read(topic, partition, at[partition], limit=limit)
            if records:
                found = True
                at[partition] = records[-1].offset + 1
                yield records
        if found:
            quiet_since = time.monotonic()
            continue
        left = STOP_CHECK if idle is None else idle - (time.monotonic() - quiet_since)
        if left <= 0:
            return
        log.wait({topic: at}, min(left, STOP_CHECK))
