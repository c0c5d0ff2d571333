"""The tables that a training set reads, the lake's and those of dimensions: opened once, each in one version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.config.config import Config
from headrace.define.dimension import Dimension
from headrace.define.stream import Stream
from headrace.errors import DataError, shown
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables

if TYPE_CHECKING:
    from headrace.lake.dimension_table import DimensionTable
    from headrace.lake.table import LakeTable

Versions = Mapping[str, Mapping[str, int]]
"""By stream, the versions of its tables."""


class LakeTables:
    """The tables of a project's streams.

    Parameters
    ----------
    versions
        The versions in which the lake's tables are wanted; as they are now when left out.
    dimensions
        By dimension, the version in which its table is wanted.
    """

    def __init__(
        self, config: Config, versions: Versions | None = None, dimensions: Mapping[str, str] | None = None
    ) -> None:
        self._config, self._wanted, self._wanted_dimensions = config, versions, dimensions or {}
        self._dimensions: dict[str, DimensionTable] = {}
        self._opened: dict[str, dict[str, LakeTable]] = {}
        self._used: dict[str, dict[str, int]] = {}

    def of(self, stream: Stream) -> dict[str, LakeTable]:
        """The tables of a stream that are there."""
        if stream.name not in self._opened:
            self._opened[stream.name] = self._open_tables(stream)
        return self._opened[stream.name]

    def _open_tables(self, stream: Stream) -> dict[str, LakeTable]:
        if self._wanted is None:
            return find_tables(self._config, stream)
        from headrace.lake.completeness import refuse_removed

        found = find_tables(self._config, stream, self._wanted.get(stream.name, {}))
        for table in found.values():
            refuse_removed(table)
        return found

    def use(self, stream: Stream, name: str) -> LakeTable:
        """A table that is read; that it is, is noted."""
        found = self.of(stream).get(name)
        if found is None:
            message = f"The lake has nothing of stream {stream.name!r}."
            hint = "`headrace import` brings history; the archive adds what is live (`headrace up`)."
            raise DataError("lake-empty", message, got=shown(name), hint=hint)
        self._used.setdefault(stream.name, {})[name] = found.delta.version()
        return found

    def silver(self, stream: Stream) -> LakeTable:
        """The events of a stream."""
        return self.use(stream, SILVER)

    def dimension(self, dimension: Dimension) -> DimensionTable:
        """The table of a dimension."""
        from headrace.lake.dimension import place_of, read

        if dimension.name not in self._dimensions:
            place = place_of(self._config, dimension)
            self._dimensions[dimension.name] = read(place, self._wanted_dimensions.get(dimension.name))
        return self._dimensions[dimension.name]

    @property
    def dimension_versions(self) -> dict[str, str]:
        """The versions of the dimensions that were read."""
        return {name: table.version for name, table in sorted(self._dimensions.items())}

    @property
    def versions(self) -> dict[str, dict[str, int]]:
        """The versions of all tables that were read."""
        return {stream: dict(sorted(held.items())) for stream, held in sorted(self._used.items())}
