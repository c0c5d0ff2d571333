"""The part of the OpenAPI document that models have: a path for each, with what it takes and what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.define.model import Model
from headrace.http_paths import SCORE, fill_path
from headrace.read.catalog import Readable
from headrace.serve import openapi_types as shapes
from headrace.serve.openapi_types import Json
from headrace.serve.route import Route

if TYPE_CHECKING:
    from headrace.serve.openapi import Catalog

NOTHING: Json = {"type": "object", "maxProperties": 0}
VERSION: Json = {"type": "integer", "description": "A version that serves; left out, the key decides."}
NAMES: Json = {
    "score": {"type": "number"},
    "decision": {"type": ["boolean", "null"], "description": "Whether the score reaches the version's threshold."},
    "version": {"type": "integer"},
    "role": {"enum": ["champion", "challenger", "shadow"]},
    "fallback_from": {"type": "integer", "description": "The version that failed, and for which this one answers."},
}


def operations_of_models(route: Route, catalog: Catalog) -> Json:
    """An operation for every model."""
    return {fill_path(SCORE, model.name): _score(route, model, catalog) for model in catalog.plan.models}


def _score(route: Route, model: Model, catalog: Catalog) -> Json:
    of = catalog.readables[model.features.name]
    body = shapes.body_of(schema={"$ref": f"#/components/schemas/{model.name}.scoring"}, example=score_example(of))
    answers = {"schema": {"$ref": f"#/components/schemas/{model.name}.scores"}}
    responses = {
        "200": {"description": "The scores.", "content": {"application/json": answers}},
        **shapes.refusals("400", "401", "403", "404", "408", "413", "415", "503"),
    }
    names = {"model": model.name, "keys": f"{catalog.limits.max_keys:,}"}
    return shapes.operation(route, names, responses, said=model.description, requestBody=body)


def schemas_of_models(catalog: Catalog) -> Json:
    """The shapes of all models' requests and answers."""
    made: Json = {}
    for model in catalog.plan.models:
        made |= score_schemas(model, catalog.readables[model.features.name])
    return made


def score_example(of: Readable) -> Json:
    """Some request."""
    request = {} if of.feature_set is None else shapes.request_example(of.feature_set)
    return {"key": shapes.key_example(of)} | ({"request": request} if request else {})


def score_schemas(model: Model, of: Readable) -> Json:
    """What is sent, and what comes back."""
    key, request = shapes.key_schema(of), shapes.request_schema(model.features) or NOTHING
    taken: Json = {
        "key": key,
        "keys": {"type": "array", "items": key},
        "request": {"oneOf": [request, {"type": "array", "items": request}]},
        "stale": {"enum": ["flag", "refuse"]},
        "version": VERSION,
    }
    asked = shapes.object_of(taken, optional=tuple(taken), additionalProperties=False)
    fresh = {name: form for name, form in shapes.FRESHNESS.items() if name != "at"}
    said = {"key": key, **NAMES, "features": shapes.features_schema(of), **fresh}
    each = {"anyOf": [shapes.object_of(said, optional=("fallback_from",)), {"$ref": "#/components/schemas/failure"}]}
    whole = {"model": {"const": model.name}, "at": shapes.MOMENTS, "answers": {"type": "array", "items": each}}
    return {
        f"{model.name}.scoring": asked | {"oneOf": [{"required": ["key"]}, {"required": ["keys"]}]},
        f"{model.name}.scores": shapes.object_of(whole | {"errors": {"type": "integer"}}),
    }
