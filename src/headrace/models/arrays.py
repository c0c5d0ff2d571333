"""Whole columns, as numpy or Arrow has them, as numbers or as plain values: no Python for each cell of a number.

Arrow divides a decimal's digits by a power of ten, which is not always the nearest float; through its text it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError
from headrace.models.columns import ModelColumn

if TYPE_CHECKING:
    from headrace.models.predictors import Vector


def floats(name: str, values: Any, categories: Sequence[str] | None) -> Vector:
    """A column as float64, NaN for what is missing; of texts, the places among the categories.

    >>> import numpy as np
    >>> floats("n", np.array([1, 2]), None).tolist(), floats("c", np.array(["b", "x"]), ["a", "b"]).tolist()
    ([1.0, 2.0], [1.0, nan])
    """
    import numpy as np

    if categories is None and isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values.astype(np.float64)
    array = _arrow(name, values)
    if categories is not None:
        return _numpy(_places(name, array, categories))
    return _numpy(_numbers(name, array))


def plain(column: ModelColumn, values: Any) -> list[Any]:
    """A column as plain Python values: moments as microseconds, None for what is missing.

    >>> import numpy as np
    >>> plain(ModelColumn("n", "integer", ""), np.array([1.0, np.nan]))
    [1, None]
    """
    import pyarrow as pa

    array = _arrow(column.name, values)
    if pa.types.is_timestamp(array.type):
        array = _micros(array)
    found: list[Any] = array.to_pylist()
    if pa.types.is_floating(array.type):
        found = [None if cell is None or math.isnan(cell) else cell for cell in found]
        if column.type == "integer":  # pandas makes floats of whole numbers when one is missing
            found = [int(cell) if cell is not None and cell.is_integer() else cell for cell in found]
    return found


def _arrow(name: str, values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        try:
            values = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError("wrong-columns", f"Column {name!r} cannot be read.", got=str(error)) from None
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    return values


def _micros(array: Any) -> Any:
    import pyarrow as pa

    return array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64())


def _places(name: str, array: Any, categories: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(array.type):
        return array
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        if str(array.type) != "string_view":
            raise DataError("wrong-columns", f"Column {name!r} holds no texts.", got=str(array.type))
        array = array.cast(pa.string())
    return pc.index_in(array, value_set=pa.array(list(categories), array.type))


def _numbers(name: str, array: Any) -> Any:
    import pyarrow as pa

    types, kind = pa.types, array.type
    if types.is_timestamp(kind):
        return _micros(array)
    if types.is_decimal(kind):
        return array.cast(pa.string()).cast(pa.float64())
    if types.is_boolean(kind):
        return array.cast(pa.int8())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind):
        return array
    raise DataError("wrong-columns", f"Column {name!r} holds no numbers.", got=str(kind))


def _numpy(array: Any) -> Vector:
    import numpy as np
    import pyarrow as pa

    # Not safe, in Arrow's word: whole numbers beyond 2**53 become the nearest float, as they do in Python.
    made = array.cast(pa.float64(), safe=False)
    filled: Vector = np.asarray((made.fill_null(math.nan) if made.null_count else made).to_numpy(zero_copy_only=False))
    return filled
