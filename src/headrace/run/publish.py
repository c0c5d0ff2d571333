"""What leaves a micro-batch: tiles and progress to the changelog, dead letters and late records to their topics.

Both can be done twice without harm, because a batch that was cut off is run again: changelog rows are upserts under
their whole identity, dead letters are keyed by where the record came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from headrace.clock import Clock
from headrace.define.stream import Stream
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import TileSet
from headrace.run.admit import ARRIVED, KEY, OFFSET, PARTITION, REASON, VALUE, VERDICT
from headrace.run.progress import as_of, batch_end
from headrace.run.tiles import Target
from headrace.run.verdict import DEAD, VERDICTS
from headrace.store.changelog import ProgressRow, encode

Batch = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Place:
    """Where a query reads and keeps its checkpoint, and the log it writes to."""

    log: Log
    clock: Clock
    source: str
    checkpoint: Path


def progress_message(tile_set: TileSet, target: Target, included: Mapping[int, int], moment: int) -> Message:
    """The changelog record that says how far the tiles have come."""
    key, value = encode(ProgressRow(tile_set.fingerprint, target.run, included, moment))
    return Message(value, key)


def tiles_to_changelog(place: Place, tile_set: TileSet, target: Target, topic: str) -> Batch:
    """Append the changelog rows of a batch and its progress in one go: no reader sees one without the other."""

    def publish(batch: DataFrame, number: int) -> None:
        rows = batch.toArrow()
        keys, values = rows.column("key").to_pylist(), rows.column("value").to_pylist()
        messages = [Message(value.encode(), key.encode()) for key, value in zip(keys, values, strict=True)]
        included = batch_end(place.checkpoint, number)
        moment = as_of(place.log, place.source, included, place.clock)
        place.log.append_batch(topic, [*messages, progress_message(tile_set, target, included, moment)])

    return publish


def refused_to_topics(
    place: Place, stream: Stream, dead: str, late: str, count: Callable[[int, Mapping[str, int]], None]
) -> Batch:
    """Append dead letters, and late records under the policy `side_output`; hand the batch's counts over."""
    sent = [*DEAD, *(["late"] if stream.late == "side_output" else [])]

    def publish(batch: DataFrame, number: int) -> None:
        # One pass: the few records that are sent on, while Spark counts them all.
        seen = Observation()
        counters = [F.count_if(F.col(f"`{VERDICT}`") == verdict).alias(verdict) for verdict in VERDICTS]
        chosen = batch.observe(seen, *counters).where(F.col(f"`{VERDICT}`").isin(sent)).select(*_columns())
        messages: dict[str, list[Message]] = {dead: [], late: []}
        for row in chosen.collect():
            messages[late if row[VERDICT] == "late" else dead].append(_letter(row.asDict()))
        for topic, letters in messages.items():
            if letters:
                place.log.append_batch(topic, letters)
        count(number, seen.get)

    return publish


def _columns() -> Iterator[str]:
    return (f"`{name}`" for name in (PARTITION, OFFSET, ARRIVED, KEY, VALUE, VERDICT, REASON))


def _letter(row: Mapping[str, object]) -> Message:
    """A record as its dead-letter topic keeps it: its own bytes, and where it came from and why in headers."""
    headers = {
        "verdict": row[VERDICT],
        "reason": row[REASON],
        "partition": row[PARTITION],
        "offset": row[OFFSET],
        "arrived_at": row[ARRIVED],
    }
    place = f"{row[PARTITION]}/{row[OFFSET]}".encode()
    value = row[VALUE]
    body = bytes(value) if isinstance(value, bytes | bytearray) else b""
    return Message(body, place, tuple((name, str(held).encode()) for name, held in headers.items()))
