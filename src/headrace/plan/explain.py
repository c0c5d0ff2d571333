"""A plan for people and for programs: the same facts as text and as JSON."""

from __future__ import annotations

from typing import Any

from headrace.clock import show_duration
from headrace.define.label import Label
from headrace.define.model import Model
from headrace.plan.capability import MODES, STAGES
from headrace.plan.model import (
    DEDUPLICATION,
    LANES,
    TILES,
    Admission,
    Plan,
    PlannedDimension,
    PlannedFeature,
    TileSet,
    shown_retention,
)


def as_json(plan: Plan) -> dict[str, Any]:
    """The whole plan as one JSON object. Durations are microseconds."""
    return {
        "fingerprint": plan.fingerprint,
        "mode": plan.mode,
        "admissions": [_admission_json(stage) for stage in plan.admissions],
        "tile_sets": [_tile_set_json(tiles) for tiles in plan.tile_sets],
        "features": [_feature_json(planned) for planned in plan.features],
        "dimensions": [_dimension_json(planned) for planned in plan.dimensions],
        "on_demand": [
            {
                "name": made.name,
                "fingerprint": made.fingerprint,
                "request": [str(field) for field in made.request],
                "parameters": list(made.parameters),
                "views": [view.name for view in made.views],
                "dimensions": [dimension.name for dimension in made.dimensions],
                "mode": "at read time",
            }
            for made in plan.on_demands
        ],
        "feature_sets": [{"name": chosen.name, "columns": list(chosen.columns)} for chosen in plan.feature_sets],
        "models": [_model_json(model) for model in plan.models],
        "labels": [_label_json(label) for label in plan.labels],
        "capabilities": {stage: {mode: reasons[mode] or "yes" for mode in MODES} for stage, reasons in STAGES.items()},
    }


def _admission_json(stage: Admission) -> dict[str, Any]:
    return {
        "id": stage.id,
        "fingerprint": stage.fingerprint,
        "format": stage.stream.format,
        **stage.form,
    }


def _tile_set_json(tiles: TileSet) -> dict[str, Any]:
    return {
        "id": tiles.id,
        "fingerprint": tiles.fingerprint,
        "stream": tiles.stream.name,
        "key": [name for name, _ in tiles.key],
        "where": None if tiles.where is None else tiles.where.text,
        "grain": tiles.grain,
        "lanes": list(LANES if tiles.stream.late == "update" else LANES[:1]),
        "mode": tiles.mode,
        "mode_reason": tiles.mode_reason,
        "state_retention": tiles.state_retention,
        "store_retention": tiles.retention,
        "partials": [{"name": partial.name, **partial.form} for partial in tiles.partials],
    }


def _feature_json(planned: PlannedFeature) -> dict[str, Any]:
    return {
        "id": planned.id,
        "fingerprint": planned.fingerprint,
        "summary": planned.feature.summary,
        "type": str(planned.feature.type),
        "nullable": planned.feature.nullable,
        "error": planned.error,
        "tile_set": planned.tile_set.id,
        "mode": planned.tile_set.mode,
        "terms": [
            {"window": term.term.window.form, "partials": [column.name for column in term.columns]}
            for term in planned.terms
        ],
    }


def _dimension_json(planned: PlannedDimension) -> dict[str, Any]:
    dimension = planned.dimension
    features = [{"id": f"{dimension.name}.{each.name}", "type": str(each.type)} for each in dimension.features]
    return {"fingerprint": planned.fingerprint, **planned.form, "features": features, "mode": "at read time"}


def _model_json(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "features": model.features.name,
        "stream": None if model.stream is None else model.stream.name,
        "where": None if model.stream is None or model.stream.filter is None else model.stream.filter.text,
        "inputs": {name: made.text for name, made in model.inputs},
    }


def _label_json(label: Label) -> dict[str, Any]:
    return {
        "name": label.name,
        "model": label.model.name,
        "stream": label.stream.name,
        "where": None if label.stream.filter is None else label.stream.filter.text,
        "on": {name: made.text for name, made in label.on},
        "at": None if label.at is None else label.at.text,
        "value": label.value.text,
        "kind": label.kind,
        "horizon": show_duration(label.horizon),
        "default": label.default,
        "segments": list(label.segments),
        "window": show_duration(label.window),
    }


