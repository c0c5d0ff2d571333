"""The events that late lanes are computed from: which tiles got new ones, and all events of these tiles, each once.

It is for `spark.late.late_lane` and looks at a stream's lake for all lanes together. What is in the lake and does not
belong here are copies that the stream itself counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from headrace.define.stream import Stream
from headrace.lake.layout import BRONZE_COLUMNS
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.meaning.verdict import ARRIVED_AT
from headrace.plan.model import TileSet
from headrace.spark.admission import EVENT_TIME, OFFSET, PARTITION
from headrace.spark.lake_rows import rows_of
from headrace.spark.pipeline.run_scope import LATE
from headrace.spark.silver import events

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

MOST_SPANS = 50
"""Spans of time that events are asked for at once; of more, those with the least between them are joined."""
COPY_COLUMNS = ("partition", "appended_at", "headers", "verdict", "event_time", "first_partition", "first_offset")

Spans = list[tuple[int, int]]


def fresh_spans(
    session: SparkSession, silver: LakeTable, wanted: Sequence[tuple[TileSet, str]], moved: Sequence[tuple[int, int]]
) -> Spans:
    """The spans of time of the tiles that have something new.

    Parameters
    ----------
    wanted
        Tile sets of one stream, each with the condition of the events that are new to it.
    moved
        The offsets, from one up to another, that new events are among.
    """
    stream = wanted[0][0].stream
    rows = events(session, silver, stream, files=silver.files("_offset", [(start, end - 1) for start, end in moved]))
    conditions = list(dict.fromkeys(condition for _, condition in wanted))
    grain = math.gcd(*(tile_set.grain for tile_set, _ in wanted))
    tile = F.expr(f"`{EVENT_TIME}` - pmod(`{EVENT_TIME}`, {grain})").alias("tile")
    new = [F.expr(f"bool_or({condition})").alias(f"c{at}") for at, condition in enumerate(conditions)]
    found = rows.where(" OR ".join(conditions)).groupBy(tile).agg(*new).toArrow()
    starts = found.column("tile").to_numpy()
    mine = [_tiles(starts[_flags(found, conditions.index(each))], tile_set.grain) for tile_set, each in wanted]
    return joined_spans([lows for lows, _ in mine], [highs for _, highs in mine])


def _flags(found: pa.Table, condition: int) -> NDArray[np.bool_]:
    """In which of the tiles that were found a condition is true."""
    flags: NDArray[np.bool_] = found.column(f"c{condition}").to_numpy()
    return flags


def _tiles(starts: NDArray[np.int64], grain: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the tiles begin and end that hold some moments."""
    import numpy as np

    lows = np.unique(starts - starts % grain)
    return lows, lows + grain


def joined_spans(
    lows: Sequence[NDArray[np.int64]], highs: Sequence[NDArray[np.int64]], most: int = MOST_SPANS
) -> Spans:
    """Spans that touch as one; of more than `most`, those with the least time between them as one.

    >>> import numpy as np
    >>> lows, highs = np.array([0, 10, 40, 41, 90]), np.array([10, 20, 50, 42, 95])
    >>> joined_spans([lows], [highs]), joined_spans([lows], [highs], most=2)
    ([(0, 20), (40, 50), (90, 95)], [(0, 50), (90, 95)])
    """
    import numpy as np

    low, high = np.concatenate(lows), np.concatenate(highs)
    if not len(low):
        return []
    order = np.argsort(low)
    low, reach = low[order], np.maximum.accumulate(high[order])
    gaps = low[1:] - reach[:-1]
    # Of equal gaps the later ones are closed: any will do.
    kept = np.sort(np.argsort(-gaps, kind="stable")[: most - 1])
    cuts = kept[gaps[kept] > 0] + 1
    begins, ends = low[np.concatenate([[0], cuts])], reach[np.concatenate([cuts - 1, [len(low) - 1]])]
    return [(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True)]


@contextmanager
def events_of(
    session: SparkSession, lake: Lake, stream: Stream, condition: str, spans: Sequence[tuple[int, int]], few: int
) -> Iterator[tuple[DataFrame, int]]:
    """The events within spans of time that some lane has, and how many there are about.

    If they are fewer than `few`, Spark keeps them meanwhile. More would take the memory that their tiles need.
    """
    found = events(session, lake.silver, stream, spans).where(condition)
    on_time = f"CASE WHEN NOT `{LATE}` THEN `{EVENT_TIME}` END"
    known = found.agg(F.expr("count(1)"), F.expr(f"min({on_time})"), F.expr(f"max({on_time})")).collect()[0]
    count, first, last = known
    whole = found if first is None else _uncopied(found, session, lake, stream, (first, last))
    if count >= few:
        yield whole, count
        return
    kept = whole.persist()
    try:
        yield kept, count
    finally:
        kept.unpersist()


def _uncopied(
    found: DataFrame, session: SparkSession, lake: Lake, stream: Stream, happened: tuple[int, int]
) -> DataFrame:
    """Events without those of which the stream counts a copy: of imported or replayed ones it may have another.

    Those are on time. The first and the last of them `happened` at these moments, and so their copies between them. The
    lake keeps the copy that it met first, the stream one that came to it on time.
    """
    bronze = lake.bronze
    bronze.refresh()
    files = bronze.files("event_time", [happened])
    copies = rows_of(session, bronze, files, {name: BRONZE_COLUMNS[name] for name in COPY_COLUMNS})
    again = f"exists(headers, h -> h.key = '{ARRIVED_AT}')"
    closed = f"({again} AND unix_micros(appended_at) - unix_micros(event_time) > {stream.allowed_lateness})"
    streamed = copies.where(f"verdict = 'duplicate' AND partition >= 0 AND NOT {closed}").selectExpr(
        f"first_partition AS `{PARTITION}`", f"first_offset AS `{OFFSET}`"
    )
    kept = found.where(f"NOT `{LATE}`").join(streamed.distinct(), [PARTITION, OFFSET], "left_anti")
    return kept.unionByName(found.where(f"`{LATE}`"))
