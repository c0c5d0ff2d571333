"""The client against the real application over a real socket: it says what HTTP says."""

from __future__ import annotations

import asyncio
import decimal
import json
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import headrace as hr
from headrace.clock import show_time
from headrace.errors import DataError, HeadraceError, ProjectError
from tests.budget import examples
from tests.client.conftest import Calm, running
from tests.serve.conftest import clicks, shops, users


@pytest.fixture
def client(url):
    with hr.Client(url) as made:
        yield made


@pytest.fixture
def writing(filled):
    """A client of a server whose log the test looks at."""
    with running(filled) as url, hr.Client(url) as made:
        yield made


def test_an_answer_is_what_http_says(client, url):
    told = httpx.get(f"{url}/v1/features/users/ann").json()
    answer = client.features("users", "ann")
    assert told["features"]["clicks_1h"] == 2
    assert (answer.view, answer.key, answer.features) == (told["view"], told["key"], told["features"])
    assert (answer.missing, answer.stale, answer.mode) == (told["missing"], told["stale"], told["mode"])
    assert answer.freshness_ms == told["freshness_ms"]
    assert (answer.at, answer.as_of) == tuple(datetime.fromisoformat(told[name]) for name in ("at", "as_of"))


def test_an_answer_as_json_is_byte_by_byte_what_http_says(client, url):
    assert client.features_json("users", "ann") == httpx.get(f"{url}/v1/features/users/ann").content


def test_asked_with_the_view_itself_the_values_have_its_types(client):
    answer = client.features(users, "ann")
    features = answer.features
    assert (answer.freshness_ms, type(answer.freshness_ms)) == (0, float)
    assert (features["clicks_1h"], type(features["clicks_1h"])) == (2, int)
    assert (features["spent_1h"], type(features["spent_1h"])) == (decimal.Decimal("3.35"), decimal.Decimal)
    assert features["last_at"] == datetime(2025, 12, 31, 23, 55, tzinfo=UTC)
    assert features["last_two"] == [features["last_at"], datetime(2025, 12, 31, 23, 50, tzinfo=UTC)]
    assert features["top_shops"] == client.features("users", "ann").features["top_shops"]


def test_a_key_nobody_has_is_missing(client):
    answer = client.features("users", "nobody")
    assert (answer.missing, answer.features["clicks_1h"], answer.features["last_at"]) == (True, 0, None)


@pytest.mark.parametrize(
    "key", [(1, True, "ann"), [1, True, "ann"], {"user": "ann", "paid": True, "shop": 1}], ids=["tuple", "list", "dict"]
)
def test_a_key_of_several_columns_goes_in_order_or_by_name(client, key):
    answer = client.features("shops", key)
    assert (answer.key, answer.features) == ({"shop": 1, "paid": True, "user": "ann"}, {"clicks_1h": 2})


@pytest.mark.parametrize("key", [(), {}, []])
def test_a_view_without_a_key_is_asked_with_an_empty_one(client, key):
    assert client.features("everyone", key).features == {"clicks_1h": 3}


def test_values_of_a_numpy_column_are_keys_too(client):
    import numpy as np

    key = (np.int64(1), np.bool_(True), np.str_("ann"))
    assert client.features(shops, key).features == {"clicks_1h": 2}


@examples(1, quiet=[HealthCheck.function_scoped_fixture])
@given(key=st.text(max_size=20))
def test_any_text_is_a_key_and_comes_back_as_it_is(client, key):
    assert client.features("users", {"user": key}).key == {"user": key}
    assert client.features("users", key).key == {"user": key}
    assert [answer.key for answer in client.features("users", keys=[key])] == [{"user": key}]


@pytest.mark.parametrize("key", [None, 1.5, b"ann", ("ann", None), {"user": 2.0}, "\ud800", object()])
def test_a_key_that_cannot_be_one_is_refused_before_anything_is_sent(key):
    with hr.Client("http://127.0.0.1:1") as client, pytest.raises(DataError) as refused:
        client.features("users", key)
    assert refused.value.code == "bad-argument"


@pytest.mark.parametrize(
    ("view", "key", "kind", "code"),
    [("usres", "ann", ProjectError, "not-found"), ("shops", ("one", True, "ann"), DataError, "bad-request")],
)
def test_what_the_server_refuses_is_raised_in_its_own_words(client, url, view, key, kind, code):
    path = "/".join([view, *([key] if isinstance(key, str) else ["one", "true", "ann"])])
    with pytest.raises(HeadraceError) as refused:
        client.features(view, key)
    assert (type(refused.value), refused.value.code, refused.value.hint is not None) == (kind, code, True)
    assert refused.value.as_json() == httpx.get(f"{url}/v1/features/{path}").json()["error"]


