"""The values in a KLL sketch of doubles with their weights, from the layout that every library of DataSketches writes.

The library for Python hands them over one by one, which takes a hundred times as long as the rest of a merge. A value
of level h stands for 2^h values. Sketches are made and filled by Spark and by the library; nothing is written here.
"""

from __future__ import annotations

import struct
from itertools import pairwise

_FAMILY = 15
_EMPTY, _SINGLE = 1, 4
_SMALL = 8
"""Bytes before the value of a sketch that has one."""
_HEAD = struct.Struct("<xBBBxxxxQxxB")
"""Version, family, flags, how many values were put in, levels; the levels' places follow."""
_BOUNDS = 16
"""Bytes of the least and the greatest value, which come before all others."""


def values_of(sketch: bytes) -> tuple[bytes, list[int]]:
    """The values as doubles side by side, and how many there are of each level; bytes behind them do not matter.

    Examples
    --------
    >>> from datasketches import kll_doubles_sketch
    >>> sketch = kll_doubles_sketch(200)
    >>> sketch.update(1.5)
    >>> struct.unpack("<d", values_of(bytes(sketch.serialize()))[0]), values_of(bytes(sketch.serialize()))[1]
    ((1.5,), [1])
    """
    if len(sketch) < _SMALL or sketch[2] != _FAMILY or sketch[1] not in (1, 2):
        raise ValueError("not a KLL sketch")
    if sketch[3] & _EMPTY:
        return b"", []
    if sketch[3] & _SINGLE:
        counts, start = [1], _SMALL
    else:
        _, _, _, count, levels = _HEAD.unpack_from(sketch)
        places = struct.unpack_from(f"<{levels}I", sketch, _HEAD.size + 1)
        counts = [high - low for low, high in pairwise(places)]
        # How far the top level goes is not written: its values stand for those that the others do not.
        counts.append((count - sum(held << level for level, held in enumerate(counts))) >> (levels - 1))
        start = _HEAD.size + 1 + 4 * levels + _BOUNDS
    found = sketch[start : start + 8 * sum(counts)]
    if min(counts) < 0 or len(found) < 8 * sum(counts):
        raise ValueError("a KLL sketch is cut off")
    return found, counts
