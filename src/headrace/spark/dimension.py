"""Dimensions in Spark: every row of a spine gets what the dimension's table said of its key at its time.

    table, read and put in order (`lake.dimension`) ──► [begins, ends) for each row ─┐
                                                                                     ├──► spine with features
    spine: keys, a time, anything else ──────────────────────────────────────────────┘

The table is the one that serving keeps in memory, read by the same code, so that both answer from the same rows, and
what is refused there is refused here. It goes through the driver: the cluster needs no way to where it lies. A key
with few rows is joined by the time in which each is valid; where some key has many, rows and spine are put into one
order and each takes the last row before it. The training set that calls this is `headrace.training`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from headrace.define.dimension import Dimension
from headrace.errors import DataError, did_you_mean, shown
from headrace.types.field_types import Boolean, Integer, Type, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from headrace.lake.dimension_table import DimensionTable

FEW = 64
"""Of a key with at most so many rows, each is compared with a row of the spine: that is quicker than an order."""
SMALL = 32 * 1024 * 1024
"""Bytes of a table that every executor can have."""
KEY, BEGINS, ENDS, VALUE = "~key", "~begins", "~ends", "~value"
AT, TURN, ROW, FOUND = "~at", "~turn", "~row", "~found"
_WHOLE = ("tinyint", "smallint", "int", "bigint")


def attach_dimension(
    session: SparkSession,
    spine: DataFrame,
    dimension: Dimension,
    columns: Mapping[tuple[str, str], str],
    *,
    time: str,
    table: DimensionTable,
    few: int = FEW,
) -> DataFrame:
    """The spine with a column for each feature of a dimension that is asked for.

    Parameters
    ----------
    spine
        Rows with the key of the dimension under its own names, and a time. A row whose key or time is null has no
        features.
    columns
        By (dimension, feature), what its column is called; those of others are passed over.
    time
        The column of TIMESTAMP that says at which moment a row's features are wanted.
    table
        What `lake.dimension.read` has read.
    few
        How many rows a key may have to be joined by the time in which each is valid.
    """
    wanted = {dimension.feature(name).name: column for (of, name), column in columns.items() if of == dimension.name}
    _refuse_taken(spine, dimension, wanted)
    if not wanted:
        return spine
    keys = [_key(spine, name, kind) for name, kind in dimension.key_types]
    rows = _rows(session, table, list(wanted))
    moment = F.expr(f"unix_micros(`{time}`)")
    if table.most > few:
        return _in_order(spine, rows, keys, moment, wanted)
    return _by_validity(spine, rows, keys, moment, wanted, small=table.bytes <= SMALL)


def _rows(session: SparkSession, table: DimensionTable, wanted: Sequence[str]) -> DataFrame:
    """The table in Spark, its columns called as no column of a spine is."""
    import pyarrow as pa

    dimension, held = table.dimension, table.rows
    named = {f"{KEY}{at}": held.column(name) for at, name in enumerate(dimension.by)}
    named |= {BEGINS: pa.array(table.begins), ENDS: pa.array(table.ends)}
    named |= {f"{VALUE}{at}": held.column(name) for at, name in enumerate(wanted)}
    kinds = [*(kind for _, kind in dimension.key_types), Integer(), Integer()]
    kinds += [dimension.feature(name).type for name in wanted]
    fields = [pa.field(name, arrow_type(kind)) for name, kind in zip(named, kinds, strict=True)]
    return session.createDataFrame(pa.table(list(named.values()), schema=pa.schema(fields)))


def _by_validity(
    spine: DataFrame, rows: DataFrame, keys: Sequence[Column], moment: Column, wanted: Mapping[str, str], *, small: bool
) -> DataFrame:
    """Each row of the spine meets the one row of its key that is valid at its time; all others stay apart."""
    met = (moment >= F.col(f"`{BEGINS}`")) & (moment < F.col(f"`{ENDS}`"))
    for at, key in enumerate(keys):
        met = met & (key == F.col(f"`{KEY}{at}`"))
    joined = spine.join(F.broadcast(rows) if small else rows, met, "left")
    own = [F.col(f"`{name}`") for name in spine.columns]
    return joined.select(*own, *(F.col(f"`{VALUE}{at}`").alias(name) for at, name in enumerate(wanted.values())))


def _in_order(
    spine: DataFrame, rows: DataFrame, keys: Sequence[Column], moment: Column, wanted: Mapping[str, str]
) -> DataFrame:
    """Rows and spine by key and time: each row of the spine takes the last row before it, if that is still valid."""
    names = [f"{KEY}{at}" for at in range(len(keys))]
    values = [F.col(f"`{VALUE}{at}`") for at in range(len(wanted))]
    held = rows.select(
        *(F.col(f"`{name}`") for name in names),
        F.col(f"`{BEGINS}`").alias(AT),
        F.lit(0).alias(TURN),
        F.struct(F.col(f"`{ENDS}`"), *values).alias(FOUND),
    )
    asked = spine.select(
        *(key.alias(name) for key, name in zip(keys, names, strict=True)),
        moment.alias(AT),
        # A row that is valid from the very moment on comes before it.
        F.lit(1).alias(TURN),
        F.struct(*(F.col(f"`{name}`") for name in spine.columns)).alias(ROW),
    )
    order = Window.partitionBy(*(F.col(f"`{name}`") for name in names)).orderBy(F.col(f"`{AT}`"), F.col(f"`{TURN}`"))
    before = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    both = held.unionByName(asked, allowMissingColumns=True)
    last = F.last(F.col(f"`{FOUND}`"), ignorenulls=True).over(before)
    found = both.withColumn(FOUND, last).where(F.col(f"`{TURN}`") == 1)
    valid = F.col(f"`{AT}`") < F.col(f"`{FOUND}`.`{ENDS}`")
    return found.select(
        *(F.col(f"`{ROW}`.`{name}`").alias(name) for name in spine.columns),
        *(F.when(valid, F.col(f"`{FOUND}`.`{VALUE}{at}`")).alias(name) for at, name in enumerate(wanted.values())),
    )


def _key(spine: DataFrame, name: str, kind: Type) -> Column:
    """A column of the spine in the type of the key; one that is of another kind is refused."""
    there = dict(spine.dtypes)
    if name not in there:
        message = f"The spine has no column {name!r}, which is a key."
        raise DataError("bad-dimension", message, got=shown(list(there), 200), hint=did_you_mean(name, there))
    fits = {Integer: _WHOLE, Boolean: ("boolean",)}.get(type(kind), ("string",))
    if there[name] not in fits:
        message = f"Column {name!r} of the spine is a key, and not of type {kind}."
        raise DataError("bad-dimension", message, got=there[name], hint="Cast it before.")
    return F.col(f"`{name}`").cast(kind.ddl)


def _refuse_taken(spine: DataFrame, dimension: Dimension, wanted: Mapping[str, str]) -> None:
    taken = {name.lower() for name in spine.columns}
    for name in wanted.values():
        if name.lower() in taken:
            message = f"A feature of dimension {dimension.name!r} would have the name of another column."
            raise DataError("duplicate-name", message, got=shown(name), hint="Rename the spine's column.")
        taken.add(name.lower())