def test_several_keys_are_answered_in_their_order(client):
    keys = [*(f"u{number}" for number in range(40)), "ann", "a/b c"]
    answers = client.features_of("users", keys)
    assert [answer.key["user"] for answer in answers] == keys
    assert [answer.features["clicks_1h"] for answer in answers] == [0] * 40 + [2, 1]
    assert client.features_of("users", []) == []


def test_one_wrong_key_of_several_refuses_them_all(client):
    with pytest.raises(DataError, match="type integer"):
        client.features_of("shops", [(1, True, "ann"), ("one", True, "ann"), (2, True, "ann")])


def test_one_key_in_place_of_several_is_refused(client):
    with pytest.raises(DataError, match="Several keys are a list"):
        client.features_of("users", "ann")


def test_status_and_readiness_are_what_http_says(client, url):
    told = httpx.get(f"{url}/status.json").json()
    status = client.status()
    assert (status["project"], status["plan"], status["views"]) == (told["project"], told["plan"], told["views"])
    assert client.ready()
    assert client.ready().waiting_for == ()


def test_a_server_that_is_not_ready_says_what_it_waits_for(world):
    calm = Calm()
    with running(world) as url, hr.Client(url, waiting=calm.waiting) as client:
        ready = client.ready()
    assert (bool(ready), calm.naps) == (False, [])
    assert "pipeline" in ready.waiting_for


def test_a_few_events_are_sent_all_or_none(writing, filled):
    row = {"id": "9", "user": "bob", "shop": 1, "paid": True, "price": 2, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    text = json.dumps({**row, "id": "10", "at": "2026-01-01T00:00:00Z"}, indent=1).encode()
    places = writing.send("clicks", [row, text])
    assert [place.arrived_at for place in places] == [datetime(2026, 1, 1, tzinfo=UTC)] * 2
    with pytest.raises(DataError, match="not_negative") as refused:
        writing.send(clicks, [row, {**row, "price": -1}])
    assert refused.value.code == "bad-record"
    assert sum(filled.log.end_offsets("eu.clicks").values()) == 2


@pytest.mark.parametrize("value", [float("nan"), decimal.Decimal(1), {1}])
def test_an_event_without_json_is_refused(writing, filled, value):
    with pytest.raises(DataError) as refused:
        writing.send("clicks", [{"id": value}])
    assert refused.value.code == "bad-record"
    assert sum(filled.log.end_offsets("eu.clicks").values()) == 0


def test_coroutines_answer_what_calls_answer(client, url):
    async def look():
        async with hr.AsyncClient(url) as other:
            together = await asyncio.gather(*(other.features("users", key) for key in ("ann", "nobody")))
            return (
                together,
                await other.features_of("users", ["ann", "nobody"]),
                await other.features_json(users, "ann"),
                await other.frame(users, ["ann", "nobody"]),
                await other.ready(),
                (await other.status())["plan"],
            )

    together, several, text, frame, ready, plan = asyncio.run(look())
    assert list(together) == several == [client.features("users", key) for key in ("ann", "nobody")]
    assert text == client.features_json("users", "ann")
    assert frame.equals(client.frame(users, ["ann", "nobody"]))
    assert (ready, plan) == (client.ready(), client.status()["plan"])


def test_coroutines_raise_what_calls_raise_and_send_what_calls_send(writing, filled):
    row = {"id": "9", "user": "bob", "shop": 1, "paid": True, "price": 2, "at": show_time(filled.clock.now())}

    async def look():
        async with hr.AsyncClient(writing.url) as client:
            assert len(await client.send("clicks", [row])) == 1
            with pytest.raises(ProjectError, match="no such view"):
                await client.features("usres", "ann")
        with pytest.raises(DataError, match="closed"):
            await client.features("users", "ann")

    asyncio.run(look())
    assert sum(filled.log.end_offsets("eu.clicks").values()) == 1


def test_a_table_has_a_row_for_each_key_with_its_features_and_freshness(client):
    frame = client.frame(users, ["ann", "nobody"])
    features = ["clicks_1h", "spent_1h", "last_at", "last_two", "top_shops"]
    assert list(frame.columns) == ["user", *features, "as_of", "freshness_ms", "stale", "missing"]
    assert frame["user"].tolist() == ["ann", "nobody"]
    assert (frame["clicks_1h"].dtype, frame["clicks_1h"].tolist()) == ("int64", [2, 0])
    assert frame["spent_1h"].tolist()[0] == decimal.Decimal("3.35")
    assert str(frame["as_of"].dtype) == "datetime64[us, UTC]"
    assert frame["missing"].tolist() == [False, True]


def test_a_table_of_no_keys_has_the_views_columns_all_the_same(client):
    frame = client.frame(shops, [])
    assert (len(frame), list(frame.columns)[:4]) == (0, ["shop", "paid", "user", "clicks_1h"])
