"""The rows of a dimension, held to its definition and put in order: by key, and within a key by when they are valid.

What cannot be one answer for every key and moment is refused here, so that serving and Spark, which both take what
comes out, need not ask again: other types, nulls where none may be, two rows of one key for one moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.codec.json.rules import EARLIEST, LATEST
from headrace.define.dimension import Dimension
from headrace.define.dimension_rows import two_rows
from headrace.errors import DataError, shown
from headrace.plural import show_count
from headrace.types.field_types import (
    Boolean,
    Decimal,
    Field,
    Float,
    Integer,
    List,
    String,
    Timestamp,
    Type,
    arrow_type,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Moments = npt.NDArray[np.int64]

ENDLESS = 2**63 - 1
"""Until when a row is valid that no other follows."""
EXACT_BITS = 32
"""Whole numbers of so many bits are floats without loss."""


@dataclass(frozen=True, eq=False)
class DimensionTable:
    """A dimension's rows in order, each valid in [begins, ends).

    Parameters
    ----------
    rows
        The columns of the dimension's schema, each in one piece.
    begins, ends
        Microseconds; of a row that another of its key follows, it ends there at the latest.
    version
        Which state of the table it is.
    keys
        How many keys there are.
    most
        How many rows the key has that has most.
    """

    dimension: Dimension
    rows: pa.Table
    begins: Moments
    ends: Moments
    version: str
    keys: int
    most: int

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return int(self.rows.nbytes + self.begins.nbytes + self.ends.nbytes)


def load_rows(dimension: Dimension, tables: Sequence[pa.Table], version: str) -> DimensionTable:
    """The rows of some files in order, if they are what the dimension says.

    Examples
    --------
    >>> import headrace as hr
    >>> import pyarrow as pa
    >>> fields = {"merchant": str, "risk": float}
    >>> merchants = hr.dimension("merchants", "m.parquet", by="merchant", fields=fields, valid_from="since")
    >>> since = pa.array([20, 10], pa.timestamp("us", tz="UTC"))
    >>> table = load_rows(merchants, [pa.table({"merchant": ["m", "m"], "risk": [0.9, 0.5], "since": since})], "1")
    >>> table.rows.column("risk").to_pylist(), table.begins.tolist(), table.keys, table.most
    ([0.5, 0.9], [10, 20], 1, 2)
    """
    import numpy as np
    import pyarrow as pa

    fitted = pa.concat_tables([_fitted(dimension, each) for each in tables])
    for field in dimension.schema:
        _refuse_unfit(dimension, field, fitted.column(field.name))
    order = [(name, "ascending") for name in (*dimension.by, dimension.valid_from)]
    rows = _in_one_piece(dimension, fitted.sort_by(order))
    begins = _moments(rows, dimension.valid_from)
    same = _same_key(dimension, rows)
    _refuse_two_rows(dimension, rows, begins, same)
    ends = np.full(len(begins), ENDLESS, dtype=np.int64)
    if dimension.valid_to is not None:
        ends = _moments(rows, dimension.valid_to).copy()
    if len(ends):
        ends[:-1] = np.where(same, np.minimum(ends[:-1], begins[1:]), ends[:-1])
    firsts = np.flatnonzero(np.concatenate([[True], ~same])) if len(begins) else np.zeros(0, dtype=np.int64)
    most = int(np.diff(np.append(firsts, len(begins))).max(initial=0))
    return DimensionTable(dimension, rows, begins, ends, version, len(firsts), most)


def _fitted(dimension: Dimension, table: pa.Table) -> pa.Table:
    """A table in the types of the dimension; one that would lose something by it is refused."""
    import pyarrow as pa

    columns = [_cast(dimension, field, table.column(field.name)) for field in dimension.schema]
    return pa.table(columns, names=[field.name for field in dimension.schema])


def _cast(dimension: Dimension, field: Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is None and isinstance(field.type, Timestamp):
        hint = "Write the column with one, as pandas does after .dt.tz_localize('UTC')."
        raise _refusal(dimension, f"The timestamps of column {field.name!r} have no time zone.", str(kind), hint)
    if not _fits(kind, field.type):
        message = f"Column {field.name!r} is not of type {field.type}."
        raise _refusal(dimension, message, str(kind), "Declare what the table has, or write the column anew.")
    # Digits past the microsecond are cut off, as everywhere; nothing else may be.
    finest = pa.types.is_timestamp(kind) and kind.unit == "ns"
    try:
        return column.cast(arrow_type(field.type), safe=not finest)
    except pa.ArrowInvalid as error:
        message = f"A value of column {field.name!r} does not fit into type {field.type}."
        raise _refusal(dimension, message, shown(str(error), 200)) from error


def _fits(kind: pa.DataType, wanted: Type) -> bool:
    """Whether every value of an Arrow type has one of ours that is the same."""
    import pyarrow as pa

    is_ = pa.types
    if is_.is_dictionary(kind):
        return _fits(kind.value_type, wanted)
    if is_.is_null(kind):
        return True
    match wanted:
        case String():
            return bool(is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind))
        case Boolean():
            return bool(is_.is_boolean(kind))
        case Integer():
            return bool(is_.is_integer(kind))
        case Float():
            return bool(is_.is_floating(kind) or (is_.is_integer(kind) and kind.bit_width <= EXACT_BITS))
        case Decimal():
            return bool(is_.is_decimal(kind))
        case Timestamp():
            return bool(is_.is_timestamp(kind) and kind.tz is not None)
        case List(element):
            listed = is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind)
            return bool(listed and _fits(kind.value_type, element))
    return False


def _refuse_unfit(dimension: Dimension, field: Field, column: pa.ChunkedArray) -> None:
    """Refuse nulls where none may be, numbers that are none, and moments that no calendar has."""
    import pyarrow.compute as pc

    _refuse_some(
        dimension, 0 if field.optional else column.null_count, len(column), f"no value in column {field.name!r}"
    )
    kind, values = field.type, column
    if isinstance(kind, List):
        values = pc.list_flatten(column)
        nulls = 0 if kind.optional else values.null_count
        _refuse_some(dimension, nulls, len(values), f"no value in a list of column {field.name!r}", "value")
        kind = kind.element
    if isinstance(kind, Float):
        wrong = pc.sum(pc.invert(pc.is_finite(values))).as_py() or 0
        _refuse_some(dimension, wrong, len(values), f"NaN or infinity in column {field.name!r}", "value")
    if isinstance(kind, Timestamp):
        numbers = values.cast("int64")
        outside = pc.or_(pc.less(numbers, EARLIEST), pc.greater(numbers, LATEST))
        _refuse_some(dimension, pc.sum(outside).as_py() or 0, len(values), f"no such moment in {field.name!r}", "value")


def _refuse_some(dimension: Dimension, wrong: int, of: int, what: str, row: str = "row") -> None:
    if wrong:
        hint = "Declare the column with `| None` if that is right." if what.startswith("no value") else None
        if what.endswith(tuple(repr(name) for name in (*dimension.by, dimension.valid_from))):
            hint = "Every row needs its key and the moment from which on it is valid."
        raise _refusal(
            dimension,
            f"{wrong:,} of {show_count(of, row)} {'has' if wrong == 1 else 'have'} {what}.",
            f"{wrong:,}",
            hint,
        )


def _in_one_piece(dimension: Dimension, table: pa.Table) -> pa.Table:
    import pyarrow as pa

    columns = [column.combine_chunks() for column in table.columns]
    for name, column in zip(table.column_names, columns, strict=True):
        if isinstance(column, pa.ChunkedArray):
            message = f"Column {name!r} is too long to be kept in memory."
            raise _refusal(dimension, message, show_count(column.nbytes, "byte"), "A column of text has at most 2 GB.")
    return pa.table(columns, schema=table.schema)


def _moments(rows: pa.Table, name: str) -> Moments:
    """A column of moments in microseconds; null is the end of time."""
    import numpy as np

    column = rows.column(name).cast("int64").fill_null(ENDLESS).combine_chunks()
    found: Moments = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
    return found


def _same_key(dimension: Dimension, rows: pa.Table) -> Any:
    """For every row but the first, whether it has the key of the row before."""
    import numpy as np
    import pyarrow.compute as pc

    count = max(0, rows.num_rows - 1)
    same = np.ones(count, dtype=bool)
    for name in dimension.by:
        column = rows.column(name)
        same &= pc.equal(column.slice(1), column.slice(0, count)).to_numpy()
    return same


def _refuse_two_rows(dimension: Dimension, rows: pa.Table, begins: Moments, same: Any) -> None:
    import numpy as np

    twice = np.flatnonzero(same & (begins[1:] == begins[:-1]))
    if len(twice):
        at = int(twice[0])
        key = tuple(rows.column(name)[at].as_py() for name in dimension.by)
        raise two_rows(dimension, key, int(begins[at]), len(twice) - 1)


def _refusal(dimension: Dimension, message: str, got: str, hint: str | None = None) -> DataError:
    """An error that names the table."""
    where = f"{dimension.path}, dimension {dimension.name!r}"
    return DataError("bad-dimension", message, got=got, hint=hint, where=where)
