"""The OpenAPI document says what the server does: it is valid, its examples work, and its schemas hold."""

from __future__ import annotations

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from headrace.serve.access import Access, ApiKey
from headrace.serve.server_options import ServerOptions
from tests.serve.conftest import World
from tests.streams import BASE


@pytest.fixture(scope="module")
def world():
    made = World()
    made.pipeline({"id": "a", "user": "ann", "price": "1.50", "at": BASE}, {"id": "b", "user": "42", "at": BASE})
    return made


@pytest.fixture(scope="module")
def document(world):
    return world.get("/openapi.json").json()


def held(document, schema, value):
    """Hold a value to a schema of the document."""
    whole = {"components": document["components"], **schema}
    jsonschema.Draft202012Validator(whole).validate(value)


def content(document, path, method, status):
    answer = document["paths"][path][method]["responses"][status]
    if "$ref" in answer:
        answer = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return answer["content"]["application/json"]


def test_it_is_valid(document):
    OpenAPIV31SpecValidator(document).validate()


def test_every_view_set_stream_and_path_is_in_it(document):
    assert list(document["paths"]) == [
        "/v1/features/users/{user}",
        "/v1/features/shops/{shop}/{paid}/{user}",
        "/v1/features/everyone",
        "/v1/features/habits",
        "/v1/features/pace",
        "/v1/features/rests",
        "/v1/features",
        "/v1/events/clicks",
        "/health",
        "/ready",
        "/status.json",
        "/metrics",
    ]


@pytest.mark.parametrize(
    ("path", "of"),
    [
        ("/v1/features/users/ann", "/v1/features/users/{user}"),
        ("/v1/features/users/nobody", "/v1/features/users/{user}"),
        ("/v1/features/shops/1/true/ann", "/v1/features/shops/{shop}/{paid}/{user}"),
        ("/v1/features/everyone", "/v1/features/everyone"),
        ("/v1/features/rests?user=ann", "/v1/features/rests"),
    ],
)
def test_an_answer_holds_to_its_schema(world, document, path, of):
    answer = world.get(path)
    assert answer.status_code == 200
    held(document, content(document, of, "get", "200")["schema"], answer.json())


def test_an_answer_of_other_features_does_not_hold_to_it(world, document):
    schema = content(document, "/v1/features/users/{user}", "get", "200")["schema"]
    answer = world.get("/v1/features/users/ann").json()
    for broken in ({"clicks_1h": "2"}, {"last_at": 7}, {"top_shops": [{"item": "x", "count": 1}]}):
        with pytest.raises(jsonschema.ValidationError):
            held(document, schema, answer | {"features": answer["features"] | broken})
    with pytest.raises(jsonschema.ValidationError):
        held(document, schema, {name: value for name, value in answer.items() if name != "as_of"})


@pytest.mark.parametrize("path", ["/v1/features/usres/ann", "/v1/features/users", "/v1/features/habits?user=ann"])
def test_an_error_holds_to_its_schema(world, document, path):
    answer = world.get(path)
    schema = content(document, "/v1/features/users/{user}", "get", str(answer.status_code))["schema"]
    held(document, schema, answer.json())


def test_every_example_of_a_request_works_and_its_answer_holds(world, document):
    asked = document["paths"]["/v1/features"]["post"]["requestBody"]["content"]["application/json"]
    assert list(asked["examples"]) == ["users", "shops", "everyone", "habits", "pace", "rests"]
    for example in asked["examples"].values():
        held(document, asked["schema"], example["value"])
        answer = world.post(**example["value"])
        assert (answer.status_code, answer.json()["errors"]) == (200, 0)
        held(document, content(document, "/v1/features", "post", "200")["schema"], answer.json())


def test_answers_with_an_error_among_them_hold_too(world, document):
    answer = world.post(view="users", keys=["ann", 7])
    assert answer.json()["errors"] == 1
    held(document, content(document, "/v1/features", "post", "200")["schema"], answer.json())


def test_every_example_of_an_answer_holds_and_is_what_the_server_would_say(document):
    empty = World()
    for path, methods in document["paths"].items():
        shown = (
            methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {}).get("application/json", {})
        )
        if "example" in shown:
            held(document, shown["schema"], shown["example"])
            asked = path
            for parameter in methods["get"]["parameters"]:
                value = str(parameter.get("example")).lower()
                asked = asked.replace(f"{{{parameter['name']}}}", value)
            said = empty.get(asked).json()
            assert (said["key"], said["features"]) == (shown["example"]["key"], shown["example"]["features"])


def test_the_example_of_an_event_is_one(document):
    world = World()
    shown = document["paths"]["/v1/events/clicks"]["post"]["requestBody"]["content"]["application/json"]
    held(document, shown["schema"], shown["example"])
    answer = world.ask("POST", "/v1/events/clicks", json=shown["example"])
    assert answer.status_code == 202
    held(document, content(document, "/v1/events/clicks", "post", "202")["schema"], answer.json())


def test_it_says_whether_a_key_is_needed():
    key = ApiKey("a", frozenset({"read"}), b"")
    import headrace.serve.openapi as openapi
    from headrace.config.serve_settings import ServeSettings
    from headrace.serve.routes import ROUTES
    from tests.serve.conftest import plan

    assert openapi.document(ROUTES, plan, ServeSettings(), keyed=False)["security"] == [{}, {"key": []}]
    assert openapi.document(ROUTES, plan, ServeSettings(), keyed=True)["security"] == [{"key": []}]
    made = openapi.document(ROUTES, plan, ServeSettings(), keyed=True)
    assert made["paths"]["/health"]["get"]["security"] == []
    assert World(terms=ServerOptions(Access([key]))).get("/openapi.json").status_code == 401
