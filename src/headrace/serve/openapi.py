"""What can be asked, as an OpenAPI 3.1 document made from the plan: every view and feature set with its types.

The shapes are in `openapi_types`; here are the paths. It says what is, and nothing is generated from it.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from headrace.config.serve_settings import ServeSettings
from headrace.define.model import Model
from headrace.plan.model import Plan
from headrace.plural import show_count
from headrace.read.catalog import Readable, readables
from headrace.read.reader import Reader
from headrace.serve import openapi_models as models
from headrace.serve import openapi_types as shapes
from headrace.serve.openapi_types import Json
from headrace.store.memory import MemoryStore

STALE: Json = {
    "name": "stale",
    "in": "query",
    "schema": {"enum": ["flag", "refuse"]},
    "description": "Whether values older than the view's `max_staleness` are flagged, or refused with 503.",
}
AT: Json = {
    "name": "at",
    "in": "query",
    "schema": {"type": "string", "format": "date-time"},
    "description": "A past moment: exactly what was known then, read from the lake, which takes longer.",
}
REFUSALS = {
    "400": "The request makes no sense.",
    "401": "An API key is needed.",
    "403": "The API key does not have the role, or the request is to another host or of a foreign page.",
    "404": "There is nothing of that name.",
    "408": "The request was sent too slowly.",
    "413": "The request is too large.",
    "415": "The body is compressed in a way the server does not read.",
    "429": "Events come faster than they are read; Retry-After says when to come back.",
    "503": "The server is too busy, its values are too old and were to be refused, or a part of it is away.",
    "507": "The disk of the log is full, nothing was appended; Retry-After says when to come back.",
}
OPEN_TO_ALL: Json = {"security": []}


def document(plan: Plan, limits: ServeSettings, *, keyed: bool) -> Json:
    """The document of a plan; `keyed` says whether API keys are needed.

    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> made = document(build([users]), ServeSettings(), keyed=False)
    >>> [path for path in made["paths"] if path.startswith("/v1")]
    ['/v1/features/users/{user}', '/v1/features', '/v1/events/clicks']
    """
    known = readables(plan)
    reader = Reader(plan, MemoryStore())
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace: features", "version": version("headrace"), "x-plan": plan.fingerprint},
        "security": [{"key": []}] if keyed else [{}, {"key": []}],
        "paths": {
            **{_path(of): {"get": _read(of, reader)} for of in known.values()},
            "/v1/features": {"post": _batch(known, limits)},
            **{models.score_path(each): {"post": _score(each, known, limits)} for each in plan.models},
            **{f"/v1/events/{stream.name}": {"post": _events(stream)} for stream in plan.declared},
            **_others(),
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {code: _refusal(said) for code, said in REFUSALS.items()},
            "schemas": _schemas(known) | _model_schemas(plan, known),
        },
    }


def _path(of: Readable) -> str:
    """A view's key lies in its path; a set's is named in the query, for its views may be kept by different columns."""
    parts = [] if of.feature_set is not None else [f"{{{name}}}" for name in of.by]
    return "/".join(["/v1/features", quote(of.name, safe=""), *parts])


def _read(of: Readable, reader: Reader) -> Json:
    where = "path" if of.feature_set is None else "query"
    examples = shapes.key_example(of)
    key = [
        {"name": name, "in": where, "required": True, "schema": {"type": kind.name}, "example": examples[name]}
        for name, kind in of.types.items()
    ]
    content: Json = {"schema": _schema(f"{of.name}.answer")}
    example = shapes.answer_example(of, reader)
    if example is not None:
        content["example"] = example
    described = of.feature_set or of.views[0]
    needs = of.feature_set is not None and shapes.request_schema(of.feature_set)
    by_post = "Needs request values: POST them to /v1/features." if needs else None
    said = " ".join(text for text in (described.description, by_post) if text)
    return {
        "operationId": f"read_{of.name}",
        "summary": f"All features of {of.name} for one key, now or at a past moment.",
        **({"description": said} if said else {}),
        "tags": ["features"],
        "parameters": [*key, *(each for each in (STALE, AT) if each["name"] not in of.by)],
        "responses": {"200": _json("The features.", content), **_refusals("400", "401", "403", "404", "503")},
    }


def _batch(known: dict[str, Readable], limits: ServeSettings) -> Json:
    examples = {
        name: {"value": {"view": name, "keys": [shapes.key_example(of)]} | _request(of)} for name, of in known.items()
    }
    said = (
        f"At most {show_count(limits.max_keys, 'key')}, each counted once for every view that is read. "
        "Answers come in the order of the keys, for each key in the order of what is read. "
        "A key that cannot be answered has an error there."
    )
    body = {"schema": _schema("batch"), "examples": examples}
    return {
        "operationId": "read_many",
        "summary": "Features of many keys, of views or a feature set, with request values.",
        "description": said,
        "tags": ["features"],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": _json("The answers.", {"schema": _schema("answers")}),
            **_refusals("400", "401", "403", "404", "408", "413", "415", "503"),
        },
    }


def _score(model: Model, known: dict[str, Readable], limits: ServeSettings) -> Json:
    refusals = _refusals("400", "401", "403", "404", "408", "413", "415", "503")
    return models.score_operation(model, known[model.features.name], limits, refusals)


def _model_schemas(plan: Plan, known: dict[str, Readable]) -> Json:
    made: Json = {}
    for each in plan.models:
        made |= models.score_schemas(each, known[each.features.name])
    return made


def _request(of: Readable) -> Json:
    found = {} if of.feature_set is None else shapes.request_example(of.feature_set)
    return {"request": found} if found else {}


def _events(stream: Any) -> Json:
    event = shapes.plain_schema(stream.schema, stream.name)
    many = {"oneOf": [event, {"type": "array", "items": event}]}
    positions = {"partition": {"type": "integer"}, "offset": {"type": "integer"}}
    moment = {"type": ["string", "null"], "format": "date-time"}
    place = shapes.object_of(positions | {"arrived_at": moment})
    accepted = {"stream": {"const": stream.name}, "accepted": {"type": "integer"}}
    taken = shapes.object_of(accepted | {"positions": {"type": "array", "items": place}})
    return {
        "operationId": f"send_{stream.name}",
        "summary": f"Append events to {stream.name}: all of a request or none.",
        "tags": ["events"],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": many, "example": shapes.event_example(stream.schema)},
                "application/x-ndjson": {"schema": {"type": "string", "description": "One event a line."}},
            },
        },
        "responses": {
            "202": _json("Where the events are.", {"schema": taken}),
            **_refusals("400", "401", "403", "404", "408", "413", "415", "429", "503", "507"),
        },
    }


def _others() -> Json:
    anything = {"schema": {"type": "object"}}
    text = {"description": "As Prometheus reads it.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {
        "/health": {"get": OPEN_TO_ALL | _get("health", "The process lives.", anything)},
        "/ready": {
            "get": OPEN_TO_ALL
            | _get("ready", "Whether values can be served.", anything)
            | {
                "responses": {
                    "200": _json("They can.", anything),
                    "503": _json("Not yet, or not any more.", anything),
                }
            }
        },
        "/status.json": {"get": _get("status", "How things stand.", anything)},
        "/metrics": {"get": _get("metrics", "Numbers for Prometheus.", anything) | {"responses": {"200": text}}},
    }


def _get(name: str, said: str, content: Json) -> Json:
    return {"operationId": name, "summary": said, "tags": ["standing"], "responses": {"200": _json(said, content)}}


def _schemas(known: dict[str, Readable]) -> Json:
    made: Json = {"error": shapes.error_schema()}
    kinds: Json = {"key": {}, "error": shapes.error_schema()["properties"]["error"], "status": {"type": "integer"}}
    made["failure"] = shapes.object_of({"view": {"type": "string"}} | kinds, optional=("view",))
    for name, of in known.items():
        made[f"{name}.answer"] = shapes.answer_schema(of)
        request = None if of.feature_set is None else shapes.request_schema(of.feature_set)
        if request is not None:
            made[f"{name}.request"] = request
    names: Json = {"enum": list(known)}
    made["batch"] = shapes.object_of(
        {
            "view": {"oneOf": [names, {"type": "array", "items": names, "minItems": 1, "uniqueItems": True}]},
            "keys": {"type": "array", "items": {"type": ["object", "array", "string", "integer", "boolean"]}},
            "request": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
            "stale": STALE["schema"],
        },
        optional=("request", "stale"),
        additionalProperties=False,
    )
    each = [_schema(f"{name}.answer") for name in known] + [_schema("failure")]
    answers = {"at": shapes.MOMENTS, "answers": {"type": "array", "items": {"anyOf": each}}}
    made["answers"] = shapes.object_of(answers | {"errors": {"type": "integer"}})
    return made


def _refusal(said: str) -> Json:
    return _json(said, {"schema": _schema("error")})


def _refusals(*codes: str) -> Json:
    return {code: {"$ref": f"#/components/responses/{code}"} for code in codes}


def _schema(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(said: str, content: Json) -> Json:
    return {"description": said, "content": {"application/json": content}}
