"""Features at many moments in Spark: every row of a spine gets what was known of its keys at its time.

    silver ──► columns that are eaten ─┐
                                       ├─► one place for each key ──► `past.answers` in Python ──► spine with features
    spine ──► key, time, all its cells ┘

Events and rows of a key meet in one task, which evaluates whole columns of many keys at once: no join, and no walk
through windows. The views of one stream, filter and key are answered together; for other keys the rows travel again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from headrace.aggregate import scalar
from headrace.asof.query import AsOfQuery, question
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.lake.completeness import reach
from headrace.lake.table import LakeTable
from headrace.meaning.exact import Mode
from headrace.spark.admission import ARRIVED, EVENT_ID, EVENT_TIME, OFFSET, PARTITION
from headrace.spark.pipeline.run_scope import LATE
from headrace.spark.silver import events

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Batches = Iterator[pa.RecordBatch]

ROWS_PER_TASK = 250_000
"""Events and rows that a task holds in memory at once; of a key that has more, all that its windows reach."""
LEAST_TASKS = 2
FEW_ROWS = 100_000
"""A spine of at most so many rows says beforehand which keys are looked for."""

ROW, KEY, T, OWN, EATEN = "~row", "~key", "~t", "~own", "~eaten"
ARRIVAL_COLUMNS = ("_arrived_at", "_partition", "_offset")
"""Where a spine that was made of events says which event each row is."""


class FeatureRequest(Protocol):
    """What is asked for: views, and what the column of each (view, feature) is called."""

    @property
    def views(self) -> Sequence[View]: ...

    @property
    def columns(self) -> Mapping[tuple[str, str], str]: ...


@dataclass(frozen=True)
class SpineExtent:
    """How many rows a spine has, and its first and last time in microseconds."""

    rows: int
    first: int
    last: int


def attach(
    session: SparkSession,
    spine: DataFrame,
    asked: FeatureRequest,
    silver: Callable[[Stream], LakeTable],
    *,
    time: str,
    mode: Mode,
    include_event: str | None = None,
    extent: SpineExtent | None = None,
) -> DataFrame:
    """The spine with a column for every feature of some views.

    Parameters
    ----------
    spine
        Rows with the keys of the views under their own names and types, and a time; none of these is null.
    asked
        The views, and what the columns of their features are called.
    silver
        Gives the lake's events of a stream.
    time
        The column of TIMESTAMP that says at which moment a row's features are wanted.
    mode
        Whether an event counts from its arrival or from when it happened.
    include_event
        The stream whose events the rows are, told by `ARRIVAL_COLUMNS`: each counts in its own row.
    extent
        How far the spine reaches at most; looked for when left out, which takes a pass over it.
    """
    extent = extent or extent_of(spine, time)
    if extent is None:
        for view in asked.views:
            for feature in view.features:
                name = asked.columns[view.name, feature.name]
                spine = spine.withColumn(name, F.lit(None).cast(feature.type.ddl))
        return spine
    for together in _together(asked.views):
        own = together[0].stream.name == include_event
        spine = _attached(session, spine, extent, asked.columns, together, silver, RowTime(time, mode, own))
    return spine


def extent_of(spine: DataFrame, time: str) -> SpineExtent | None:
    """How far a spine reaches; None when it has no rows."""
    micros = f"unix_micros(`{time}`)"
    found = spine.selectExpr("count(*)", f"min({micros})", f"max({micros})").first()
    return None if found is None or not found[0] else SpineExtent(*found)


def _together(views: Sequence[View]) -> list[list[View]]:
    """Views of one stream, filter and key, which share their events."""
    found: dict[Any, list[View]] = {}
    for view in views:
        key = tuple((name, column.text) for name, column in view.key)
        chosen = None if view.stream.filter is None else view.stream.filter.text
        found.setdefault((view.stream.name, chosen, key), []).append(view)
    return list(found.values())


@dataclass(frozen=True)
class RowTime:
    """When the rows of a spine ask: the column of their time, the mode, and whether each counts its own event."""

    column: str
    mode: Mode
    own: bool


def _attached(
    session: SparkSession,
    spine: DataFrame,
    extent: SpineExtent,
    columns: Mapping[tuple[str, str], str],
    views: Sequence[View],
    silver: Callable[[Stream], LakeTable],
    at: RowTime,
) -> DataFrame:
    view, own = views[0], at.own
    asked, eaten = question(views, at.mode)
    table, span = silver(view.stream.base), reach(views, extent.first, extent.last)
    values = [scalar.sql(kind, each.spark()) for kind, each in zip(asked.eaten, eaten, strict=True)]
    happened = _events(session, table, view, span, values, asked, own=own)
    rows = spine.select(
        *(
            F.col(f"`{name}`").cast(column.type.ddl).alias(f"{KEY}{number}")
            for number, (name, column) in enumerate(view.key)
        ),
        F.expr(f"unix_micros(`{at.column}`)").alias(T),
        *_own_place(own=own),
        F.struct(*(F.col(f"`{name}`") for name in spine.columns)).alias(ROW),
    )
    keys = [f"`{KEY}{number}`" for number in range(len(view.by))]
    if at.mode == "as_known" and not own:
        happened = happened.where(f"`{ARRIVED}` <= {extent.last}")
    if keys and extent.rows <= FEW_ROWS:
        happened = happened.join(F.broadcast(rows.select(*keys).distinct()), [key.strip("`") for key in keys], "semi")
    both = happened.unionByName(rows, allowMissingColumns=True)
    held = table.rows(view.stream.event_time, [(span[0], span[1] - 1)]) + extent.rows
    tasks = max(LEAST_TASKS, -(-held // ROWS_PER_TASK))
    made = [(columns[each.name, feature.name], feature.type) for each in views for feature in each.features]
    schema = StructType([*spine.schema.fields, *_fields(made)])
    placed = both.repartition(tasks, *keys) if keys else both.coalesce(1)
    return placed.mapInArrow(_evaluator(asked, len(keys), [name for name, _ in made], own=own), schema)


def _fields(made: Sequence[tuple[str, Any]]) -> list[Any]:
    found = cast(StructType, StructType.fromDDL(", ".join(f"`{name}` {kind.ddl}" for name, kind in made)))
    return found.fields


def _own_place(*, own: bool) -> list[Any]:
    if not own:
        return []
    arrived, partition, offset = ARRIVAL_COLUMNS
    texts = (f"unix_micros(`{arrived}`)", f"CAST(`{partition}` AS INT)", f"CAST(`{offset}` AS BIGINT)")
    return [F.expr(text).alias(f"{OWN}{at}") for at, text in enumerate(texts)]


def _events(
    session: SparkSession,
    table: LakeTable,
    view: View,
    span: tuple[int, int],
    values: Sequence[str],
    asked: AsOfQuery,
    *,
    own: bool,
) -> DataFrame:
    """The events that count, as far as they are eaten."""
    found = events(session, table, view.stream.base, [span])
    if view.stream.late != "update":
        found = found.where(f"NOT `{LATE}`")
    if view.stream.filter is not None:
        found = found.where(view.stream.filter.spark())
    return found.selectExpr(
        *(f"CAST({column.spark()} AS {column.type.ddl}) AS `{KEY}{at}`" for at, (_, column) in enumerate(view.key)),
        f"`{EVENT_TIME}`",
        f"`{ARRIVED}`",
        *([f"`{PARTITION}`", f"`{OFFSET}`"] if own else []),
        *([f"`{EVENT_ID}`"] if asked.in_order else []),
        *(f"{value} AS `{EATEN}{at}`" for at, value in enumerate(values)),
    )


def _evaluator(asked: AsOfQuery, keys: int, names: Sequence[str], *, own: bool) -> Callable[[Batches], Batches]:
    """What a task does with the events and rows of its keys. It runs in Spark's Python workers."""

    def evaluate(given: Batches) -> Batches:
        import pyarrow as pa
        import pyarrow.compute as pc

        held = [batch for batch in given if batch.num_rows]
        if not held:
            return
        table = pa.Table.from_batches(held)
        is_row = table.column(ROW).is_valid()
        rows = table.filter(is_row)
        if not rows.num_rows:
            return
        found = _answers(asked, keys, table.filter(pc.invert(is_row)), rows, own=own)
        cells = _one_column(rows.column(ROW)).flatten()
        kind = rows.schema.field(ROW).type
        whole = [*(kind.field(at).name for at in range(kind.num_fields)), *names]
        yield from pa.Table.from_arrays([*cells, *found], names=whole).to_batches(max_chunksize=10_000)

    return evaluate


