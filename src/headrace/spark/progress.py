"""How far a query has come: which offsets a batch includes, and the time up to which everything is included.

That time is the log's where the log says when a record arrived. Where records declare it, it is the stream's own, which
may be years away when history is replayed: as far behind the log's as the newest record that is included.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from headrace.clock import MILLISECOND, Clock
from headrace.codec.json.rules import EARLIEST
from headrace.define.stream import Stream
from headrace.errors import DataError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.files import write_atomically
from headrace.log.protocol import Log
from headrace.meaning.verdict import reader
from headrace.tiles.changelog import HandOver

GUARD = 20 * MILLISECOND
"""An append takes its arrival time just before it becomes visible; one under way may be this much older than now."""


DECLARED = ("field", "header")
"""Where arrival is, when records declare it."""
NEWEST = 200
"""Of so many records of a partition, the newest event tells the stream's time."""
SOURCE = 2
"""The line of an offset file that has the source's offsets."""


def batch_end(checkpoint: Path, batch: int) -> dict[int, int]:
    """The offsets that follow a batch, from the offset log that Spark writes before it runs the batch.

    The file has a version line, a line of metadata and one line per source; our queries have one source. Spark's own
    Kafka source writes the topic around the offsets.
    """
    file = checkpoint / "offsets" / str(batch)
    try:
        said = json.loads(file.read_text("utf-8").splitlines()[SOURCE])
        (inner,) = said.values() if said and all(isinstance(value, dict) for value in said.values()) else (said,)
        return {int(partition): int(offset) for partition, offset in inner.items()}
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        message, hint = "A file of a query's checkpoint cannot be read.", "The next start goes on with another run."
        raise DataError("checkpoint-damaged", message, got=f"{checkpoint.name}/offsets/{batch}", hint=hint) from error


def translate(checkpoint: Path, topic: str | None, faults: FaultPoints = NO_FAULTS) -> None:
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
            write_atomically(file, "\n".join(lines))
            faults.reach("checkpoint.offsets.after")
            # Spark keeps a sum beside each file, which is that of the old one.
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            faults.reach("checkpoint.sum.after")


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


def in_stream_time(
    stream: Stream, log: Log, topic: str, included: Mapping[int, int], moment: int, made: HandOver | None = None
) -> int:
    """A moment of the log's clock by that of the stream; before its first record, where its run was handed over.

    Where none of the newest records tells, it is as if nothing were known: then nothing is taken for old.
    """
    if stream.arrival.source not in DECLARED:
        return moment
    read, starts = reader(stream), log.start_offsets(topic)
    filled = [(partition, end) for partition, end in included.items() if end > starts.get(partition, end)]
    if not filled:
        return moment if made is None else min(moment, made.point + stream.allowed_lateness)
    behind = []
    for partition, end in filled:
        records = log.peek(topic, partition, max(starts[partition], end - NEWEST), limit=NEWEST)
        told = [judged for record in records if record.offset < end and (judged := read(record)).event is not None]
        if told:
            newest = max(told, key=lambda judged: judged.place)
            behind.append(newest.record.arrived_at - newest.place[0])
    return max(EARLIEST, moment - max(0, *behind)) if behind else EARLIEST
