"""The part of the OpenAPI document that models have: a path for each, with what it takes and what it answers."""

from __future__ import annotations

from urllib.parse import quote

from headrace.config.serve_settings import ServeSettings
from headrace.define.model import Model
from headrace.read.catalog import Readable
from headrace.serve import openapi_types as shapes
from headrace.serve.openapi_types import Json

NOTHING: Json = {"type": "object", "maxProperties": 0}
VERSION: Json = {"type": "integer", "description": "A version that serves; left out, the key decides."}
NAMES: Json = {
    "score": {"type": "number"},
    "decision": {"type": ["boolean", "null"], "description": "Whether the score reaches the version's threshold."},
    "version": {"type": "integer"},
    "role": {"enum": ["champion", "challenger", "shadow"]},
    "fallback_from": {"type": "integer", "description": "The version that failed, and for which this one answers."},
}


def score_path(model: Model) -> str:
    """Where a model is asked for scores."""
    return f"/v1/score/{quote(model.name, safe='')}"


def score_operation(model: Model, of: Readable, limits: ServeSettings, refusals: Json) -> Json:
    """How it is asked."""
    body = {"schema": {"$ref": f"#/components/schemas/{model.name}.scoring"}, "example": score_example(of)}
    answers = {"schema": {"$ref": f"#/components/schemas/{model.name}.scores"}}
    described = {"description": model.description} if model.description else {}
    return {
        "operationId": f"score_{model.name}",
        "summary": f"What model {model.name} says of one key or of at most {limits.max_keys:,}, by the views it reads.",
        **described,
        "tags": ["models"],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {"description": "The scores.", "content": {"application/json": answers}},
            **refusals,
        },
    }


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
