"""Values with weights in a bounded number of places: what the `quantiles` monoid keeps once tiles are merged.

A KLL sketch throws a coin whenever it has too many values, so two merges of the same tiles differ. Here nothing is left
to chance: values that are too many are put together by the leading bits that they share, as many bits as still tell
`MOST` places apart. That depends on the values alone, so any order and any grouping of merges gives the same bytes.

Each place has its least value and the weights of all its values. Of a number's 64 bits the first twelve are its sign
and its power of two; values that lie between two powers of two share at least these.
"""

from __future__ import annotations

import functools
import math
import struct
from bisect import bisect_left
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.aggregate.kll import values_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 2_048
"""Places; values are exact as long as there are no more different ones."""
MARK = 0xF5
"""The first byte of what is written here; no sketch of Spark's begins with it."""
_HEAD = struct.Struct("<BBBxI")
"""Mark, bits that are left out, bytes of a weight, places."""
_ONE = struct.Struct("<BBBxIdB")
_LOW_BITS = 2**63 - 1


class Ranked(NamedTuple):
    """Places in order: the least value of each, its weight, and how many trailing bits the values in one may differ in.

    Examples
    --------
    >>> both = merge_ranked([read_ranked(write_one(value)) for value in (2.0, 1.0, 2.0)])
    >>> both.values.tolist(), both.weights.tolist(), both.shift
    ([1.0, 2.0], [1, 2], 0)
    """

    values: NDArray[np.float64]
    weights: NDArray[np.int64]
    shift: int

    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not len(self.values)

    def quantile(self, q: float) -> float:
        """The least value that at least a share `q` of the weight does not exceed."""
        upto = self.weights.cumsum()
        # In doubles 0.55 * 20 is more than 11: without the nudge the answer would be the 12th value.
        rank = max(1, math.ceil(q * (1 - 1e-12) * int(upto[-1])))
        return float(self.values[upto.searchsorted(rank)])


@functools.cache
def _numpy() -> ModuleType:
    import numpy

    loaded: ModuleType = numpy
    return loaded


def write_one(value: float) -> bytes:
    """The bytes of one value of weight 1.

    >>> read_ranked(write_one(1.5)).values.tolist()
    [1.5]
    """
    return _ONE.pack(MARK, 0, 1, 1, value + 0.0, 1)


def merge_ranked(parts: Sequence[Ranked], sketches: Sequence[bytes] = ()) -> Ranked:
    """All of some parts, and of the KLL sketches of tiles."""
    numpy = _numpy()
    read = [values_of(sketch) for sketch in sketches]
    levels = [(1 << level, count) for _, counts in read for level, count in enumerate(counts)]
    # Adding zero turns -0.0 into 0.0, which is the same number in another place.
    found = numpy.frombuffer(b"".join([values for values, _ in read]), "<f8") + 0.0
    each = numpy.repeat(*(numpy.array(levels, numpy.int64).reshape(-1, 2).T))
    values = numpy.concatenate([found, *(part.values for part in parts)])
    weights = numpy.concatenate([each, *(part.weights for part in parts)])
    order = values.argsort(kind="stable")
    values, weights, shift = values[order], weights[order], max((part.shift for part in parts), default=0)
    bits = values.view(numpy.int64)
    # Negative numbers are ordered the other way round by their bits.
    bits = numpy.where(bits < 0, bits ^ _LOW_BITS, bits)
    starts = _starts(bits >> shift)
    if len(starts) > MOST:
        shift += bisect_left(range(shift, 64), True, key=lambda few: len(_starts(bits >> few)) <= MOST)
        starts = _starts(bits >> shift)
    if len(starts):
        weights = numpy.add.reduceat(weights, starts)
    return Ranked(values[starts], weights, shift)


def _starts(places: Any) -> Any:
    """Where each run of equal numbers begins."""
    numpy = _numpy()
    return numpy.flatnonzero(numpy.concatenate([[True], places[1:] != places[:-1]]) if len(places) else [])


def write_ranked(ranked: Ranked) -> bytes:
    """The bytes of places, weights in as few as they need."""
    size = next(size for size in (1, 2, 4, 8) if int(ranked.weights.max()) < 1 << (8 * size - (size == 8)))
    head = _HEAD.pack(MARK, ranked.shift, size, len(ranked.values))
    return b"".join((head, ranked.values.tobytes(), ranked.weights.astype(f"<u{size}").tobytes()))


def read_ranked(state: bytes) -> Ranked:
    """The inverse of `write_ranked`."""
    numpy = _numpy()
    _, shift, size, count = _HEAD.unpack_from(state)
    values = numpy.frombuffer(state, "<f8", count, _HEAD.size)
    weights = numpy.frombuffer(state, f"<u{size}", count, _HEAD.size + 8 * count)
    return Ranked(values, weights.astype(numpy.int64), shift)


def is_ranked(state: bytes) -> bool:
    """Whether bytes are from here, and not a sketch of Spark's."""
    return state[:1] == bytes((MARK,))