def text(plan: Plan) -> str:
    """The whole plan as people read it."""
    parts = [f"plan {plan.fingerprint}, {plan.mode}"]
    parts += [_admission_text(stage) for stage in plan.admissions]
    parts += [_tile_set_text(plan, tiles) for tiles in plan.tile_sets]
    parts += [_dimension_text(planned) for planned in plan.dimensions]
    if plan.on_demands:
        parts.append("on demand, at read time\n" + "\n".join(_on_demand_line(made) for made in plan.on_demands))
    if plan.feature_sets:
        lines = [f"  {chosen.name}: {', '.join(chosen.columns)}" for chosen in plan.feature_sets]
        parts.append("feature sets\n" + "\n".join(lines))
    if plan.models:
        parts.append("models\n" + "\n".join(_model_line(model) for model in plan.models))
    if plan.labels:
        parts.append("labels\n" + "\n".join(_label_line(label) for label in plan.labels))
    return "\n\n".join([*parts, _capability_text()]) + "\n"


def _model_line(model: Model) -> str:
    told = _model_json(model)
    where = f" where {told['where']}" if told["where"] else ""
    scores = f"; scores {told['stream']}{where} as events come" if told["stream"] else "; on request"
    return f"  {model.name}: {model.features.name}{scores}"


def _label_line(label: Label) -> str:
    otherwise = "open for ever" if label.default is None else f"{label.default} after that"
    return (
        f"  {label.name}: the truth about {label.model.name}, from {label.stream.name} within "
        f"{show_duration(label.horizon)}, {otherwise}"
    )


def _admission_text(stage: Admission) -> str:
    stream = stage.stream
    identity = stream.event_id or "the record's position"
    lines = [
        f"{stage.id}  {stage.fingerprint}",
        f"  an event is {identity} at {stream.event_time}; it arrives by {stream.arrival}",
        f"  future beyond {show_duration(stream.max_clock_skew)} ahead, late after "
        f"{show_duration(stream.allowed_lateness)}; late events: {stream.late}",
    ]
    if stream.format != "json":
        lines.insert(1, f"  records are {stream.format}")
    lines += [f"  check {name}: {check.text}" for name, check in stream.checks]
    if stream.arrival.source == "producer":
        lines.append("  warning: arrival is the producer's clock, so lateness is what producers say it is")
    return "\n".join(lines)


def _tile_set_text(plan: Plan, tiles: TileSet) -> str:
    key = ", ".join(name for name, _ in tiles.key) or "nothing: one value over everything"
    mode = tiles.mode if tiles.mode_reason is None else f"{tiles.mode} ({tiles.mode_reason})"
    lines = [
        f"{tiles.id}  {tiles.fingerprint}",
        f"  tiles of {show_duration(tiles.grain)} by {key}; {mode}",
        *([] if tiles.where is None else [f"  only where {tiles.where.text}"]),
        f"  state: {_state_text(tiles)}; store: {shown_retention(tiles.retention)}",
        *(f"  column {partial.name}: {partial.monoid.kind} of {partial.value.text}" for partial in tiles.partials),
    ]
    lines += [
        f"  feature {planned.id}: {planned.feature.summary}; {planned.error}"
        for planned in plan.features
        if planned.tile_set is tiles
    ]
    return "\n".join(lines)


def _state_text(tiles: TileSet) -> str:
    called = {DEDUPLICATION: "event ids", TILES: "tiles"}
    return ", ".join(f"{called[name]} for {show_duration(kept)}" for name, kept in tiles.state_retention.items())


def _dimension_text(planned: PlannedDimension) -> str:
    dimension = planned.dimension
    until = "" if dimension.valid_to is None else f" to {dimension.valid_to}"
    lines = [
        f"{dimension.name}  {planned.fingerprint}",
        f"  {dimension.path} by {', '.join(dimension.by)}, valid from {dimension.valid_from}{until}; at read time",
    ]
    lines += [f"  feature {dimension.name}.{each.name}: {each.type}" for each in dimension.features]
    return "\n".join(lines)


def _on_demand_line(made: Any) -> str:
    return f"  {made.name}({', '.join(made.parameters)})  {made.fingerprint}"


def _capability_text() -> str:
    width = max(map(len, STAGES)) + 2
    head = "stage".ljust(width) + "".join(mode.ljust(13) for mode in MODES).rstrip()
    rows = [
        name.ljust(width) + "".join(("no" if reasons[mode] else "yes").ljust(13) for mode in MODES).rstrip()
        for name, reasons in STAGES.items()
    ]
    reasons = sorted({reason for row in STAGES.values() for reason in row.values() if reason})
    return "\n".join([head, *rows, *(f"no: {reason}" for reason in reasons)])
