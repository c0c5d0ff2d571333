"""The shapes of requests and answers as OpenAPI schemas, and an example of each that is right.

An example of an answer is a real one: what a store without any tile answers. `openapi` puts them under their paths.
"""

from __future__ import annotations

from typing import Any

from headrace.clock import parse_timestamp
from headrace.codec.json.json_schema import json_schema
from headrace.define.dimension import Attribute, Dimension
from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand
from headrace.define.view import Feature, Selection
from headrace.errors import DataError
from headrace.meaning.value import value
from headrace.plan.model import Plan
from headrace.read.answer_json import answer_json
from headrace.read.catalog import Readable
from headrace.read.reader import REQUEST, ViewValues
from headrace.serve.dimensions import TABLE, answer
from headrace.serve.responses import error_json
from headrace.serve.route import Route
from headrace.types.field_types import Boolean, Decimal, Integer, List, Schema, Struct, Timestamp, Type

Json = dict[str, Any]
AT = "2026-01-01T12:00:00Z"
MOMENT = parse_timestamp(AT) or 0
TEXT: Json = {"type": "string"}
MOMENTS: Json = {"type": "string", "format": "date-time"}
FRESHNESS: Json = {
    "at": MOMENTS | {"description": "The moment the values are for: the server's clock."},
    "as_of": {
        "type": ["string", "null"],
        "format": "date-time",
        "description": "All that was on time and had arrived before is included; null while the pipeline has not said "
        "anything. Of a dimension, when its table was last looked at.",
    },
    "late_as_of": {
        "type": ["string", "null"],
        "format": "date-time",
        "description": "All that had arrived before is included, late events too, which come through the lake. Null "
        "while nothing is known of the late lane.",
    },
    "freshness_ms": {"type": ["number", "null"], "description": "Milliseconds from `as_of` to `at`."},
    "missing": {"type": "boolean", "description": "There is nothing of this key at all, or no valid row."},
    "stale": {
        "type": "boolean",
        "description": "Older than the view's `max_staleness`, of unknown age, or of a table that cannot be read now.",
    },
    "mode": {"enum": ["micro-batch", "real-time", "lake", TABLE, REQUEST]},
}


def object_of(properties: Json, *, optional: tuple[str, ...] = (), **more: Any) -> Json:
    """An object with these properties, all required but some.

    >>> object_of({"n": {"type": "integer"}})["required"]
    ['n']
    """
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, **more}


def refusals(*codes: str) -> Json:
    """References to the answers of a request that is refused."""
    return {code: {"$ref": f"#/components/responses/{code}"} for code in codes}


def operation(route: Route, names: Json, responses: Json, *, said: str | None = None, **more: Any) -> Json:
    """The operation of a route, with names filled into its own."""
    return {
        "operationId": route.name % names,
        "summary": route.summary % names,
        **({"description": said} if said else {}),
        "tags": [route.tag],
        **more,
        "responses": responses,
    }


def body_of(**content: Json) -> Json:
    """A body in JSON that a request must have."""
    return {"required": True, "content": {"application/json": content}}


def error_schema() -> Json:
    """The one shape of an error."""
    texts: Json = {name: {"type": ["string", "null"]} for name in ("where", "got", "hint")}
    said = object_of({"code": {"type": "string"}, "message": {"type": "string"}} | texts)
    return object_of({"error": said}) | {"examples": [{"error": error_json(_refused())}]}


def _refused() -> DataError:
    hint = "Did you mean 'card_activity'?"
    return DataError("not-found", "There is no such view, dimension or feature set.", got="'crad'", hint=hint)


def value_schema(kind: Type, *, nullable: bool) -> Json:
    """A feature's value as an answer writes it."""
    match kind:
        case Timestamp():
            form = dict(MOMENTS)
        case List(element):
            form = {"type": "array", "items": value_schema(element, nullable=kind.optional)}
        case Struct(fields):
            form = object_of({field.name: value_schema(field.type, nullable=field.optional) for field in fields})
        case Decimal():
            form = {"type": "number", "description": f"An exact {kind}: read it as decimal."}
        case _:
            form = {"type": {"float": "number"}.get(kind.name, kind.name)}
    return form | {"type": [form["type"], "null"]} if nullable else form


