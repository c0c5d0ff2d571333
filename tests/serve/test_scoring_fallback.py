"""A version that starts to fail gives way to the one before; one version takes the place of another under load."""

from __future__ import annotations

import functools
import threading

import httpx
import pytest

from tests.client.conftest import running, until
from tests.serve.scoring_world import RAISES, ScoreWorld

FAILS = {
    "raises": RAISES,
    "NaN": "return float('nan') if row['clicks_1h'] else 0.5",
    "out of range": "return 3.0 if row['clicks_1h'] else 0.5",
    "too slow": "time.sleep(60) if row['clicks_1h'] else 0\nreturn 0.5",
    "dies": "os._exit(1) if row['clicks_1h'] else 0\nreturn 0.5",
}


def asked(url, user="ann"):
    return httpx.post(f"{url}/v1/score/churn", json={"key": {"user": user}, "request": {"budget": 10}}, timeout=60)


def version_of(answer):
    """The version that answered, or None for an error."""
    return answer.json()["answers"][0].get("version") if answer.status_code == 200 else None


def answers(world, version):
    return world.champion() == version


def text(url, path="/metrics"):
    return httpx.get(url + path, timeout=60).text


@pytest.mark.parametrize("how", FAILS)
def test_a_champion_that_fails_gives_way_to_the_version_before(tmp_path, how):
    world = ScoreWorld(tmp_path, score_timeout=1.0 if how == "too slow" else 10.0)
    world.promote(low=0.1)
    world.promote(FAILS[how])
    with running(world) as url:
        until(lambda: world.champion() == 2)
        answers = [asked(url) for _ in range(7)]
        assert [version_of(each) for each in answers] == [None] * 4 + [1] * 3, "the fifth notices, and is answered"
        assert [each.json()["answers"][0]["fallback_from"] for each in answers[4:]] == [2] * 3
        change = world.registry.roles("churn").history[-1]
        assert (change.what, change.version, change.before, change.by) == ("rollback", 1, 2, "fallback")
        assert 'headrace_model_fallbacks_total{model="churn"} 1.0' in text(url)
        status = httpx.get(f"{url}/status.json", timeout=60).json()
        assert (status["models"]["churn"]["fallback_from"], status["models"]["churn"]["failures"]) == (2, 5)
        assert status["models"]["churn"]["fallbacks"][0]["from"] == 2
        assert "Model churn fell back from version 2, which failed, to version 1." in text(url, "/")


def test_a_version_that_is_promoted_after_a_fallback_has_none_behind_it(tmp_path):
    world = ScoreWorld(tmp_path)
    world.promote(low=0.1)
    world.promote(RAISES)
    with running(world) as url:
        until(lambda: world.champion() == 2)
        until(lambda: version_of(asked(url)) == 1)
        world.promote(low=0.3)
        until(lambda: world.champion() == 3)
        assert "fallback_from" not in asked(url).json()["answers"][0]


def test_without_a_version_before_errors_go_on_and_say_so(tmp_path):
    world = ScoreWorld(tmp_path)
    world.promote(RAISES)
    with running(world) as url:
        until(lambda: world.champion() == 1)
        answers = [asked(url).json()["answers"][0] for _ in range(7)]
        assert {each["error"]["code"] for each in answers} == {"model-failed"}
        assert "no version before to fall back to" in answers[-1]["error"]["hint"]
        assert "no champion before" in httpx.get(f"{url}/status.json", timeout=60).json()["models"]["churn"]["failing"]
        assert version_of(asked(url, "nobody")) == 1, "whom it can score it scores"


def test_rows_that_a_model_refuses_are_no_failures_of_it(tmp_path):
    world = ScoreWorld(tmp_path)
    world.promote(low=0.1)
    world.promote("return 0.5", missing="refuse")
    with running(world) as url:
        until(lambda: world.champion() == 2)
        said = [asked(url, "nobody").json()["answers"][0]["error"]["code"] for _ in range(8)]
        assert said == ["missing-value"] * 8
        assert version_of(asked(url)) == 2


def test_a_challenger_that_fails_has_its_keys_taken_away(tmp_path):
    world = ScoreWorld(tmp_path)
    world.promote(low=0.1)
    world.registry.challenge("churn", world.add(RAISES).version, 0.999999)
    with running(world) as url:
        until(lambda: world.models.find("churn").lineup.challenger is not None)
        answers = [asked(url) for _ in range(6)]
        assert [version_of(each) for each in answers] == [None] * 4 + [1] * 2
        assert answers[4].json()["answers"][0]["fallback_from"] == 2
        assert world.registry.roles("churn").challenger is None
        assert world.registry.roles("churn").champion == 1


def test_versions_take_each_others_place_under_load_and_nobody_notices(tmp_path):
    world = ScoreWorld(tmp_path)
    world.promote(low=0.1)
    world.promote(low=0.5)
    expected = {1: 0.1 + 0.2 + 0.0025, 2: 0.5 + 0.2 + 0.0025}
    over, wrong, seen = threading.Event(), [], set()

    def load(url):
        with httpx.Client(timeout=60) as client:
            while not over.is_set():
                body = {"keys": [{"user": "ann"}] * 3, "request": {"budget": 10}}
                said = client.post(f"{url}/v1/score/churn", json=body)
                answers = said.json().get("answers", [{}])
                for each in answers:
                    seen.add(each.get("version"))
                    if said.status_code != 200 or each.get("score") != pytest.approx(expected[each["version"]]):
                        wrong.append(said.text)

    with running(world) as url:
        until(lambda: world.champion() == 2)
        threads = [threading.Thread(target=load, args=(url,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for version in (1, 2, 1, 2):
                world.registry.promote("churn", version)
                until(functools.partial(answers, world, version))
                assert asked(url).json()["answers"][0]["version"] == version
        finally:
            over.set()
            for thread in threads:
                thread.join(60)
        until(lambda: not world.models.find("churn").hurried)
        assert list(world.models.find("churn").status().processes) == ["2"]
    assert (wrong, seen) == ([], {1, 2})


def test_a_lightgbm_model_scores_what_its_scorer_scores(tmp_path):
    import lightgbm
    import numpy

    world = ScoreWorld(tmp_path)
    columns = world.models.find("churn").columns
    random = numpy.random.default_rng(7)
    table = random.random((200, len(columns)))
    given = {"objective": "binary", "num_leaves": 4, "verbose": -1, "min_data_in_leaf": 5}
    data = lightgbm.Dataset(table, label=table[:, 3] > 0.2, feature_name=[each.name for each in columns])
    world.registry.add("churn", lightgbm.train(given, data, 5), features="spending", columns=columns)
    world.registry.promote("churn", 1)
    world.models.look()
    (said,) = world.score().json()["answers"]
    read = said["features"] | {"last_at": 1_767_225_600_000_000}
    assert [said["score"]] == world.registry.load("churn", 1).score([read])
    world.models.close()
