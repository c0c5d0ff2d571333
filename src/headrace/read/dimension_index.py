"""A dimension's rows in memory, found by binary search: column after column of the key, then the moment.

The rows lie in the order of their keys (`lake.dimension_table`), so that nothing is kept beside the columns themselves:
a million keys take no more than they do in Arrow, and a new table takes the place of an old one without a pause. A look
among a million keys takes some tens of microseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.lake.dimension_table import DimensionTable
from headrace.tiles.changelog import Key
from headrace.types.field_types import List, String, Timestamp, Type, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa


class DimensionIndex:
    """Answers for the rows of a dimension; any number of threads may ask.

    Examples
    --------
    >>> import headrace as hr
    >>> import pyarrow as pa
    >>> from headrace.lake.dimension_table import load_rows
    >>> fields = {"merchant": str, "risk": float}
    >>> merchants = hr.dimension("merchants", "m.parquet", by="merchant", fields=fields, valid_from="since")
    >>> since = pa.array([20, 10], pa.timestamp("us", tz="UTC"))
    >>> table = load_rows(merchants, [pa.table({"merchant": ["m", "m"], "risk": [0.9, 0.5], "since": since})], "1")
    >>> index = DimensionIndex(table)
    >>> index.value_at(("m",), 19), index.value_at(("m",), 9)
    ({'risk': 0.5}, None)
    """

    def __init__(self, table: DimensionTable) -> None:
        self.rows, self.keys, self.bytes = len(table.begins), table.keys, table.bytes
        self._most = table.most
        dimension, rows = table.dimension, table.rows
        self._key = [_searched(rows.column(name).combine_chunks(), kind) for name, kind in dimension.key_types]
        self._begins, self._ends = (memoryview(cast("Any", moments)) for moments in (table.begins, table.ends))
        self._values = [(each.name, _plain(rows.column(each.name), each.type)) for each in dimension.features]

    def value_at(self, key: Key, t: int) -> dict[str, Any] | None:
        """The features of a key at a moment; None when no row of it is valid then."""
        low, high, last = 0, self.rows, len(key) - 1
        for number, (column, part) in enumerate(zip(self._key, key, strict=True)):
            wanted = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            low = bisect_left(column, wanted, low, high)
            # The whole key has no more rows than any key has, so its end is near.
            high = bisect_right(column, wanted, low, high if number < last else min(high, low + self._most))
        at = bisect_right(self._begins, t, low, high) - 1
        if at < low or t >= self._ends[at]:
            return None
        return {name: column[at].as_py() for name, column in self._values}


class _Texts(Sequence[bytes]):
    """A column of text as bytes, which are in the order that Arrow sorts them in."""

    def __init__(self, column: pa.StringArray) -> None:
        _, offsets, data = column.buffers()
        self._count, self._from = len(column), column.offset
        self._offsets = memoryview(offsets).cast("B").cast("i") if offsets else memoryview(b"")
        self._data = memoryview(data).cast("B") if data else memoryview(b"")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        at += self._from
        return self._data[self._offsets[at] : self._offsets[at + 1]].tobytes()


def _searched(column: pa.Array, kind: Type) -> Sequence[Any]:
    """A column of a key as something that can be searched."""
    if isinstance(kind, String):
        return _Texts(column)
    found: Sequence[Any] = memoryview(column.to_numpy(zero_copy_only=False))
    return found


def _plain(column: pa.ChunkedArray, kind: Type) -> pa.Array:
    """A column whose values are as they are inside Headrace: moments as microseconds."""
    import pyarrow as pa

    if isinstance(kind, Timestamp):
        column = column.cast(pa.int64())
    elif isinstance(kind, List) and isinstance(kind.element, Timestamp):
        column = column.cast(pa.list_(pa.int64()))
    else:
        column = column.cast(arrow_type(kind))
    return column.combine_chunks()
