"""Scores from Python: over the real application and a real socket, typed, several at once, and repeated when away."""

from __future__ import annotations

import asyncio
import decimal
import json
from datetime import UTC, datetime

import pytest

import headrace as hr
from headrace.client import Refused, Score
from headrace.config.serve_settings import ServeSettings
from headrace.errors import DataError, HeadraceError, MachineError, ProjectError
from tests.client.conftest import Calm, running, scripted, until
from tests.serve.scoring_world import ScoreWorld, churn

REQUEST = {"budget": 10}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    world = ScoreWorld(tmp_path_factory.mktemp("client"), ServeSettings(max_keys=50))
    world.promote(threshold=0.3)
    world.registry.shadow("churn", world.add(low=0.6).version)
    with running(world) as url, hr.Client(url, timeout="20s", within="60s") as made:
        until(lambda: world.champion() == 1)
        yield made


def test_a_key_has_a_score_with_its_version_and_features(client):
    said = client.score("churn", "ann", request=REQUEST)
    assert (said.model, said.key, said.version, said.role, said.decision) == (
        "churn",
        {"user": "ann"},
        1,
        "champion",
        True,
    )
    assert said.score == pytest.approx(0.3025)
    assert said.features == client.features("spending", "ann", request=REQUEST).features
    assert (said.as_of, said.fallback_from) == (datetime(2026, 1, 1, tzinfo=UTC), None)


def test_given_the_model_itself_its_features_have_their_types(client):
    features = client.score(churn, {"user": "ann"}, request=REQUEST).features
    assert features["spent_1h"] == decimal.Decimal("2.50")
    assert features["last_at"] == datetime(2026, 1, 1, tzinfo=UTC)


def test_several_keys_are_scored_in_their_order_and_one_that_fails_is_refused_in_its_place(client):
    found = client.score("churn", keys=["ann", "bob", "ann"], request=[REQUEST, {"budget": 0}, REQUEST])
    assert [type(each) for each in found] == [Score, Refused, Score]
    assert found[1].error.code == "on-demand-failed"
    with pytest.raises(HeadraceError, match="share"):
        found.to_pandas()
    with pytest.raises(HeadraceError, match="share"):
        client.score("churn", "ann", request={"budget": 0})


def test_more_keys_than_a_request_takes_are_several_requests(client):
    found = client.score("churn", keys=[f"u{n}" for n in range(130)], request=REQUEST)
    assert [each.key["user"] for each in found] == [f"u{n}" for n in range(130)]


def test_scores_are_a_table(client):
    table = client.score("churn", keys=["ann", "bob"], request=REQUEST).to_pandas()
    assert list(table.columns) == [
        *("user", "clicks_1h", "spent_1h", "last_at", "share", "score", "decision", "version", "role"),
        *("as_of", "freshness_ms", "stale", "missing"),
    ]
    assert table["decision"].tolist() == [True, False]


def test_a_version_that_serves_can_be_asked_for(client):
    said = client.score("churn", "nobody", request=REQUEST, version=2)
    assert (said.version, said.role, said.score) == (2, "shadow", 0.6)
    with pytest.raises(ProjectError, match="does not serve that version"):
        client.score("churn", "nobody", request=REQUEST, version=7)


def test_it_takes_one_key_or_several(client):
    with pytest.raises(DataError, match="one key or of several"):
        client.score("churn")
    with pytest.raises(DataError, match="one key or of several"):
        client.score("churn", "ann", keys=["ann"])


def test_a_coroutine_gets_the_same(client):
    async def asked():
        async with hr.AsyncClient(client.url, timeout="20s", within="60s") as made:
            return await made.score("churn", "ann", request=REQUEST), await made.score(
                "churn", keys=["bob"], request=REQUEST
            )

    one, several = asyncio.run(asked())
    assert one == client.score("churn", "ann", request=REQUEST)
    assert several == client.score("churn", keys=["bob"], request=REQUEST)


def test_a_model_that_is_away_is_asked_again():
    error = {"code": "model-down", "message": "Version 1 of model 'churn' has ended."}
    away = (503, {"retry-after": "1", "connection": "close"}, json.dumps({"error": error}))
    calm = Calm()
    with scripted(away) as server, hr.Client(server.url, retries=2, waiting=calm.waiting) as client:
        with pytest.raises(MachineError) as caught:
            client.score("churn", "ann")
        assert (caught.value.code, len(server.asked), len(calm.naps)) == ("model-down", 3, 2)


def test_what_is_no_score_is_said_to_be_none():
    with scripted((200, {}, '{"model": "churn", "at": "2026-01-01T00:00:00Z", "answers": [{"key": {}}]}')) as server:
        with hr.Client(server.url) as client, pytest.raises(HeadraceError) as caught:
            client.score("churn", "ann")
        assert caught.value.code == "no-answer"