def _answers(asked: AsOfQuery, keys: int, happened: pa.Table, rows: pa.Table, *, own: bool) -> list[pa.Array]:
    import numpy as np

    from headrace.asof.values import EventColumns, QueryMoments, RecordPositions, answers, numbered

    def numbers(table: pa.Table, name: str) -> Any:
        return table.column(name).to_numpy()

    if keys:
        tables = ([_one_column(table.column(f"{KEY}{at}")) for at in range(keys)] for table in (happened, rows))
        of_events, of_rows = numbered(*tables)
    else:
        of_events, of_rows = (np.zeros(table.num_rows, dtype=np.int64) for table in (happened, rows))
    nowhere = np.zeros(0, dtype=np.int64)
    places = [numbers(happened, name) for name in (PARTITION, OFFSET)] if own else [nowhere, nowhere]
    taken = EventColumns(
        of_events,
        numbers(happened, EVENT_TIME),
        RecordPositions(numbers(happened, ARRIVED), *places),
        tuple(_one_column(happened.column(f"{EATEN}{at}")) for at in range(len(asked.eaten))),
        _one_column(happened.column(EVENT_ID)) if asked.in_order else None,
    )
    place = RecordPositions(*(numbers(rows, f"{OWN}{at}") for at in range(3))) if own else None
    return answers(asked, taken, QueryMoments(of_rows, numbers(rows, T), place))


def _one_column(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    import pyarrow as pa

    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
