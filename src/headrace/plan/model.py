"""A plan is data: what runs, over which tiles, giving which features. `explain` and `run` are two readers of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headrace.aggregate import Monoid
from headrace.clock import MINUTE, show_duration
from headrace.define.dimension import Dimension
from headrace.define.feature_set import FeatureSet
from headrace.define.label import Label
from headrace.define.model import PREDICTIONS, Model
from headrace.define.on_demand import OnDemand
from headrace.define.stream import Stream
from headrace.define.view import Feature, Term, View
from headrace.errors import ProjectError, did_you_mean, shown
from headrace.expression import Expression
from headrace.plan.fingerprint import fingerprint

LANES = ("on_time", "late")
DEDUPLICATION, TILES = "deduplication", "tiles"
"""The operators that keep state, as `plan` and `state` call them."""
SPREAD = 10 * MINUTE
"""How far partitions may be apart in arrival while a backlog is read; the log's source reads them in step."""


@dataclass(frozen=True)
class Admission:
    """The one long-lived stage of a stream that gives every record its verdict."""

    stream: Stream

    @property
    def id(self) -> str:
        """The stage's stable name."""
        return f"{self.stream.name}.admit"

    @property
    def form(self) -> dict[str, Any]:
        """All that decides a verdict."""
        stream = self.stream
        return {
            "stream": stream.name,
            "schema": stream.schema.form,
            "event_time": stream.event_time,
            "event_id": stream.event_id,
            "arrival": str(stream.arrival),
            "allowed_lateness": stream.allowed_lateness,
            "max_clock_skew": stream.max_clock_skew,
            "late": stream.late,
            "checks": {name: check.text for name, check in stream.checks},
            # JSON, which needs no saying, leaves the fingerprint what it was before there were other formats.
            **({} if stream.format == "json" else {"format": stream.format}),
            **({} if stream.avro_schema is None else {"avro_schema": stream.avro_schema}),
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that decides a verdict."""
        return fingerprint(self.form)


@dataclass(frozen=True)
class Partial:
    """One partial column of a tile: a monoid and what it eats."""

    monoid: Monoid
    value: Expression

    @property
    def form(self) -> dict[str, Any]:
        """The column as JSON."""
        return {"monoid": self.monoid.form, "value": self.value.text}

    @cached_property
    def name(self) -> str:
        """A column name that depends on nothing but what the column holds."""
        return f"{self.monoid.kind}_{fingerprint(self.form)[:8]}"


@dataclass(frozen=True)
class TileSet:
    """Everything Spark keeps for one stream and one key: one row per (key, tile, lane)."""

    stream: Stream
    key: tuple[tuple[str, Expression], ...]
    where: Expression | None
    grain: int
    partials: tuple[Partial, ...]
    retention: int | None
    mode: str
    mode_reason: str | None = None

    @property
    def id(self) -> str:
        """The stage's stable name."""
        return f"{self.stream.name}.by_{'_and_'.join(name for name, _ in self.key) or 'all'}"

    @property
    def watermark_delay(self) -> int:
        """How far Spark's watermark stays behind the newest event: looser than every rule that decides anything.

        So it drops no row, and only sizes the state.
        """
        return self.stream.allowed_lateness + self.stream.max_clock_skew + SPREAD

    @property
    def state_retention(self) -> dict[str, int]:
        """How long each stateful operator keeps a row, until the watermark has passed it.

        Durations are in event time: those of an event's identity after the event, of a tile after its start. A stream
        without event ids has no copies to find, and no such operator.
        """
        identities = {} if self.stream.event_id is None else {DEDUPLICATION: self.watermark_delay}
        return {**identities, TILES: self.grain + self.watermark_delay}

    @property
    def form(self) -> dict[str, Any]:
        """All that decides what a tile holds. The mode is not part of it: every mode computes the same."""
        return {
            "admission": Admission(self.stream).fingerprint,
            "key": {name: column.text for name, column in self.key},
            "where": None if self.where is None else self.where.text,
            "grain": self.grain,
            "partials": [partial.form for partial in self.partials],
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that decides what a tile holds."""
        return fingerprint(self.form)


@dataclass(frozen=True)
class PlannedTerm:
    """Where a term's value comes from: its columns, and the column that tells its sessions."""

    term: Term
    columns: tuple[Partial, ...]
    span: Partial


@dataclass(frozen=True)
class PlannedFeature:
    """A feature and the tiles it is merged from."""

    view: View
    feature: Feature
    tile_set: TileSet
    terms: tuple[PlannedTerm, ...]

    @property
    def id(self) -> str:
        """The feature's full name."""
        return f"{self.view.name}.{self.feature.name}"

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that decides the feature's value."""
        parts = [
            {
                "aggregate": planned.term.aggregate.form,
                "window": planned.term.window.form,
                "columns": [column.name for column in planned.columns],
                "span": planned.span.name,
            }
            for planned in self.terms
        ]
        return fingerprint({"admission": Admission(self.tile_set.stream).fingerprint, "terms": parts})

    @property
    def error(self) -> str:
        """The declared error of the value."""
        errors = {planned.term.aggregate.error for planned in self.terms} - {None}
        return ", ".join(sorted(filter(None, errors))) or "exact"


@dataclass(frozen=True)
class PlannedDimension:
    """A dimension: nothing runs for it, its table is read where its values are wanted."""

    dimension: Dimension

    @property
    def form(self) -> dict[str, Any]:
        """All that decides what a row means. What rows there are is not part of it."""
        dimension = self.dimension
        return {
            "dimension": dimension.name,
            "path": dimension.path,
            "key": list(dimension.by),
            "schema": dimension.schema.form,
            "valid_from": dimension.valid_from,
            "valid_to": dimension.valid_to,
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the definition."""
        return fingerprint(self.form)


@dataclass(frozen=True)
class Plan:
    """What a project runs."""

    admissions: tuple[Admission, ...]
    tile_sets: tuple[TileSet, ...]
    features: tuple[PlannedFeature, ...]
    on_demands: tuple[OnDemand, ...]
    feature_sets: tuple[FeatureSet, ...]
    mode: str
    dimensions: tuple[PlannedDimension, ...] = ()
    models: tuple[Model, ...] = ()
    labels: tuple[Label, ...] = ()

    @property
    def declared(self) -> tuple[Stream, ...]:
        """The streams that others send events to: all but those of predictions."""
        streams = (stage.stream for stage in self.admissions)
        return tuple(stream for stream in streams if not stream.name.startswith(PREDICTIONS))

    def model(self, name: str) -> Model:
        """A model by its name."""
        for each in self.models:
            if each.name == name:
                return each
        hint = did_you_mean(name, {each.name for each in self.models})
        raise ProjectError("not-found", "There is no such model.", got=shown(name), hint=hint)

    def label(self, name: str) -> Label:
        """A label by its name."""
        for each in self.labels:
            if each.name == name:
                return each
        hint = did_you_mean(name, {each.name for each in self.labels})
        raise ProjectError("not-found", "There is no such label.", got=shown(name), hint=hint)

    def tile_sets_of(self, view: str | None) -> tuple[TileSet, ...]:
        """The tile sets that a view's features are read from; all of them when no view is named."""
        return self.tile_sets if view is None else tuple(dict.fromkeys(each.tile_set for each in self.view(view)))

    def view(self, name: str) -> tuple[PlannedFeature, ...]:
        """The planned features of one view."""
        found = tuple(feature for feature in self.features if feature.view.name == name)
        if found:
            return found
        hint = did_you_mean(name, {feature.view.name for feature in self.features})
        raise ProjectError("not-found", "There is no such view.", got=shown(name), hint=hint)

    @cached_property
    def view_tiles(self) -> dict[str, TileSet]:
        """Of each view, by its name, the tile set that it is read from."""
        return {planned.view.name: planned.tile_set for planned in self.features}

    @cached_property
    def versions(self) -> dict[str, str]:
        """Of each view a digest of everything that decides its values."""
        parts: dict[str, dict[str, str]] = {}
        for planned in self.features:
            parts.setdefault(planned.view.name, {})[planned.feature.name] = planned.fingerprint
        return {view: fingerprint(features) for view, features in parts.items()}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that decides a value."""
        held = {each.dimension.name: each.fingerprint for each in self.dimensions}
        return fingerprint(
            {
                "tiles": sorted(tiles.fingerprint for tiles in self.tile_sets),
                "features": {feature.id: feature.fingerprint for feature in self.features},
                "on_demand": {made.name: made.fingerprint for made in self.on_demands},
                "sets": {chosen.name: chosen.columns for chosen in self.feature_sets},
                # Without any, the fingerprint is what it was before there were dimensions.
                **({"dimensions": held} if held else {}),
            }
        )


def shown_retention(retention: int | None) -> str:
    """A retention as people read it."""
    return "for ever" if retention is None else show_duration(retention)
