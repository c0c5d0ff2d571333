"""What models were given, window by window, as looks have found it: parts that are merged when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.config.config import Config
from headrace.define.model import Model
from headrace.drift.reference import Reference, references_of
from headrace.drift.statistics import Statistics
from headrace.drift.window import SCORE, DriftWindow
from headrace.errors import HeadraceError
from headrace.evaluation.pass_table import SAID, SEEN, PassTable
from headrace.lake.imports import positions
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables
from headrace.models.registry import ModelRegistry
from headrace.spark.evaluation.outcomes import added_since
from headrace.spark.evaluation.spreads import OffsetRange, merged, score_reference, spreads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Spread(msgspec.Struct, frozen=True):
    """How far a look saw: the offsets of each partition, and the version of the table."""

    positions: dict[int, int]
    version: int


class SpreadTable:
    """The statistics of a model's predictions.

    Parameters
    ----------
    names
        By which segments are told apart.
    """

    def __init__(self, config: Config, model: Model, names: Sequence[str] = ()) -> None:
        self._config, self._model, self._names = config, model, names
        self._length = config.drift.window
        self._looks = PassTable(config, f"model.{model.name}")

    def look(self, session: SparkSession, registry: ModelRegistry) -> int:
        """Take in the predictions that have come to the lake since the last look; how many windows they are in."""
        silver = find_tables(self._config, self._model.predictions).get(SILVER)
        if silver is None:
            return 0
        said, number = self._looks.seen(), self._looks.taken + 1
        last = None if said is None else msgspec.json.decode(said, type=Spread)
        now = Spread(positions(silver), silver.delta.version())
        if last is not None and last.positions == now.positions:
            return 0
        known = references(registry, self._model)
        if not known:
            return 0
        files = silver.files() if last is None else sorted(added_since(silver, last.version))
        between = OffsetRange(None if last is None else last.positions, now.positions, files)
        found = spreads(session, self._model, silver, known, self._length, self._names, between=between)
        rows = [
            {
                "window": window,
                "version": version,
                "part": column,
                "value": "",
                "told": msgspec.json.encode(held).decode(),
            }
            for (window, version), columns in found.items()
            for column, held in columns.items()
        ]
        self._looks.append(rows, msgspec.json.encode(now).decode(), number)
        return len(found)

    def windows(self, version: int, last: int | None = None) -> list[DriftWindow]:
        """The windows of a version, in order, as looks found them up to the one of this number."""
        upto = "" if last is None else f" AND look <= {last}"
        parts: dict[int, dict[str, list[Statistics]]] = {}
        for row in self._looks.rows(f"part <> '{SEEN}' AND version = {version}{upto}"):
            held = msgspec.json.decode(row["told"], type=Statistics)
            parts.setdefault(row["window"], {}).setdefault(row["part"], []).append(held)
        return [
            DriftWindow(start, start + self._length, {name: merged(held) for name, held in columns.items()})
            for start, columns in sorted(parts.items())
        ]

    def last_within(self, within: Sequence[Mapping[int, int]]) -> int:
        """The number of the last look that saw nothing beyond any of some offsets by partition; 0 if all did."""
        said = [(row["look"], msgspec.json.decode(row["told"], type=Spread)) for row in self._looks.rows(SAID)]
        return max((number for number, each in said if all(_inside(each, one) for one in within)), default=0)


def _inside(spread: Spread, offsets: Mapping[int, int]) -> bool:
    return all(offset <= offsets.get(partition, 0) for partition, offset in spread.positions.items())


def references(registry: ModelRegistry, model: Model) -> dict[int, dict[str, Reference]]:
    """Of each version of a model, how its columns were spread when it was trained, and bins for its scores.

    A model that is declared and has no version yet has none.
    """
    found: dict[int, dict[str, Reference]] = {}
    if model.name not in registry.models():
        return found
    for version in registry.versions(model.name):
        try:
            told = registry.manifest(model.name, version)
        except HeadraceError:
            continue
        found[version] = references_of(told.reference) | {SCORE: score_reference()}
    return found
