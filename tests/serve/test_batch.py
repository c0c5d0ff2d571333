"""Many keys in one request: views, feature sets, request values, and mistakes that cost no other key its answer."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

import headrace as hr
from headrace.config.serve_settings import ServeSettings
from headrace.errors import MachineError
from headrace.log import MemoryLog
from headrace.plan.build import build
from headrace.serve import batch
from headrace.serve.limits import Room
from headrace.serve.server_options import ServerOptions
from headrace.store import MemoryStore
from headrace.testing import FakeClock
from headrace.topics import create, topics
from tests.serve.conftest import NAMES, World, users
from tests.serve.serving import Serving
from tests.serve.test_app import error_of
from tests.streams import BASE


@pytest.fixture
def world():
    made = World()
    made.pipeline(
        {"id": "a", "user": "ann", "price": "1.50", "at": BASE},
        {"id": "b", "user": "ann", "at": BASE - 1},
        {"id": "c", "user": "bob", "shop": 7, "price": "4", "at": BASE},
    )
    made.clock.advance("2s")
    return made


def errors_of(answer):
    assert answer.status_code == 200
    return [each.get("error") for each in answer.json()["answers"]]


# views


def test_answers_are_those_of_one_key_each_in_the_order_of_the_keys(world):
    users = ["bob", "nobody", "ann", "bob"]
    said = world.post(view="users", keys=[{"user": user} for user in users]).json()
    assert (said["at"], said["errors"]) == ("2026-01-01T00:00:02Z", 0)
    assert said["answers"] == [world.get(f"/v1/features/users/{user}").json() for user in users]


@pytest.mark.parametrize("key", [{"user": "ann", "shop": 1, "paid": True}, [1, True, "ann"], ["1", "true", "ann"]])
def test_a_key_goes_by_name_or_in_order_with_json_values_or_their_text(world, key):
    (answer,) = world.post(view="shops", keys=[key]).json()["answers"]
    assert (answer["key"], answer["features"]) == ({"shop": 1, "paid": True, "user": "ann"}, {"clicks_1h": 2})


def test_a_key_of_one_column_may_stand_alone_and_one_of_none_is_empty(world):
    assert world.post(view="users", keys=["ann"]).json()["answers"][0]["features"]["clicks_1h"] == 2
    both = world.post(view="everyone", keys=[{}, []]).json()["answers"]
    assert [answer["features"]["clicks_1h"] for answer in both] == [3, 3]


def test_several_views_are_answered_one_after_the_other_for_each_key(world):
    keys = [{"user": "ann", "shop": 1, "paid": True}, {"user": "bob", "shop": 7, "paid": True}]
    said = world.post(view=["shops", "users", "everyone"], keys=keys).json()
    assert [(answer["view"], answer["features"]["clicks_1h"]) for answer in said["answers"]] == [
        ("shops", 2),
        ("users", 2),
        ("everyone", 3),
        ("shops", 1),
        ("users", 1),
        ("everyone", 3),
    ]


def test_no_keys_are_no_answers(world):
    assert world.post(view="users", keys=[]).json()["answers"] == []


def test_a_body_may_be_compressed(world):
    body = gzip.compress(json.dumps({"view": "users", "keys": ["ann"]}).encode())
    answer = world.ask("POST", "/v1/features", content=body, headers={"content-encoding": "gzip"})
    assert answer.json()["answers"][0]["features"]["clicks_1h"] == 2


def test_every_answer_is_for_one_moment_whatever_time_passes_meanwhile(world, monkeypatch):
    monkeypatch.setattr(batch, "SLICE", 1)

    async def pause(_):
        world.clock.advance("1s")

    monkeypatch.setattr("headrace.serve.batch.asyncio.sleep", pause)
    said = world.post(view="users", keys=["ann"] * 5).json()
    assert {answer["at"] for answer in said["answers"]} == {said["at"]}


def test_others_have_their_turn_while_many_keys_are_read(world):
    import httpx

    transport, order = httpx.ASGITransport(world.serving.app), []

    async def asked():
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def many():
                await client.post("/v1/features", json={"view": "users", "keys": ["ann"] * 1_000})
                order.append("many")

            async def one():
                await asyncio.sleep(0)
                await client.get("/v1/features/users/ann")
                order.append("one")

            await asyncio.gather(many(), one())

    asyncio.run(asked())
    assert order == ["one", "many"]


# feature sets


def test_a_feature_set_has_its_columns_in_order_and_is_as_fresh_as_its_oldest_view(world):
    (answer,) = world.post(view="habits", keys=[{"user": "ann"}], request={"budget": "10.25"}).json()["answers"]
    assert list(answer["features"].items()) == [
        ("last_at", "2026-01-01T00:00:00Z"),
        ("spent_1h", 2.5),
        ("clicks_1h", 3),
        ("left_over", 7.75),
    ]
    assert (answer["view"], answer["key"], answer["missing"], answer["mode"]) == (
        "habits",
        {"user": "ann"},
        False,
        "micro-batch",
    )
    assert (answer["as_of"], answer["freshness_ms"], answer["stale"]) == ("2026-01-01T00:00:00Z", 2000.0, False)
    assert {name: view["missing"] for name, view in answer["views"].items()} == {"users": False, "everyone": False}


def test_a_set_is_stale_when_one_of_its_views_is_and_that_one_is_named(world):
    world.clock.advance("1m")
    (answer,) = world.post(view="habits", keys=[{"user": "ann"}], request={"budget": 1}).json()["answers"]
    assert (answer["stale"], answer["views"]["users"]["stale"], answer["views"]["everyone"]["stale"]) == (
        True,
        True,
        False,
    )


def test_a_function_takes_its_own_views_values_also_when_another_view_has_a_feature_of_that_name(world):
    keys = [{"user": "ann", "shop": 7, "paid": True}]
    (answer,) = world.post(view="pace", keys=keys, request={"goal": 10, "budget": 3}).json()["answers"]
    assert answer["features"]["clicks_1h"] == 0, "of shop 7"
    assert answer["features"]["per_click"] == {"each": 5.0, "left": 0.5, "t": BASE + 2_000_000}


def test_request_values_may_be_one_object_for_each_key(world):
    keys = [{"user": "ann"}, {"user": "bob"}, {"user": "ann"}]
    said = world.post(view="habits", keys=keys, request=[{"budget": 1}, {"budget": 5}, {"budget": 1, "note": "none"}])
    assert [answer["features"]["left_over"] for answer in said.json()["answers"]] == [-1.5, 1.0, None]


def test_a_set_can_be_asked_for_with_get_when_it_needs_no_request_values(world):
    by_path = world.get("/v1/features/rests/ann").json()
    assert (by_path["view"], list(by_path["features"]), by_path["features"]["clicks_1h"]) == (
        "rests",
        ["last_two", "clicks_1h"],
        2,
    )
    assert world.get("/v1/features/rests?user=ann").json() == by_path
    refused = world.get("/v1/features/habits?user=ann")
    assert (refused.status_code, error_of(refused)["code"]) == (400, "bad-request")
    assert "POST them to /v1/features" in error_of(refused)["hint"]


# a key's own mistakes


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ({"user": "ann", "shop": "x", "paid": True}, "'shop' is of type integer"),
        ({"user": "ann", "shop": 1.5, "paid": True}, "'shop' is of type integer"),
        ({"user": "ann", "shop": 2**63, "paid": True}, "'shop' is of type integer"),
        ({"user": 1, "shop": 1, "paid": True}, "'user' is of type string"),
        ({"user": None, "shop": 1, "paid": True}, "'user' is of type string"),
        ({"user": "ann", "shop": 1, "paid": 1}, "'paid' is of type boolean"),
        ({"user": "ann", "shop": True, "paid": True}, "'shop' is of type integer"),
        ({"user": "ann", "shop": 1}, "needs its whole key"),
        ({"user": "ann", "shop": 1, "paid": True, "colour": "red"}, "no such column"),
        ([1, True], "not the columns it needs"),
        ("ann", "not the columns it needs"),
        (None, "not the columns it needs"),
        ([[1], True, "ann"], "'shop' is of type integer"),
    ],
)
def test_a_key_that_is_none_is_told_so_in_its_place_and_the_others_are_answered(world, key, said):
    good = {"user": "ann", "shop": 1, "paid": True}
    answer = world.post(view="shops", keys=[good, key, good])
    before, error, after = errors_of(answer)
    assert (before, after, answer.json()["errors"]) == (None, None, 1)
    assert (error["code"], list(error)) == ("bad-request", ["code", "message", "where", "got", "hint"])
    assert said in error["message"]
    refused = answer.json()["answers"][1]
    assert (refused["view"], refused["key"], refused["status"]) == ("shops", key, 400)


def test_a_function_that_fails_for_one_key_costs_the_others_nothing_and_tells_the_log_why(world, caplog):
    keys = [{"user": user, "shop": 1, "paid": True} for user in ("ann", "nobody")]
    fine, error = errors_of(world.post(view="pace", keys=keys, request={"goal": 10, "budget": 3}))
    assert (fine, error["code"], error["got"]) == (None, "on-demand-failed", None)
    assert "division" not in json.dumps(error)
    assert "ZeroDivisionError" in caplog.text


def test_request_values_that_are_wrong_for_one_key_cost_the_others_nothing(world):
    keys = [{"user": "ann"}] * 4
    said = errors_of(world.post(view="habits", keys=keys, request=[{"budget": 1}, {"budget": "x"}, {}, {"bugdet": 1}]))
    assert [None if each is None else each["code"] for each in said] == [None, *["bad-request"] * 3]
    assert "budget" in said[1]["message"]
    assert "Did you mean 'budget'?" in said[3]["hint"]


@pytest.mark.parametrize("given", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_none_is_no_request_value(world, given):
    body = f'{{"view": "habits", "keys": [{{"user": "ann"}}], "request": {{"budget": {given}}}}}'
    answer = world.ask("POST", "/v1/features", content=body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "bad-request")


# a request that is wrong as a whole


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "cannot be read"),
        (b"{", 400, "cannot be read"),
        (b"[]", 400, "cannot be read"),
        (b'{"view": "users"}', 400, "cannot be read"),
        (b'{"view": "users", "keys": {"user": "ann"}}', 400, "cannot be read"),
        (b'{"view": "users", "keys": [NaN]}', 400, "cannot be read"),
        (b'{"view": "users", "keys": ["\xff"]}', 400, "cannot be read"),
        (b'{"view": "users", "keys": [' + b"[" * 100_000, 400, "cannot be read"),
        (b'{"view": "users", "keys": [], "kyes": []}', 400, "cannot be read"),
        (b'{"view": [], "keys": []}', 400, "each view or feature set once"),
        (b'{"view": ["users", "users"], "keys": []}', 400, "each view or feature set once"),
        (b'{"view": "usres", "keys": []}', 404, "no such view, dimension or feature set"),
        (b'{"view": ["users", "usres"], "keys": []}', 404, "no such view, dimension or feature set"),
        (b'{"view": "users", "keys": [], "stale": "never"}', 400, "`stale` is flag or refuse"),
        (b'{"view": "users", "keys": ["ann"], "request": {"budget": 1}}', 400, "no such request value"),
        (b'{"view": "habits", "keys": ["ann"], "request": {}}', 400, "budget"),
        (b'{"view": "habits", "keys": ["ann"], "request": 7}', 400, "an object by their names"),
        (b'{"view": "habits", "keys": ["ann"], "request": {"budget": "much"}}', 400, "budget"),
        (b'{"view": "habits", "keys": ["ann"], "request": []}', 400, "one object for each key"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_whole(world, body, status, said):
    answer = world.ask("POST", "/v1/features", content=body)
    assert (answer.status_code, said in error_of(answer)["message"]) == (status, True)


def test_keys_are_bounded_and_counted_for_each_view():
    world = World(ServeSettings(max_keys=4))
    world.pipeline()
    assert world.post(view="users", keys=["ann"] * 4).status_code == 200
    for asked in ({"view": "users", "keys": ["ann"] * 5}, {"view": "habits", "keys": ["ann"] * 3}):
        answer = world.post(**asked)
        assert (answer.status_code, error_of(answer)["code"]) == (413, "too-large")
        assert "serve.max_keys" in error_of(answer)["hint"]


def test_a_body_beyond_the_limit_is_refused(world):
    world = World(ServeSettings(max_body=1_000))
    answer = world.post(view="users", keys=["x" * 1_000])
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")


def test_bodies_beyond_the_room_there_is_come_back_later(monkeypatch):
    monkeypatch.setattr("headrace.serve.handler_context.room_for", lambda limits: Room(100))
    answer = World().post(view="users", keys=["x" * 200])
    assert (answer.status_code, error_of(answer)["code"], answer.headers["retry-after"]) == (503, "too-busy", "1")


def test_a_store_that_fails_fails_the_request_and_not_key_by_key(world, monkeypatch):
    def failing(*_, **__):
        raise MachineError("store-failed", "The store's files cannot be used.")

    monkeypatch.setattr(world.store, "read", failing)
    answer = world.post(view="users", keys=["ann", "bob"])
    assert (answer.status_code, error_of(answer)["code"]) == (503, "store-failed")


# stale values


def test_stale_values_are_refused_when_the_request_says_so(world):
    assert world.get("/v1/features/users/ann?stale=refuse").status_code == 200
    world.clock.advance("1m")
    assert world.get("/v1/features/users/ann").json()["stale"] is True
    answer = world.get("/v1/features/users/ann?stale=refuse")
    error = error_of(answer)
    assert (answer.status_code, error["code"], answer.headers["retry-after"]) == (503, "too-stale", "1")
    assert error["message"] == "The values of view 'users' are 62.0 s old, and at most 30s is allowed."
    codes = [
        None if each is None else each["code"]
        for each in errors_of(world.post(view=["users", "everyone"], keys=[{"user": "ann"}], stale="refuse"))
    ]
    assert codes == ["too-stale", None], "everyone has no bound"


def test_stale_values_are_refused_when_the_setting_says_so_unless_the_request_does_not_mind():
    world = World(ServeSettings(stale="refuse"))
    assert world.get("/v1/features/users/ann").status_code == 503, "nothing is known of their age"
    assert world.get("/v1/features/users/ann?stale=flag").json()["stale"] is True
    assert error_of(world.get("/v1/features/users/ann?stale=never"))["code"] == "bad-request"


# line breaks


@pytest.mark.parametrize("user", ["two\nlines", "end\n", "\n", "a\r\nb", "\x00"])
def test_a_key_with_a_line_break_is_read_from_path_query_and_body_alike(user):
    from urllib.parse import quote

    world = World()
    world.pipeline({"id": "a", "user": user, "at": BASE})
    by_path = world.get(f"/v1/features/users/{quote(user)}").json()
    assert (by_path["key"], by_path["features"]["clicks_1h"]) == ({"user": user}, 1)
    assert world.get(f"/v1/features/users?user={quote(user)}").json() == by_path
    assert world.post(view="users", keys=[user]).json()["answers"] == [by_path]


@hr.on_demand(request={"amount": float})
def is_large(amount) -> bool:
    return bool(amount > 100)


def test_a_set_of_request_values_alone_is_answered_and_has_no_age():
    alone = build([hr.feature_set("size", [is_large]), users])
    log, clock = MemoryLog(), FakeClock(BASE)
    create(log, topics(alone, NAMES, 2))
    world = World()
    world.serving = Serving(
        alone, log, MemoryStore(), NAMES, clock, terms=ServerOptions(settings=ServeSettings(max_keys=2))
    )
    (told,) = world.post(view="size", keys=[{}], request={"amount": 250.0}).json()["answers"]
    assert (told["features"], told["key"], told["views"]) == ({"is_large": True}, {}, {})
    assert (told["as_of"], told["freshness_ms"], told["mode"]) == (None, None, "request")
    assert (told["missing"], told["stale"]) == (False, False)
    refused = world.post(view="size", keys=[{}, {}, {}], request={"amount": 250.0}).json()
    assert refused["error"]["code"] == "too-large"