def key_schema(of: Readable) -> Json:
    """A key by the names of its columns."""
    named = {name: {"type": kind.name} for name, kind in of.types.items()}
    return object_of(named, additionalProperties=False)


def key_example(of: Readable) -> Json:
    """Some key."""
    return {name: _example(kind) for name, kind in of.types.items()}


def features_schema(of: Readable) -> Json:
    """Every feature with its type."""
    if of.feature_set is None:
        return object_of({feature.name: _feature(feature) for feature in of.views[0].features})
    found: Json = {}
    for member in of.feature_set.members:
        if isinstance(member, OnDemand):
            found[member.name] = {"description": member.description or "Computed by a function when it is asked for."}
        elif isinstance(member, Selection):
            found |= {name: _feature(member.view.feature(name)) for name in member.names}
        else:
            found |= {feature.name: _feature(feature) for feature in member.features}
    return object_of(found)


def _feature(feature: Feature | Attribute) -> Json:
    form = value_schema(feature.type, nullable=feature.nullable)
    said = ". ".join(text for text in (feature.description, feature.summary) if text)
    return {**form, "description": said}


def answer_schema(of: Readable) -> Json:
    """What is answered for one key."""
    named: Json = {"view": {"const": of.name}, "key": key_schema(of), "features": features_schema(of), **FRESHNESS}
    if of.feature_set is not None:
        each = object_of({name: form for name, form in FRESHNESS.items() if name != "at"})
        named["views"] = object_of({view.name: each for view in of.views})
    return object_of(named)


def answer_example(of: Readable, plan: Plan) -> Json | None:
    """What is answered of a key of which nothing is known yet; a set has none, its functions are not called here."""
    if of.feature_set is not None:
        return None
    (view,) = of.views
    key = tuple(key_example(of)[name] for name in view.by)
    if isinstance(view, Dimension):
        return answer_json(view, answer(view, key, None, MOMENT, MOMENT, stale=False))
    features = plan.view(view.name)
    values = {planned.feature.name: value(planned, [], MOMENT) for planned in features}
    mode = features[0].tile_set.mode
    return answer_json(view, ViewValues(view.name, key_example(of), values, MOMENT, None, None, True, True, mode))


def request_schema(of: FeatureSet) -> Json | None:
    """The request values of a feature set; None when it takes none."""
    forms: Json = {}
    optional: list[str] = []
    for made in of.on_demands:
        form = plain_schema(made.request, made.name)
        forms |= form["properties"]
        optional += [name for name in form["properties"] if name not in form["required"]]
    return object_of(forms, optional=tuple(optional), additionalProperties=False) if forms else None


def request_example(of: FeatureSet) -> Json:
    """Some request values."""
    return {field.name: _example(field.type) for made in of.on_demands for field in made.request}


def plain_schema(schema: Schema, title: str) -> Json:
    """A schema of records or request values, as JSON comes in."""
    made = json_schema(schema, title)
    return {name: made[name] for name in ("type", "properties", "required")}


def event_example(schema: Schema) -> Json:
    """Some event."""
    return {field.name: _example(field.type) for field in schema}


def _example(kind: Type) -> Any:
    match kind:
        case Boolean():
            return True
        case Integer():
            return 42
        case Timestamp("rfc3339"):
            return AT
        case Timestamp(unit):
            return MOMENT // Timestamp.units[unit]
        case Decimal(precision, scale):
            return 1 if precision > scale else 0
        case List():
            return []
        case Struct(fields):
            return {field.name: _example(field.type) for field in fields}
    return {"float": 12.5}.get(kind.name, "42")
