"""Scores over HTTP: of the very features that a read gives, who answers whom, and mistakes that cost no other key."""

from __future__ import annotations

import html
import json

import pytest

from headrace.config.serve_settings import ServeSettings
from headrace.serve.access import Access, ApiKey
from headrace.serve.server_options import ServerOptions
from tests.serve.scoring_world import PLAIN, ScoreWorld, columns_with
from tests.serve.test_app import error_of

REQUEST = {"budget": 10}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A world that tests only read from: version 1 is the champion, with a threshold."""
    made = ScoreWorld(tmp_path_factory.mktemp("shared"))
    made.promote(threshold=0.3)
    made.models.look()
    yield made
    made.models.close()


@pytest.fixture
def world(tmp_path):
    made = ScoreWorld(tmp_path)
    yield made
    made.models.close()


def scores(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["answers"]


# what is answered


def test_a_score_is_the_scorers_on_the_features_that_a_read_gives(shared):
    (said,) = scores(shared.score())
    read = shared.post(view="spending", keys=[{"user": "ann"}], request=REQUEST).json()["answers"][0]
    assert said["features"] == read["features"]
    rows = [{**read["features"], "last_at": 0}]
    assert [said["score"]] == shared.registry.load("churn", 1).score(rows)
    assert said["score"] == pytest.approx(0.1 + 0.2 + 0.01 * 0.25)
    assert [said[name] for name in ("key", "version", "role", "decision")] == [{"user": "ann"}, 1, "champion", True]
    freshness = ("as_of", "freshness_ms", "missing", "stale", "mode")
    assert [said[name] for name in freshness] == [read[name] for name in freshness]


def test_raw_values_go_to_the_model_as_they_are(world):
    world.promote("return 1.0 if type(row['spent_1h']).__name__ == 'Decimal' and row['last_at'] > 10**15 else 0.0")
    world.models.look()
    assert scores(world.score())[0]["score"] == 1.0


def test_many_keys_are_answered_in_their_order(shared):
    keys = [{"user": user} for user in ("bob", "nobody", "ann")]
    said = shared.ask("POST", "/v1/score/churn", json={"keys": keys, "request": REQUEST}).json()
    assert (said["model"], said["at"], said["errors"]) == ("churn", "2026-01-01T00:00:02Z", 0)
    assert [each["key"] for each in said["answers"]] == keys
    assert [each["features"]["clicks_1h"] for each in said["answers"]] == [1, 0, 2]
    assert [each["decision"] for each in said["answers"]] == [False, False, True]


def test_without_a_threshold_nothing_is_decided(world):
    world.promote()
    world.models.look()
    assert scores(world.score())[0]["decision"] is None


def test_several_hundred_keys_are_scored_each_by_its_own_features(shared):
    keys = [{"user": "ann" if n % 2 else "bob"} for n in range(350)]
    said = scores(shared.ask("POST", "/v1/score/churn", json={"keys": keys, "request": REQUEST}))
    one = {user: scores(shared.score(user))[0]["score"] for user in ("ann", "bob")}
    assert [each["score"] for each in said] == [one[key["user"]] for key in keys]


# who answers


def test_a_challenger_answers_its_share_of_the_keys_and_always_the_same_ones(world):
    world.promote(low=0.1)
    world.registry.challenge("churn", world.add(low=0.5).version, 0.5)
    world.models.look()
    keys = [{"user": str(n)} for n in range(60)]
    first, second = (
        scores(world.ask("POST", "/v1/score/churn", json={"keys": keys, "request": REQUEST})) for _ in "12"
    )
    assert [each["version"] for each in first] == [each["version"] for each in second]
    assert {(each["role"], each["version"], each["score"]) for each in first} == {
        ("champion", 1, 0.1),
        ("challenger", 2, 0.5),
    }


def test_a_version_that_serves_can_be_asked_for(world):
    world.promote(low=0.1)
    world.registry.shadow("churn", world.add(low=0.7).version)
    world.models.look()
    (said,) = scores(world.score("nobody", version=2))
    assert (said["version"], said["role"], said["score"]) == (2, "shadow", 0.7)
    refused = world.score(version=9)
    assert (refused.status_code, error_of(refused)["hint"]) == (404, "It serves 1 (champion), 2 (shadow).")


def test_a_shadow_is_never_heard_and_its_difference_is_counted(world):
    from tests.client.conftest import running, until

    world.promote(low=0.1)
    world.registry.shadow("churn", world.add(low=0.25).version)
    with running(world) as url:
        until(lambda: world.champion() == 1)
        assert post(url)["answers"][0]["version"] == 1
        until(lambda: 'headrace_shadow_difference_count{model="churn",version="2"} 1.0' in text(url, "/metrics"))
        said = text(url, "/metrics")
    assert 'headrace_shadow_difference_bucket{le="0.1",model="churn",version="2"} 0.0' in said
    assert 'headrace_shadow_difference_bucket{le="0.25",model="churn",version="2"} 1.0' in said
    assert 'headrace_scored_total{model="churn",outcome="ok",role="shadow",version="2"} 1.0' in said


def post(url, **more):
    import httpx

    body = {"key": {"user": "ann"}, "request": REQUEST} | more
    return httpx.post(f"{url}/v1/score/churn", json=body, timeout=30).json()


def text(url, path):
    import httpx

    return httpx.get(url + path, timeout=30).text


# who cannot


def test_an_unknown_model_is_named(shared):
    answer = shared.ask("POST", "/v1/score/chrun", json={"key": {"user": "ann"}})
    assert (answer.status_code, error_of(answer)["code"]) == (404, "not-found")
    assert error_of(answer)["hint"] == "Did you mean 'churn'?"


def test_a_model_without_a_champion_says_how_to_get_one(world):
    world.add()
    world.models.look()
    answer = world.score()
    assert (answer.status_code, error_of(answer)["code"]) == (503, "no-model")
    assert "headrace model promote churn" in error_of(answer)["hint"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda columns: columns[:-1], "'share' is extra"),
        (lambda columns: (columns[1], columns[0], *columns[2:]), "'spent_1h' is in another place"),
        (lambda columns: columns_with(columns, 0, type="float"), "'clicks_1h' is given as integer"),
        (lambda columns: columns_with(columns, 1, fingerprint="0"), "'spent_1h' is defined otherwise"),
    ],
)
def test_a_version_for_other_features_does_not_serve_and_the_one_before_goes_on(world, change, said):
    world.promote(low=0.1)
    world.models.look()
    columns = world.models.find("churn").columns
    world.promote("return 0.9", columns=change(columns))
    world.models.look()
    assert scores(world.score())[0]["version"] == 1
    status = world.get("/status.json").json()
    assert (status["models"]["churn"]["champion"], said in status["models"]["churn"]["failing"]) == (1, True)
    assert any(said in alarm["says"] for alarm in status["alarms"])
    assert html.escape(said) in world.get("/").text


def test_a_damaged_version_does_not_serve(world):
    world.promote(low=0.1)
    world.models.look()
    world.promote(low=0.2)
    (world.folder / "models" / "churn" / "2" / "score.py").write_text("def score(row): return 1")
    world.models.look()
    assert scores(world.score())[0]["version"] == 1
    assert "not the one that was added" in world.get("/status.json").json()["models"]["churn"]["failing"]


# a key's own mistakes


def test_a_function_that_fails_for_one_key_costs_the_others_nothing(shared):
    keys = [{"user": "ann"}] * 3
    body = {"keys": keys, "request": [{"budget": 10}, {"budget": 0}, {"budget": "x"}]}
    answer = shared.ask("POST", "/v1/score/churn", json=body)
    fine, failed, wrong = scores(answer)
    assert (fine["version"], answer.json()["errors"]) == (1, 2)
    assert (failed["error"]["code"], failed["status"], failed["key"]) == ("on-demand-failed", 500, {"user": "ann"})
    assert (wrong["error"]["code"], wrong["status"]) == ("bad-request", 400)


def test_a_null_that_the_model_refuses_is_an_error_of_its_key(world):
    world.promote("return 0.5", missing="refuse")
    world.models.look()
    keys = [{"user": "nobody"}, {"user": "ann"}]
    null, fine = scores(world.ask("POST", "/v1/score/churn", json={"keys": keys, "request": REQUEST}))
    assert (null["error"]["code"], fine["score"]) == ("missing-value", 0.5)
    assert "last_at" in json.dumps(null["error"])


def test_a_score_that_is_none_is_an_error_of_its_key(world):
    world.promote("return float('nan') if row['clicks_1h'] == 2 else 1.7 if row['clicks_1h'] else 0.5")
    world.models.look()
    keys = [{"user": user} for user in ("ann", "bob", "nobody")]
    said = scores(world.ask("POST", "/v1/score/churn", json={"keys": keys, "request": REQUEST}))
    assert [each.get("error", {}).get("code") for each in said] == ["model-failed", "model-failed", None]


# requests that are wrong as a whole


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"keys": {"user": "ann"}}', "cannot be read"),
        (b'{"key": {"user": "ann"}, "verison": 1}', "cannot be read"),
        (b'{"key": {"user": "ann"}, "version": "1"}', "cannot be read"),
        (b'{"request": {"budget": 1}}', "a `key`, or several"),
        (b'{"key": {"user": "ann"}, "keys": []}', "a `key`, or several"),
        (b'{"key": {"user": "ann"}, "request": {}}', "budget"),
        (b'{"key": {"user": "ann"}, "request": {"budget": NaN}}', "cannot be read"),
        (b'{"key": {"user": "ann"}, "request": {"budget": 1, "colour": 2}}', "no such request value"),
        (b'{"keys": [], "request": [{"budget": 1}]}', "one object for each key"),
        (b'{"key": {"user": "ann"}, "request": {"budget": 1}, "stale": "never"}', "`stale` is flag or refuse"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_whole(shared, body, said):
    answer = shared.ask("POST", "/v1/score/churn", content=body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "bad-request")
    assert said in error_of(answer)["message"]


def test_keys_are_bounded(tmp_path):
    world = ScoreWorld(tmp_path, ServeSettings(max_keys=3))
    answer = world.ask("POST", "/v1/score/churn", json={"keys": [{"user": "ann"}] * 4, "request": REQUEST})
    assert (answer.status_code, error_of(answer)["code"]) == (413, "too-large")


def test_scores_are_asked_for_with_post(shared):
    assert shared.get("/v1/score/churn").status_code == 405


def test_stale_features_are_refused_when_the_request_says_so(world):
    world.promote()
    world.models.look()
    world.clock.advance("1m")
    assert scores(world.score())[0]["stale"] is True
    (refused,) = scores(world.score(stale="refuse"))
    assert (refused["error"]["code"], refused["status"]) == ("too-stale", 503)


def test_scoring_needs_the_role_to_read(tmp_path):
    import hashlib

    keys = {role: f"a-key-that-may-{role}-and-nothing-else" for role in ("read", "write")}
    known = tuple(ApiKey(role, frozenset({role}), hashlib.sha256(key.encode()).digest()) for role, key in keys.items())
    world = ScoreWorld(tmp_path, terms=ServerOptions(Access(known)))
    world.promote()
    world.models.look()
    body = {"key": {"user": "ann"}, "request": REQUEST}
    asked = {
        role: world.ask("POST", "/v1/score/churn", json=body, headers={"authorization": f"Bearer {key}"}).status_code
        for role, key in keys.items()
    }
    nobody = world.ask("POST", "/v1/score/churn", json=body).status_code
    world.models.close()
    assert (asked, nobody) == ({"read": 200, "write": 403}, 401)


# how it stands


def test_the_status_and_the_page_say_who_answers_and_how_often(world):
    world.promote(PLAIN, low=0.1)
    world.registry.challenge("churn", world.add(low=0.3).version, 0.25)
    world.registry.shadow("churn", world.add(low=0.4).version)
    world.models.look()
    for user in ("ann", "bob", "nobody"):
        scores(world.score(user))
    said = world.get("/status.json").json()["models"]["churn"]
    assert {name: said[name] for name in ("features", "champion", "challenger", "share", "shadows", "failing")} == {
        "features": "spending",
        "champion": 1,
        "challenger": 2,
        "share": 0.25,
        "shadows": [3],
        "failing": None,
    }
    assert (said["scored"], said["failures"]) == (3, 0)
    assert 0 < said["p50_ms"] <= said["p99_ms"]
    page = world.get("/").text
    assert "<h2>Models</h2>" in page
    assert "25.0 %" in page


def test_it_is_not_ready_before_models_were_looked_at(world):
    assert world.get("/ready").json()["models"] is False
    world.models.look()
    assert world.get("/ready").json()["models"] is True


def test_what_can_be_asked_of_a_model_is_in_the_document_and_answers_hold_to_it(shared):
    import jsonschema
    from openapi_spec_validator import OpenAPIV31SpecValidator

    document = shared.get("/openapi.json").json()
    OpenAPIV31SpecValidator(document).validate()
    asked = document["paths"]["/v1/score/churn"]["post"]
    body = asked["requestBody"]["content"]["application/json"]

    def held(schema, value):
        jsonschema.Draft202012Validator({"components": document["components"], **schema}).validate(value)

    held(body["schema"], body["example"])
    answers = asked["responses"]["200"]["content"]["application/json"]["schema"]
    held(answers, shared.ask("POST", "/v1/score/churn", json=body["example"]).json())
    failing = {"keys": [{"user": "ann"}], "request": {"budget": 0}}
    held(answers, shared.ask("POST", "/v1/score/churn", json=failing).json())
    with pytest.raises(jsonschema.ValidationError):
        held(body["schema"], {"request": {"budget": 1}})
