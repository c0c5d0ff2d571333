"""How far a query has come: which offsets a batch includes, and the time up to which everything is included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from headrace.clock import MILLISECOND, Clock
from headrace.log.protocol import Log

GUARD = 20 * MILLISECOND
"""An append takes its arrival time just before it becomes visible; one under way may be this much older than now."""


def batch_end(checkpoint: Path, batch: int) -> dict[int, int]:
    """The offsets that follow a batch, from the offset log that Spark writes before it runs the batch.

    The file has a version line, a line of metadata and one line per source; our queries have one source.
    """
    lines = (checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()
    return {int(partition): offset for partition, offset in json.loads(lines[2]).items()}


def last_batch(checkpoint: Path) -> int | None:
    """The last committed batch; None before the first."""
    commits = checkpoint / "commits"
    done = [int(file.name) for file in commits.glob("[0-9]*")] if commits.is_dir() else []
    return max(done) if done else None


def last_batch_end(checkpoint: Path) -> dict[int, int] | None:
    """The offsets that follow the last committed batch; None before the first."""
    batch = last_batch(checkpoint)
    return None if batch is None else batch_end(checkpoint, batch)


def as_of(log: Log, topic: str, included: Mapping[int, int], clock: Clock) -> int:
    """The time before which everything that arrived is included."""
    now = clock.now() - GUARD
    ends = log.end_offsets(topic)
    unread = [log.read(topic, p, included.get(p, 0), limit=1) for p, end in ends.items() if included.get(p, 0) < end]
    return min([now, *(records[0].arrived_at for records in unread if records)])
