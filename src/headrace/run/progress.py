"""How far a query has come: which offsets a batch includes, and the time up to which everything is included."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from headrace.clock import MILLISECOND, Clock
from headrace.log.protocol import Log
from headrace.whole import write_whole

GUARD = 20 * MILLISECOND
"""An append takes its arrival time just before it becomes visible; one under way may be this much older than now."""


SOURCE = 2
"""The line of an offset file that has the source's offsets."""


def batch_end(checkpoint: Path, batch: int) -> dict[int, int]:
    """The offsets that follow a batch, from the offset log that Spark writes before it runs the batch.

    The file has a version line, a line of metadata and one line per source; our queries have one source. Spark's own
    Kafka source writes the topic around the offsets.
    """
    lines = (checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()
    said = json.loads(lines[SOURCE])
    (inner,) = said.values() if said and all(isinstance(value, dict) for value in said.values()) else (said,)
    return {int(partition): offset for partition, offset in inner.items()}


def translate(checkpoint: Path, topic: str | None) -> None:
    """Let another source go on from a checkpoint: Spark's own, which names the topic, or ours, which does not.

    Both mean the same offsets. Only what a restart reads is rewritten: the last committed batch, and a later one that
    was begun.
    """
    done = last_batch(checkpoint) or 0
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        if int(file.name) >= done:
            lines = file.read_text("utf-8").splitlines()
            offsets = {str(partition): offset for partition, offset in batch_end(checkpoint, int(file.name)).items()}
            lines[SOURCE] = json.dumps(offsets if topic is None else {topic: offsets}, separators=(",", ":"))
            write_whole(file, "\n".join(lines))
            # Spark keeps a sum beside each file, which is that of the old one.
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def forget_cut_off_first(checkpoint: Path) -> None:
    """Let a query begin again whose very first batch was cut off in real-time mode.

    There Spark notes the offsets at the end of a batch. State without offsets it takes for that of another query, and
    does not start micro-batches on it.
    """
    if not any((checkpoint / "offsets").glob("[0-9]*")):
        shutil.rmtree(checkpoint / "state", ignore_errors=True)


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
    unread = [log.peek(topic, p, included.get(p, 0)) for p, end in ends.items() if included.get(p, 0) < end]
    return min([now, *(records[0].arrived_at for records in unread if records)])
