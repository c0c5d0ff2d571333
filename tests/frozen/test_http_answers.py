"""What serving answers over HTTP, with fixed events and a clock that stands still; and what it keeps of its answers."""

from __future__ import annotations

import json

import pytest

from headrace.config.serve_settings import ServeSettings
from headrace.serve import metrics
from headrace.serve.scoring import metrics as scoring_metrics
from headrace.serve.server_options import ServerOptions
from tests.serve.conftest import NAMES, World
from tests.streams import BASE

REQUESTS = [
    ("GET", "/v1/features/users/ann", None),
    ("GET", "/v1/features/users/nobody", None),
    ("GET", "/v1/features/shops/1/true/ann", None),
    ("GET", "/v1/features/everyone", None),
    ("GET", "/v1/features/habits?user=ann", None),
    ("GET", "/v1/features/strangers/ann", None),
    ("POST", "/v1/features", {"view": "users", "keys": ["ann", ["bob"], {"user": 7}]}),
    ("POST", "/v1/features", {"view": "habits", "keys": ["ann"], "request": {"budget": 10}}),
    ("POST", "/v1/features", {"view": ["users", "everyone"], "keys": ["ann"]}),
    ("POST", "/v1/features", {"keys": ["ann"]}),
    ("POST", "/v1/events/clicks", {"id": "c", "user": "cid", "shop": 1, "paid": True, "price": 2, "at": BASE}),
    ("POST", "/v1/events/clicks", {"id": "d"}),
    ("DELETE", "/v1/features", None),
    ("GET", "/health", None),
    ("GET", "/ready", None),
]


@pytest.fixture
def world():
    made = World(terms=ServerOptions(settings=ServeSettings(sample=1.0)))
    made.pipeline({"id": "a", "user": "ann", "price": "1.50", "at": BASE}, {"id": "b", "user": "bob", "at": BASE})
    made.clock.advance("2s")
    return made


def test_a_request_has_the_answer_that_it_had(golden, world):
    lines = []
    for method, path, body in REQUESTS:
        more = {} if body is None else {"json": body}
        answer = world.ask(method, path, **more)
        sent = "" if body is None else f" {json.dumps(body)}"
        lines += [f"{method} {path}{sent}", f"  {answer.status_code} {answer.headers['content-type']}"]
        lines += [f"  {json.dumps(answer.json(), indent=1)}".replace("\n", "\n  "), ""]
    golden("frozen/http_answers", "\n".join(lines))


def test_what_is_kept_of_an_answer_has_the_form_that_it_had(golden, world):
    world.get("/v1/features/users/ann")
    world.serving.samples.step()
    (record,) = world.log.read(NAMES.topic("served.users"), 0, 0)
    golden("frozen/served_record", "\n".join([repr(record.key), json.dumps(json.loads(record.value), indent=1)]))


def test_every_metric_has_the_name_and_the_kind_that_it_had(golden):
    known = metrics.HELP | scoring_metrics.HELP
    golden("frozen/metrics", "\n".join(f"{name} {kind}" for name, (kind, _) in sorted(known.items())))


def test_metrics_have_the_labels_that_they_had(golden, world):
    world.get("/v1/features/users/ann")
    lines = world.get("/metrics").text.splitlines()
    series = {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}
    golden("frozen/metric_labels", "\n".join(sorted(each for each in series if "_bucket" not in each)))
