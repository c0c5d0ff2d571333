"""Numbers for Prometheus: they parse, they add up, and nobody can make up names."""

from __future__ import annotations

import re

import pytest

from headrace.config.serve_settings import ServeSettings
from headrace.serve.handler_context import ServingContext
from headrace.serve.metrics import BOUNDS, HELP, Metrics
from tests.serve.conftest import World
from tests.streams import BASE

LINE = re.compile(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)')


def read(text):
    """Every number by its name and labels; what Prometheus would not read fails."""
    found = {}
    for line in text.rstrip("\n").split("\n"):
        if not line.startswith("#"):
            name, labels, value = LINE.fullmatch(line).groups()
            assert (name, labels) not in found
            found[name + (labels or "")] = float(value)
    return found


@pytest.fixture
def world():
    made = World()
    made.pipeline({"id": "a", "user": "ann", "at": BASE})
    return made


def test_requests_reads_and_how_things_stand_are_counted(world):
    world.get("/v1/features/users/ann")
    world.get("/v1/features/users/nobody")
    world.get("/v1/features/usres/ann")
    world.post(view="users", keys=["ann", "bob"])
    world.clock.advance("40s")
    world.get("/v1/features/users/ann")
    told = read(world.get("/metrics").text)
    requests = "headrace_http_requests_total"
    assert told[f'{requests}{{method="GET",route="/v1/features/{{name}}",status="200"}}'] == 3
    assert told[f'{requests}{{method="GET",route="/v1/features/{{name}}",status="404"}}'] == 1
    assert told[f'{requests}{{method="POST",route="/v1/features",status="200"}}'] == 1
    assert told['headrace_reads_total{view="users"}'] == 5
    assert told['headrace_reads_missing_total{view="users"}'] == 2
    assert told['headrace_reads_stale_total{view="users"}'] == 1
    assert told['headrace_view_age_seconds{view="users"}'] == 40
    assert told["headrace_http_in_flight"] == 1, "this one"
    assert (told["headrace_ready"], told["headrace_store_lag_records"], told["headrace_store_keys"]) == (1, 0, 3)


def test_a_histogram_adds_up():
    metrics = Metrics()
    for seconds in (0.0001, 0.00025, 0.0003, 0.7, 99.0):
        metrics.answered("/health", "GET", 200, seconds)
    told = read(metrics.text())
    name = "headrace_http_request_seconds"
    buckets = [told[f'{name}_bucket{{le="{bound}",route="/health"}}'] for bound in (*BOUNDS, "+Inf")]
    assert (buckets[0], buckets[1], buckets[-2], buckets[-1]) == (2, 3, 4, 5)
    assert buckets == sorted(buckets)
    assert told[f'{name}_count{{route="/health"}}'] == 5
    assert told[f'{name}_sum{{route="/health"}}'] == pytest.approx(99.70065)


def test_what_is_sent_away_is_counted():
    world = World(ServeSettings(stale="refuse"))
    assert world.get("/v1/features/users/ann").status_code == 503
    assert read(world.get("/metrics").text)["headrace_http_rejected_total"] == 1


def test_no_caller_makes_up_a_label(world):
    world.get("/made/up")
    world.ask("BREW", "/v1/features/users/ann")
    told = world.get("/metrics").text
    assert 'method="GET",route="other",status="404"' in told
    assert 'method="other",route="/v1/features/{name}",status="405"' in told
    assert "BREW" not in told


def test_every_metric_has_a_meaning_and_a_type(world):
    world.get("/v1/features/users/ann")
    text = world.get("/metrics").text
    families = re.findall(r"# TYPE (\S+) (\S+)", text)
    assert dict(families) == {name: kind for name, (kind, _) in HELP.items()}
    assert all(f"# HELP {name} " in text for name in HELP)


def test_a_label_is_escaped():
    metrics = Metrics()
    metrics.read('a"b\\c\nd', stale=False, missing=False)
    assert r'view="a\"b\\c\nd"' in metrics.text()
    read(metrics.text())


def test_a_request_that_fails_inside_is_no_longer_in_flight(world, monkeypatch):
    monkeypatch.setattr(world.store, "read", lambda *_, **__: 1 / 0)
    assert world.get("/v1/features/users/ann").status_code == 500
    assert world.serving.standing.metrics.in_flight == 0
    assert isinstance(world.serving.standing, ServingContext)


def test_what_there_is_more_to_is_not_answered_at_once(world, monkeypatch):
    app, path, headers = world.serving.app, b"/v1/features/users/ann", [(b"host", b"localhost")]
    assert app.at_once(path, headers) == world.get("/v1/features/users/ann").content
    assert app.at_once(b"/v1/features/users", headers) is None
    assert app.at_once(b"/v1/features/nobody/ann", headers) is None
    assert World(ServeSettings(stale="refuse")).serving.app.at_once(path, headers) is None
    monkeypatch.setattr(world.store, "read", lambda *_, **__: 1 / 0)
    assert app.at_once(path, headers) is None
    monkeypatch.undo()
    world.serving.standing.draining = True
    assert app.at_once(path, headers) is None


def test_while_it_drains_it_is_not_ready_and_ends_connections(world):
    world.serving.standing.draining = True
    answer = world.get("/ready")
    assert (answer.status_code, answer.json()["draining"], answer.headers["connection"]) == (503, True, "close")
    assert world.get("/v1/features/users/ann").headers["connection"] == "close"
