"""Several keys, feature sets and request values, from Python: over the real application and a real socket."""

from __future__ import annotations

import asyncio
import decimal
import json
from datetime import UTC, datetime

import pytest

import headrace as hr
from headrace.client import FeatureAnswer, Refused
from headrace.config.serve_settings import ServeSettings
from headrace.errors import DataError, HeadraceError, MachineError
from headrace.serve.access import Access, ApiKey, digest_of
from headrace.serve.server_options import ServerOptions
from tests.client.conftest import Calm, fill, running
from tests.serve.conftest import World, habits, pace, users


@pytest.fixture(scope="module")
def client(url):
    with hr.Client(url) as made:
        yield made


def test_several_keys_are_answered_as_one_each(client):
    keys = ["ann", "nobody", "a/b c"]
    assert client.features("users", keys=keys) == [client.features("users", key) for key in keys]
    assert client.features(users, keys=keys) == [client.features(users, key) for key in keys]


def test_many_keys_are_many_requests_and_one_list(client):
    keys = [f"u{number}" for number in range(1_234)]
    assert [answer.key["user"] for answer in client.features("users", keys=keys)] == keys


def test_a_key_that_is_none_is_refused_in_its_place(client):
    first, second, third = client.features("shops", keys=[(1, True, "ann"), ("one", True, "ann"), (2, True, "ann")])
    assert isinstance(first, FeatureAnswer)
    assert isinstance(third, FeatureAnswer)
    assert isinstance(second, Refused)
    assert (second.view, second.key, second.error.code) == ("shops", ["one", "true", "ann"], "bad-request")
    assert isinstance(second.error, DataError)


def test_a_feature_set_is_asked_for_with_request_values(client):
    by_name = client.features("habits", {"user": "ann"}, request={"budget": decimal.Decimal("10.35")})
    assert (by_name.view, by_name.features["left_over"], by_name.features["clicks_1h"]) == ("habits", 7.0, 3)
    itself = client.features(habits, "ann", request={"budget": 10})
    assert itself.features["spent_1h"] == decimal.Decimal("3.35")
    assert itself.features["last_at"] == datetime(2025, 12, 31, 23, 55, tzinfo=UTC)
    assert (itself.features["left_over"], type(itself.features["left_over"])) == (6.65, float)


def test_each_key_may_have_request_values_of_its_own(client):
    found = client.features_of("habits", ["ann"] * 250, request=[{"budget": number} for number in range(250)])
    assert [round(answer.features["left_over"], 2) for answer in found] == [round(n - 3.35, 2) for n in range(250)]


def test_a_feature_set_as_json_has_all_digits_of_its_one_answer(client):
    told = json.loads(client.features_json("habits", "ann", request={"budget": 10}))
    answer = client.features("habits", "ann", request={"budget": 10})
    assert (told["view"], told["key"], told["features"]) == ("habits", answer.key, answer.features)
    with pytest.raises(HeadraceError, match="cannot use the request values"):
        client.features_json("habits", "ann", request={"budget": "a lot"})


def test_a_table_of_a_feature_set_has_its_columns(client):
    frame = client.frame(habits, ["ann", "nobody"], request={"budget": 5})
    columns = ["user", "last_at", "spent_1h", "clicks_1h", "left_over", "as_of", "freshness_ms", "stale", "missing"]
    assert list(frame.columns) == columns
    assert frame["left_over"].tolist() == [1.65, 5.0]
    assert list(client.frame(pace, []).columns)[:5] == ["user", "shop", "paid", "per_click", "clicks_1h"]


@pytest.mark.parametrize(
    "request_values", [{"budget": float("nan")}, {"budget": object()}, [{"budget": 1}], 7, "budget", {"budget": {1}}]
)
def test_request_values_that_cannot_be_sent_are_refused_before_anything_is(request_values):
    with hr.Client("http://127.0.0.1:1") as client, pytest.raises(DataError) as refused:
        client.features("habits", keys=["a", "b"], request=request_values)
    assert refused.value.code == "bad-argument"


def test_one_key_or_several_and_not_both(client):
    for given in ({"key": "ann", "keys": ["ann"]}, {}, {"keys": "ann"}):
        with pytest.raises(DataError) as refused:
            client.features("users", **given)
        assert refused.value.code == "bad-argument"


def test_more_keys_than_the_server_takes_at_once_go_in_smaller_pieces():
    with running(fill(World(ServeSettings(max_keys=7)))) as url, hr.Client(url) as client:
        keys = [f"u{number}" for number in range(50)]
        assert [answer.key["user"] for answer in client.features_of("users", keys)] == keys
        found = client.features_of("habits", keys, request=[{"budget": number} for number in range(50)])
        assert [answer.features["left_over"] for answer in found] == list(range(50))


def test_a_single_key_that_is_too_large_is_refused():
    with (
        running(World(ServeSettings(max_body=1_000))) as url,
        hr.Client(url) as client,
        pytest.raises(DataError) as refused,
    ):
        client.features("users", keys=["x" * 2_000])
    assert refused.value.code == "too-large"


def test_stale_values_are_refused_when_asked_to_be():
    world, calm = fill(World()), Calm()
    world.clock.advance("1m")
    with running(world) as url, hr.Client(url, waiting=calm.waiting) as client:
        assert client.features("users", "ann").stale
        with pytest.raises(MachineError) as refused:
            client.features("users", "ann", stale="refuse")
        (one,) = client.features("users", keys=["ann"], stale="refuse")
    assert (refused.value.code, one.error.code) == ("too-stale", "too-stale")


def test_coroutines_ask_for_several_too(client, url):
    async def look():
        async with hr.AsyncClient(url) as other:
            return (
                await other.features("users", keys=["ann", "nobody"]),
                await other.features(habits, "ann", request={"budget": 10}),
                await other.features_of("habits", ["ann"], request={"budget": 10}),
                await other.frame(habits, ["ann"], request={"budget": 10}),
            )

    several, one, listed, frame = asyncio.run(look())
    assert several == client.features("users", keys=["ann", "nobody"])
    assert one == client.features(habits, "ann", request={"budget": 10})
    assert (listed[0].features["left_over"], frame["left_over"][0]) == (6.65, 6.65)


def test_a_key_of_the_server_lets_a_client_in_and_no_other():
    secret = "the-key-of-this-test-alone"
    terms = ServerOptions(Access([ApiKey("reader", frozenset({"read"}), digest_of(secret))]))
    with running(fill(World(terms=terms))) as url:
        with hr.Client(url, api_key=secret) as client:
            assert client.features("users", "ann").features["clicks_1h"] == 2
            assert len(client.features("users", keys=["ann", "bob"])) == 2
            with pytest.raises(DataError, match="does not have the role write"):
                client.send("clicks", [{}])
        with hr.Client(url, api_key="another-key-altogether") as stranger:
            for call in (lambda: stranger.features("users", "ann"), stranger.status):
                with pytest.raises(DataError) as refused:
                    call()
                assert refused.value.code == "no-key"
                assert "another-key" not in str(refused.value)
            assert stranger.ready(), "which is open"
