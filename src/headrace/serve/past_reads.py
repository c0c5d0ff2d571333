"""Values of a past moment, from the lake: exactly what was known then, and slower than a read of now.

A moment that the lake has not reached yet is refused rather than answered in part (`lake.completeness`). Arrow is
loaded when the first past value is asked for: who never asks does without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace.clock import parse_timestamp, show_time
from headrace.config.config import Names
from headrace.define.dimension import Dimension
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.errors import DataError, shown
from headrace.log.protocol import Log
from headrace.read.catalog import Readable
from headrace.read.reader import ViewValues
from headrace.serve.dimensions import Dimensions
from headrace.tiles.changelog import KeyPart

if TYPE_CHECKING:
    from headrace.lake.table import LakeTable

LAKE = "lake"
"""The mode of an answer that was read from there."""
Tables = Callable[[Stream], "Mapping[str, LakeTable]"]
"""Gives the tables of a stream that are there, as they are now."""


class PastReads:
    """Reads past values of a project's views and dimensions."""

    def __init__(self, tables: Tables, log: Log, named: Names, dimensions: Dimensions | None = None) -> None:
        self._tables, self._log, self._named = tables, log, named
        self._dimensions = dimensions or Dimensions()

    def read(self, of: Readable, key: Mapping[str, KeyPart], t: int) -> dict[str, ViewValues]:
        """What every view and dimension behind a name had of a key at a moment."""
        return {view.name: self._read(view, key, t) for view in of.views}

    def _read(self, view: View | Dimension, key: Mapping[str, KeyPart], t: int) -> ViewValues:
        if isinstance(view, Dimension):
            return self._dimensions.read(view, [tuple(key[name] for name in view.by)], t)[0]
        return self._view(view, key, t)

    def _view(self, view: View, key: Mapping[str, KeyPart], t: int) -> ViewValues:
        from headrace.asof.lake import values_at
        from headrace.lake.completeness import complete

        stream = view.stream
        silver = complete(self._tables(stream), stream, self._log, self._named.topic(stream.name), t)
        own = {name: key[name] for name in view.by}
        found, there = values_at(silver, view, tuple(own.values()), t)
        return ViewValues(view.name, own, found, t, t, 0.0, not there, False, LAKE, t)


def moment_of(text: str, now: int) -> int:
    """The moment that a request asks for; it must not lie ahead.

    >>> moment_of("2026-01-01T00:00:00Z", now=2**60)
    1767225600000000
    """
    t = parse_timestamp(text)
    if t is None:
        hint = "Write it as 2026-01-01T12:00:00Z."
        raise DataError("bad-request", "`at` is no RFC 3339 moment with an offset.", got=shown(text), hint=hint)
    if t > now:
        message = "Values of a moment that is yet to come cannot be known."
        raise DataError("bad-request", message, got=shown(text), hint=f"By the server's clock it is {show_time(now)}.")
    return t
