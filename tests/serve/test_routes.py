"""Routes: a new one is one row of the table, and every part of serving reads it."""

from __future__ import annotations

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from headrace import http_paths
from headrace.serve.access import Access, ApiKey, digest_of
from headrace.serve.responses import json_answer
from headrace.serve.route import Route, Router
from headrace.serve.routes import ROUTES
from headrace.serve.server_options import ServerOptions
from tests.serve.conftest import World, plan
from tests.serve.test_app import error_of

KEYS = {role: f"{role}-key-{'x' * 20}" for role in ("read", "admin")}


async def show_version(context, request):
    """The version of one part."""
    return json_answer({"part": request.path_params["part"], "plan": context.plan.fingerprint})


ROW = Route("/v1/versions/{part}", show_version, "version", "The version of a part.", role="admin")


def bearer(role):
    return {"authorization": f"Bearer {KEYS[role]}"}


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr("headrace.serve.http_server.ROUTES", (*ROUTES, ROW))
    made = World(
        terms=ServerOptions(Access([ApiKey(role, frozenset({role}), digest_of(key)) for role, key in KEYS.items()]))
    )
    made.pipeline()
    return made


def test_a_new_row_is_routed(world):
    answer = world.get("/v1/versions/plan%20a", headers=bearer("admin"))
    assert (answer.status_code, answer.json()) == (200, {"part": "plan a", "plan": plan.fingerprint})
    refused = world.ask("POST", "/v1/versions/plan", headers=bearer("admin"))
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


def test_a_new_row_has_its_role(world):
    assert world.get("/v1/versions/plan").status_code == 401
    assert world.get("/v1/versions/plan", headers=bearer("read")).status_code == 403


def test_a_new_row_is_counted_under_its_own_name(world):
    world.get("/v1/versions/plan", headers=bearer("admin"))
    told = world.get("/metrics", headers=bearer("read")).text
    labels = 'method="GET",route="/v1/versions/{part}",status="200"'
    assert f"headrace_http_requests_total{{{labels}}} 1.0" in told


def test_a_new_row_is_in_the_document_and_in_the_hint_of_a_404(world):
    document = world.get("/openapi.json", headers=bearer("read")).json()
    OpenAPIV31SpecValidator(document).validate()
    operation = document["paths"]["/v1/versions/{part}"]["get"]
    assert (operation["operationId"], operation["summary"]) == ("version", "The version of a part.")
    assert "/v1/versions/{part}" in error_of(world.get("/nowhere", headers=bearer("read")))["hint"]


def test_every_path_is_a_row_and_every_row_is_a_path():
    paths = [value for name, value in vars(http_paths).items() if name.isupper()]
    assert sorted(paths) == sorted(route.path for route in ROUTES)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/features/cards/42", http_paths.FEATURES),
        ("/v1/features/cards/a\nb/c", http_paths.FEATURES),
        ("/v1/features/everyone", http_paths.FEATURES),
        ("/v1/features", http_paths.FEATURES_OF_KEYS),
        ("/v1/events/payments", http_paths.EVENTS),
        ("/v1/events/payments/more", None),
        ("/openapiXjson", None),
        ("/x", None),
    ],
)
def test_a_path_has_the_route_it_was_written_for(path, found):
    route, _ = Router(ROUTES).find(path)
    assert (None if route is None else route.path) == found


def test_a_path_with_a_slash_too_many_leads_to_the_one_without(world):
    answer = world.get("/health/", headers=bearer("read"))
    assert (answer.status_code, answer.headers["location"]) == (307, "http://localhost/health")
