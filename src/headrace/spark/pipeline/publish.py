"""What leaves a micro-batch: tiles and progress, to the changelog.

It can be done twice without harm, because a batch that was cut off is run again: rows are upserts under their whole
identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from headrace.clock import Clock
from headrace.define.stream import Stream
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import TileSet
from headrace.spark.append import messages
from headrace.spark.progress import as_of, batch_end, in_stream_time
from headrace.spark.tiles import Target
from headrace.tiles.changelog import HandOver, ProgressRow
from headrace.tiles.changelog_format import encode

Batch = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class QueryPaths:
    """Where a query reads and keeps its checkpoint, and the log it writes to.

    `faults` hears of every step; it is for tests.
    """

    log: Log
    clock: Clock
    source: str
    checkpoint: Path
    faults: FaultPoints = NO_FAULTS

    def known_until(self, stream: Stream, included: Mapping[int, int], hand_over: HandOver | None) -> int:
        """The time, of the stream's clock, before which everything that arrived is included."""
        moment = as_of(self.log, self.source, included, self.clock)
        return in_stream_time(stream, self.log, self.source, included, moment, hand_over)


def progress_message(
    tile_set: TileSet,
    target: Target,
    included: Mapping[int, int],
    moment: int,
    *,
    ordered: bool = False,
    late: int | None = None,
) -> Message:
    """The changelog record that says how far the tiles of both lanes are, and whether rows after it come in order."""
    key, value = encode(ProgressRow(tile_set.fingerprint, target.run, included, moment, ordered, late))
    return Message(value, key)


def tiles_to_changelog(
    place: QueryPaths,
    tile_set: TileSet,
    target: Target,
    topic: str,
    hand_over: HandOver | None = None,
    late: Callable[[], int | None] = lambda: None,
) -> Batch:
    """Append the changelog rows of a batch and its progress in one go: no reader sees one without the other.

    `late` says up to when everything of the late lane stands before.
    """

    def publish(batch: DataFrame, number: int) -> None:
        made = messages(batch.toArrow())
        included = batch_end(place.checkpoint, number)
        moment = place.known_until(tile_set.stream, included, hand_over)
        said = progress_message(tile_set, target, included, moment, late=late())
        place.faults.reach("tiles.append.before")
        place.log.append_batch(topic, [*made, said])
        place.faults.reach("tiles.append.after")

    return publish
