"""Everything a project defines as one flat list that can be searched and shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.clock import show_duration
from headrace.define.dimension import Dimension
from headrace.define.feature_set import FeatureSet
from headrace.define.label import Label
from headrace.define.model import Model
from headrace.define.on_demand import OnDemand
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.project import Project


@dataclass(frozen=True)
class Entry:
    """One thing with a name: a stream, a view, a dimension, a feature of any kind, a feature set or a model."""

    kind: str
    name: str
    meaning: str
    type: str | None = None
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    location: str | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def matches(self, words: Sequence[str]) -> bool:
        """Whether every word occurs somewhere in what is said about it."""
        said = " ".join(filter(None, (self.name, self.meaning, self.owner, self.description, *self.tags))).casefold()
        return all(word.casefold() in said for word in words)

    def rows(self) -> Iterator[tuple[str, str | None]]:
        """The entry as label and text, for people."""
        yield self.kind, self.name
        yield "meaning", self.meaning
        yield "type", self.type
        for label, value in self.more.items():
            yield label, {True: "yes", False: "no"}.get(value, value)
        yield "owner", self.owner
        yield "description", self.description
        yield "tags", ", ".join(self.tags)
        yield "defined", self.location

    def as_json(self) -> dict[str, Any]:
        """The entry as JSON."""
        base = {"kind": self.kind, "name": self.name, "meaning": self.meaning, "type": self.type}
        rest = {"owner": self.owner, "description": self.description, "tags": list(self.tags)}
        return base | self.more | rest | {"defined": self.location}


def entries(project: Project) -> list[Entry]:
    """What a project defines, streams first, each view and each dimension followed by its features."""
    found = [_stream(stream) for stream in project.streams]
    for view in project.views:
        found += [_view(view), *_features(view)]
    for dimension in project.dimensions:
        found += [_dimension(dimension), *_features(dimension)]
    found += [_on_demand(made) for made in project.on_demands]
    found += [_feature_set(chosen) for chosen in project.feature_sets]
    found += [_model(model) for model in project.models]
    return found + [_label(label) for label in project.labels]


def _stream(stream: Stream) -> Entry:
    lateness = f"late after {show_duration(stream.allowed_lateness)}, then {stream.late}"
    return Entry(
        "stream",
        stream.name,
        ", ".join(map(str, stream.schema)),
        description=stream.description,
        location=stream.location,
        more={"event_time": stream.event_time, "event_id": stream.event_id or "position", "lateness": lateness},
    )


def _view(view: View) -> Entry:
    staleness = {} if view.max_staleness is None else {"max_staleness": show_duration(view.max_staleness)}
    return _keyed("view", view, _source_json(view) | staleness)


def _dimension(dimension: Dimension) -> Entry:
    return _keyed("dimension", dimension, _source_json(dimension))


def _keyed(kind: str, each: View | Dimension, more: dict[str, str]) -> Entry:
    return Entry(
        kind,
        each.name,
        ", ".join(feature.name for feature in each.features),
        owner=each.owner,
        description=each.description,
        tags=each.tags,
        location=each.location,
        more=more,
    )


def _features(view: View | Dimension) -> Iterator[Entry]:
    for feature in view.features:
        yield Entry(
            "feature",
            f"{view.name}.{feature.name}",
            feature.summary,
            type=str(feature.type),
            owner=view.owner,
            description=feature.description or view.description,
            tags=view.tags,
            location=view.location,
            more=_source_json(view) | {"nullable": feature.nullable},
        )


def _source_json(view: View | Dimension) -> dict[str, Any]:
    if isinstance(view, Dimension):
        until = "" if view.valid_to is None else f" to {view.valid_to}"
        return {"table": view.path, "key": ", ".join(view.by), "valid": f"from {view.valid_from}{until}"}
    return {"stream": view.stream.name, "key": ", ".join(view.by) or "none"}


def _on_demand(made: OnDemand) -> Entry:
    sources = ", ".join(source.name for source in made.sources)
    return Entry(
        "on-demand feature",
        made.name,
        f"function of {', '.join(made.parameters)}",
        owner=made.owner,
        description=made.description,
        tags=made.tags,
        location=made.location,
        more={"request": ", ".join(map(str, made.request)), "reads": sources},
    )


def _feature_set(chosen: FeatureSet) -> Entry:
    return Entry(
        "feature set",
        chosen.name,
        ", ".join(chosen.columns),
        owner=chosen.owner,
        description=chosen.description,
        tags=chosen.tags,
        location=chosen.location,
    )


def _model(model: Model) -> Entry:
    return Entry(
        "model",
        model.name,
        f"over feature set {model.features.name}",
        owner=model.owner,
        description=model.description,
        tags=model.tags,
        location=model.location,
        more={
            "stream": None if model.stream is None else model.stream.name,
            "inputs": ", ".join(f"{name} from {made.text}" for name, made in model.inputs) or None,
        },
    )


def _label(label: Label) -> Entry:
    return Entry(
        "label",
        label.name,
        f"the truth about model {label.model.name}",
        owner=label.owner,
        description=label.description,
        location=label.location,
        more={
            "stream": label.stream.name,
            "value": label.value.text,
            "horizon": show_duration(label.horizon),
            "segments": ", ".join(label.segments) or None,
        },
    )
