"""On-demand features of many rows: the user's Python function called for each, in Spark's Python workers.

It is the function that serving calls, through the same code (`define.on_demand`), with request values from the row's
own columns. A column needs a type, which is what the function says it returns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyspark.cloudpickle

from headrace.clock import show_time
from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand
from headrace.errors import HeadraceError, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    Batches = Iterator[pa.RecordBatch]

pickling: Any = pyspark.cloudpickle
FAILED = "headrace-on-demand-failed: "
"""What the message of a task begins with whose on-demand function failed; JSON follows."""
ROWS = 10_000


@dataclass(frozen=True)
class Calls:
    """What a task needs to compute the on-demand features of rows.

    Parameters
    ----------
    made
        A feature set of the on-demand features.
    stored
        By view, the features of it that functions take, each with its column.
    time
        The column with t.
    keys
        The columns that say which row it is, for an error.
    kinds
        What each function returns.
    """

    made: FeatureSet
    stored: Mapping[str, Mapping[str, str]]
    time: str
    keys: tuple[str, ...]
    kinds: Mapping[str, type]


def with_on_demand(frame: DataFrame, calls: Calls, folder: str | None = None) -> DataFrame:
    """Rows with a column for each on-demand feature.

    Parameters
    ----------
    folder
        Where the user's own modules lie, which a function may import.
    """
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

    names = [made.name for made in calls.made.on_demands]
    kinds: dict[type, Any] = {bool: BooleanType(), int: LongType(), float: DoubleType(), str: StringType()}
    schema = StructType([*frame.schema.fields, *(StructField(name, kinds[calls.kinds[name]]) for name in names)])
    # As one column: Spark would take a dot in the name of a column for a field of it.
    return frame.selectExpr("struct(*) AS row").mapInArrow(_caller(_packed(calls), folder), schema)


def _packed(calls: Calls) -> bytes:
    """The functions with all they use, for workers that have not loaded the project."""
    modules = {made.function.__module__ for made in calls.made.on_demands} - {"__main__"}
    found = [sys.modules[name] for name in sorted(modules) if name in sys.modules]
    for module in found:
        pickling.register_pickle_by_value(module)
    try:
        packed: bytes = pickling.dumps(calls)
    finally:
        for module in found:
            pickling.unregister_pickle_by_value(module)
    return packed


def _caller(packed: bytes, folder: str | None) -> Callable[[Batches], Batches]:
    """What a task does. It runs in Spark's Python workers."""

    def call(given: Batches) -> Batches:
        if folder is not None and folder not in sys.path:
            sys.path.insert(0, folder)
        import pyarrow as pa

        calls = pickling.loads(packed)
        for batch in given:
            rows = pa.RecordBatch.from_struct_array(batch.column(0))
            for at in range(0, rows.num_rows, ROWS):
                yield computed(rows.slice(at, ROWS), calls)

    return call


def computed(rows: pa.RecordBatch, calls: Calls) -> pa.RecordBatch:
    """Some rows with their on-demand features."""
    import pyarrow as pa

    made = calls.made.on_demands
    wanted = {calls.time, *calls.keys, *(field.name for each in made for field in each.request)}
    wanted |= {column for columns in calls.stored.values() for column in columns.values()}
    cells = {name: _plain(rows.column(name)).to_pylist() for name in wanted}
    found: dict[str, list[Any]] = {each.name: [] for each in made}
    for at in range(rows.num_rows):
        for name, value in _row(calls, cells, at).items():
            found[name].append(value)
    arrow = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    columns = [pa.array(found[each.name], arrow[calls.kinds[each.name]]) for each in made]
    names = [*rows.schema.names, *found]
    return pa.RecordBatch.from_arrays([*rows.columns, *columns], names=names)


def _row(calls: Calls, cells: Mapping[str, Sequence[Any]], at: int) -> dict[str, Any]:
    t = cells[calls.time][at]
    stored = {view: {name: cells[column][at] for name, column in held.items()} for view, held in calls.stored.items()}

    def call(made: OnDemand, values: Mapping[str, Any]) -> Any:
        request = {field.name: cells[field.name][at] for field in made.request}
        try:
            value = made.value(request, values, t)
        except Exception as error:
            got = shown(f"{type(error).__name__}: {error}", 200)
            raise _failed(made, f"On-demand feature {made.name!r} failed.", got, calls, cells, at) from error
        return _column_value(made, value, calls, cells, at)

    return calls.made.computed(stored, call)


def _column_value(made: OnDemand, value: Any, calls: Calls, cells: Mapping[str, Sequence[Any]], at: int) -> Any:
    """The value as its column holds it; what is of another type is refused, not changed."""
    kind = calls.kinds[made.name]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or (kind in (bool, str) and isinstance(value, kind)):
        return value
    number = isinstance(value, int) and not isinstance(value, bool)
    if kind is int and number and abs(value) < 2**63:
        return value
    if kind is float and (number or isinstance(value, float)) and abs(value) < float("inf"):
        return float(value)
    message = f"On-demand feature {made.name!r} gave something else than it says it returns."
    raise _failed(made, message, shown(value), calls, cells, at)


def _failed(
    made: OnDemand, message: str, got: str, calls: Calls, cells: Mapping[str, Sequence[Any]], at: int
) -> RuntimeError:
    """An error that survives its way out of a task."""
    key = ", ".join(f"{name}={shown(cells[name][at])}" for name in calls.keys)
    where = f"{key or 'a row'} at {show_time(cells[calls.time][at])}"
    hint = f"It is defined at {made.location}." if made.location else None
    told = HeadraceError("on-demand-failed", message, got=got, hint=hint, where=where)
    return RuntimeError(f"{FAILED}{json.dumps(told.as_json())}")


def _plain(column: pa.Array) -> pa.Array:
    """The column as values are inside Headrace: moments in microseconds."""
    from headrace.asof.lake import plain_type

    return column.cast(plain_type(column.type))
