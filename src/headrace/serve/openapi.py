"""What can be asked, as an OpenAPI 3.1 document, made from the routes and the plan.

The shapes are in `openapi_types`; here are the paths. It says what is, and nothing is generated from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version

import msgspec

from headrace.config.serve_settings import ServeSettings
from headrace.define.stream import Stream
from headrace.http_paths import EVENTS, FEATURES, FEATURES_OF_KEYS, fill_path
from headrace.plan.model import Plan
from headrace.plural import show_count
from headrace.read.catalog import Readable, readables
from headrace.serve import openapi_models as models
from headrace.serve import openapi_types as shapes
from headrace.serve.openapi_types import Json
from headrace.serve.route import Route

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


@dataclass(frozen=True)
class Catalog:
    """What a plan lets callers ask for, and how much of it."""

    plan: Plan
    limits: ServeSettings

    @cached_property
    def readables(self) -> dict[str, Readable]:
        """Everything that can be read, by name."""
        return readables(self.plan)


def document(routes: Iterable[Route], plan: Plan, limits: ServeSettings, *, keyed: bool) -> Json:
    """The document of a plan; `keyed` says whether API keys are needed.

    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> from headrace.serve.routes import ROUTES
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> made = document(ROUTES, build([users]), ServeSettings(), keyed=False)
    >>> [path for path in made["paths"] if path.startswith("/v1")]
    ['/v1/features/users/{user}', '/v1/features', '/v1/events/clicks']
    """
    catalog, paths = Catalog(plan, limits), Json()
    for route in routes:
        if route.is_documented:
            operations = route.operations(route, catalog) if route.operations else {route.template: _operation(route)}
            paths |= {path: {route.method.lower(): operation} for path, operation in operations.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace: features", "version": version("headrace"), "x-plan": plan.fingerprint},
        "security": [{"key": []}] if keyed else [{}, {"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {code: _refusal(said) for code, said in REFUSALS.items()},
            "schemas": _schemas(catalog.readables) | models.schemas_of_models(catalog),
        },
    }


def _operation(route: Route) -> Json:
    """The operation of a route that does not depend on the plan."""
    kind = "text/plain" if route.type is str else "application/json"
    content = {kind: {"schema": msgspec.json.schema(route.type)}}
    answers = route.answers or {200: route.summary}
    parts = [{"name": name, "in": "path", "required": True, "schema": shapes.TEXT} for name in route.pattern.groupindex]
    responses = {str(status): {"description": said, "content": content} for status, said in answers.items()}
    parameters: Json = {"parameters": parts} if parts else {}
    operation = shapes.operation(route, {}, responses, **parameters)
    return operation if route.role else {"security": [], **operation}


def operations_of_views(route: Route, catalog: Catalog) -> Json:
    """An operation for everything that can be read."""
    return {_path(of): _read(route, of, catalog) for of in catalog.readables.values()}


def _path(of: Readable) -> str:
    """A view's key lies in its path; a set's is named in the query, for its views may be kept by different columns."""
    parts = [] if of.feature_set is not None else [f"{{{name}}}" for name in of.by]
    return "/".join([fill_path(FEATURES, of.name), *parts])


def _read(route: Route, of: Readable, catalog: Catalog) -> Json:
    where = "path" if of.feature_set is None else "query"
    examples = shapes.key_example(of)
    key = [
        {"name": name, "in": where, "required": True, "schema": {"type": kind.name}, "example": examples[name]}
        for name, kind in of.types.items()
    ]
    content: Json = {"schema": _schema(f"{of.name}.answer")}
    example = shapes.answer_example(of, catalog.plan)
    if example is not None:
        content["example"] = example
    described = of.feature_set or of.views[0]
    needs = of.feature_set is not None and shapes.request_schema(of.feature_set)
    by_post = f"Needs request values: POST them to {FEATURES_OF_KEYS}." if needs else None
    said = " ".join(text for text in (described.description, by_post) if text)
    parameters = [*key, *(each for each in (STALE, AT) if each["name"] not in of.by)]
    responses = {"200": _json("The features.", content), **shapes.refusals("400", "401", "403", "404", "503")}
    return shapes.operation(route, {"view": of.name}, responses, said=said, parameters=parameters)


def operations_of_batches(route: Route, catalog: Catalog) -> Json:
    """The operation that reads many keys."""
    examples = {
        name: {"value": {"view": name, "keys": [shapes.key_example(of)]} | _request(of)}
        for name, of in catalog.readables.items()
    }
    said = (
        f"At most {show_count(catalog.limits.max_keys, 'key')}, each counted once for every view that is read. "
        "Answers come in the order of the keys, for each key in the order of what is read. "
        "A key that cannot be answered has an error there."
    )
    body = shapes.body_of(schema=_schema("batch"), examples=examples)
    responses = {
        "200": _json("The answers.", {"schema": _schema("answers")}),
        **shapes.refusals("400", "401", "403", "404", "408", "413", "415", "503"),
    }
    return {route.path: shapes.operation(route, {}, responses, said=said, requestBody=body)}


def _request(of: Readable) -> Json:
    found = {} if of.feature_set is None else shapes.request_example(of.feature_set)
    return {"request": found} if found else {}


def operations_of_streams(route: Route, catalog: Catalog) -> Json:
    """An operation for every stream."""
    return {fill_path(EVENTS, stream.name): _append(route, stream) for stream in catalog.plan.declared}


def _append(route: Route, stream: Stream) -> Json:
    event = shapes.plain_schema(stream.schema, stream.name)
    many = {"oneOf": [event, {"type": "array", "items": event}]}
    positions = {"partition": {"type": "integer"}, "offset": {"type": "integer"}}
    moment = {"type": ["string", "null"], "format": "date-time"}
    place = shapes.object_of(positions | {"arrived_at": moment})
    accepted = {"stream": {"const": stream.name}, "accepted": {"type": "integer"}}
    taken = shapes.object_of(accepted | {"positions": {"type": "array", "items": place}})
    body = shapes.body_of(schema=many, example=shapes.event_example(stream.schema))
    body["content"]["application/x-ndjson"] = {"schema": {"type": "string", "description": "One event a line."}}
    responses = {
        "202": _json("Where the events are.", {"schema": taken}),
        **shapes.refusals("400", "401", "403", "404", "408", "413", "415", "429", "503", "507"),
    }
    return shapes.operation(route, {"stream": stream.name}, responses, requestBody=body)


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


def _schema(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(said: str, content: Json) -> Json:
    return {"description": said, "content": {"application/json": content}}
