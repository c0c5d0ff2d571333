"""Silver as rows that become tiles: the stream's fields and the columns of `spark.admission`, one row for each event.

On a local disk Spark reads the files itself; elsewhere tasks read them with pyarrow, as they write them, so that Spark
needs no jars for the storage. Which events a job takes is `spark.pipeline.run_scope`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.define.stream import Stream
from headrace.lake.layout import SILVER_COLUMNS
from headrace.lake.table import LakeTable
from headrace.spark.admission import ARRIVED, EVENT_ID, EVENT_TIME, OFFSET, PARTITION
from headrace.spark.lake_rows import rows_of
from headrace.spark.pipeline.run_scope import BEHIND, LATE
from headrace.spark.tiles import TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVER = (-(2**62), 2**62)
"""Longer than any time there is."""


def events(
    session: SparkSession,
    silver: LakeTable,
    stream: Stream,
    spans: Sequence[tuple[int, int]] = (EVER,),
    files: Sequence[str] | None = None,
) -> DataFrame:
    """The events of the lake that happened within spans of time [low, high), each once, as `spark.tiles` takes them.

    `files` are those to read; all that may hold such an event when left out.
    """
    if files is None:
        files = silver.files(stream.event_time, [(low, high - 1) for low, high in spans])
    columns = {**{field.name: field.type.ddl for field in stream.schema}, **SILVER_COLUMNS}
    schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    local = "://" not in silver.uri
    rows = session.read.schema(schema).parquet(*files) if files and local else rows_of(session, silver, files, columns)
    happened = f"unix_micros(`{stream.event_time}`)"
    within = " OR ".join(f"`{stream.event_time}` BETWEEN {_moment(low)} AND {_moment(high - 1)}" for low, high in spans)
    return rows.where("true" if EVER in spans else within or "false").selectExpr(
        *(f"`{field.name}`" for field in stream.schema),
        f"_partition AS `{PARTITION}`",
        f"_offset AS `{OFFSET}`",
        f"unix_micros(_arrived_at) AS `{ARRIVED}`",
        f"{happened} AS `{EVENT_TIME}`",
        f"`{stream.event_time}` AS `{TIME}`",
        f"_event_id AS `{EVENT_ID}`",
        f"_late AS `{LATE}`",
        # Imported rows were all appended long after; their tiles are open as long as no batch has taken them in.
        f"(_late OR (coalesce(_closed, false) AND _partition >= 0)) AS `{BEHIND}`",
    )


def _moment(micros: int) -> str:
    return f"timestamp_micros({micros})"
