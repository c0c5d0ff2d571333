"""A spine in Parquet files or in a Delta table: which files, and which columns they have as Spark can take them.

Files that Spark reads as they are it reads itself. Nanoseconds, which pandas writes and Spark refuses, columns that are
told by the names of folders, and object storage are read by tasks with pyarrow (`spark.training.spine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.ingest.files.source import DELTA, Source
from headrace.ingest.files.table_rows import open_table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Files:
    """Files of one table.

    Parameters
    ----------
    places
        Each file's address, and the columns whose one value stands in its path or in the table's log.
    schema
        All columns.
    plain
        Whether Spark can read the files itself.
    options
        What reaches object storage.
    """

    places: tuple[tuple[str, Mapping[str, Any]], ...]
    schema: pa.Schema
    plain: bool
    options: Mapping[str, str]


def files_of(given: Source) -> Files:
    """The files of a Parquet or Delta source."""
    import pyarrow as pa

    found, fragments = open_table(given)
    schema = carried(found)
    if given.format == DELTA:
        places = _delta_places(given)
        local = "://" not in given.place
        return Files(places, schema, local and not any(cells for _, cells in places), given.options)
    from pyarrow.dataset import get_partition_keys

    parts = tuple((each.path, dict(get_partition_keys(each.partition_expression))) for each in fragments)
    same = all(carried(each.physical_schema) == each.physical_schema == found for each in fragments)
    plain = same and not any(cells for _, cells in parts)
    moments = set() if plain else _spark_moments(fragments)
    if moments:
        # Spark's old form of moments says nothing of a time zone and always means UTC.
        utc = pa.timestamp("us", "UTC")
        plain, schema = True, pa.schema([each.with_type(utc) if each.name in moments else each for each in schema])
    return Files(parts, schema, plain, {})


def _delta_places(given: Source) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    import pyarrow as pa

    table = given.table()
    actions = pa.table(table.get_add_actions(flatten=True))
    root = table.table_uri.rstrip("/").removeprefix("file://")
    cells = [name for name in actions.column_names if name.startswith("partition.")]
    rows = actions.select(["path", *cells]).to_pylist()
    return tuple(
        (f"{root}/{row['path']}", {name.removeprefix("partition."): row[name] for name in cells}) for row in rows
    )


def _spark_moments(fragments: list[Any]) -> set[str]:
    """The columns that keep Spark from reading files, if it wrote all of them itself, as moments in its old form."""
    import pyarrow as pa

    found: set[str] = set()
    for fragment in fragments:
        schema, columns = fragment.physical_schema, fragment.metadata.schema
        old = {columns.column(at).path for at in range(len(columns)) if columns.column(at).physical_type == "INT96"}
        odd = {each.name for each in schema if carried(pa.schema([each])).field(0) != each}
        if odd != old:
            return set()
        found |= old
    return found


def carried(schema: pa.Schema) -> pa.Schema:
    """The columns in the types in which Arrow hands them to Spark: moments in microseconds, texts plain."""
    import pyarrow as pa

    return pa.schema([pa.field(each.name, _carried(each.type)) for each in schema])


def _carried(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_dictionary(kind):
        return _carried(kind.value_type)
    if types.is_large_string(kind) or str(kind) == "string_view":
        return pa.string()
    if types.is_large_binary(kind) or str(kind) == "binary_view":
        return pa.binary()
    if types.is_unsigned_integer(kind):
        return pa.decimal128(20, 0) if kind == pa.uint64() else pa.int64()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_struct(kind):
        return pa.struct([pa.field(part.name, _carried(part.type)) for part in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", _carried(kind.value_type)))
    return kind
