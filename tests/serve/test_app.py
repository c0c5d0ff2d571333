"""Serving over HTTP: values, events, readiness, and one shape for every error."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from headrace.clock import MINUTE, SECOND
from headrace.errors import MachineError
from headrace.log import Message
from headrace.tiles.changelog import HandOver, ProgressRow
from tests.serve.conftest import NAMES, plan
from tests.streams import BASE

EVENT = {"id": "c1", "user": "ann", "shop": 1, "paid": True, "price": "1.50", "at": "2026-01-01T00:00:00Z"}


def error_of(answer):
    said = answer.json()
    assert list(said) == ["error"]
    assert list(said["error"]) == ["code", "message", "where", "got", "hint"]
    return said["error"]


# values


def test_a_view_answers_with_all_its_features_and_how_fresh_they_are(world):
    world.pipeline({"id": "a", "user": "ann", "price": "1.50", "at": BASE}, {"id": "b", "user": "ann", "at": BASE - 1})
    world.clock.advance("2s")
    answer = world.get("/v1/features/users/ann")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert answer.json() == {
        "view": "users",
        "key": {"user": "ann"},
        "features": {
            "clicks_1h": 2,
            "spent_1h": 2.5,
            "last_at": "2026-01-01T00:00:00Z",
            "last_two": ["2026-01-01T00:00:00Z", "2025-12-31T23:59:59.999999Z"],
            "top_shops": [{"item": 1, "count": 2}],
        },
        "at": "2026-01-01T00:00:02Z",
        "as_of": "2026-01-01T00:00:00Z",
        "late_as_of": None,
        "freshness_ms": 2000.0,
        "missing": False,
        "stale": False,
        "mode": "micro-batch",
    }


def test_a_decimal_is_a_number_with_all_its_digits(world):
    world.pipeline({"id": "a", "user": "ann", "price": "12345678.90", "at": BASE})
    assert b'"spent_1h":12345678.90,' in world.get("/v1/features/users/ann").content


def test_a_key_nobody_has_seen_is_missing_and_its_features_are_those_of_nothing(world):
    world.pipeline()
    said = world.get("/v1/features/users/bob").json()
    assert (said["missing"], said["features"]["clicks_1h"], said["features"]["last_at"]) == (True, 0, None)


def test_an_answer_beyond_the_views_staleness_says_so(world):
    world.pipeline()
    world.clock.advance("31s")
    assert world.get("/v1/features/users/ann").json()["stale"] is True


@pytest.mark.parametrize(
    "path", ["/v1/features/shops/7/true/a%2Fb%20%C3%A9", "/v1/features/shops?user=a%2Fb+%C3%A9&shop=7&paid=true"]
)
def test_a_key_of_several_columns_is_read_from_the_path_or_the_query(world, path):
    world.pipeline({"id": "a", "user": "a/b é", "shop": 7, "at": BASE})
    said = world.get(path).json()
    assert (said["key"], said["features"]) == ({"shop": 7, "paid": True, "user": "a/b é"}, {"clicks_1h": 1})


def test_an_empty_key_and_no_key_are_two_things(world):
    world.pipeline({"id": "a", "user": "", "at": BASE}, {"id": "b", "user": "ann", "at": BASE})
    assert world.get("/v1/features/users/").json()["features"]["clicks_1h"] == 1
    assert world.get("/v1/features/everyone").json()["features"]["clicks_1h"] == 2
    assert world.get("/v1/features/users").status_code == 400


@pytest.mark.parametrize(
    ("path", "status", "code", "said"),
    [
        ("/v1/features/usres/ann", 404, "not-found", "Did you mean 'users'?"),
        ("/v1/features/users/ann?user=ann", 400, "bad-request", "in the path or in the query"),
        ("/v1/features/users/ann/bob", 400, "bad-request", "kept by one column, but the path names 2"),
        ("/v1/features/everyone/", 400, "bad-request", "kept by no column"),
        ("/v1/features/shops/x/true/a", 400, "bad-request", "Write a whole number"),
        ("/v1/features/users/%ff", 400, "bad-request", "UTF-8"),
        ("/v1/features/", 404, "not-found", "There is no such view"),
        ("/v1/featuers/users/ann", 404, "unknown-path", "There is nothing at this path."),
        ("/nowhere", 404, "unknown-path", "/v1/features/{view}"),
    ],
)
def test_a_request_that_makes_no_sense_is_told_what_would(world, path, status, code, said):
    answer = world.get(path)
    assert (answer.status_code, error_of(answer)["code"]) == (status, code)
    assert said in answer.text


def test_another_method_is_refused_with_the_one_that_works(world):
    answer = world.ask("DELETE", "/v1/features/users/ann")
    assert (answer.status_code, error_of(answer)["code"]) == (405, "wrong-method")
    assert "GET" in answer.headers["allow"]
    assert "GET" in error_of(answer)["hint"]


def test_a_failure_inside_tells_the_caller_nothing_and_the_log_everything(world, monkeypatch, caplog):
    monkeypatch.setattr(world.store, "read", lambda *_, **__: 1 / 0)
    answer = world.get("/v1/features/users/ann")
    assert (answer.status_code, error_of(answer)["code"]) == (500, "internal")
    assert "division" not in answer.text
    assert "division by zero" in caplog.text


def test_a_failing_store_is_named_but_not_where_it_lies(world, monkeypatch, caplog):
    def failing(*_, **__):
        raise MachineError("store-failed", "The store's files cannot be used.", got="EIO", where="the/folder")

    monkeypatch.setattr(world.store, "read", failing)
    answer = world.get("/v1/features/users/ann")
    assert (answer.status_code, error_of(answer)["code"]) == (503, "store-failed")
    assert (error_of(answer)["where"], error_of(answer)["got"]) == (None, None)
    assert "the/folder" in caplog.text


# events


def appended(world):
    topic = NAMES.topic("clicks")
    return [record for partition in (0, 1) for record in world.log.read(topic, partition, 0)]


def test_an_event_is_appended_as_it_was_sent_and_its_place_is_told(world):
    body = json.dumps(EVENT, indent=2).encode()
    answer = world.ask("POST", "/v1/events/clicks", content=body)
    (record,) = appended(world)
    assert (answer.status_code, record.value, record.key) == (202, body, b"ann")
    assert answer.json() == {
        "stream": "clicks",
        "accepted": 1,
        "positions": [{"partition": record.partition, "offset": record.offset, "arrived_at": "2026-01-01T00:00:00Z"}],
    }


def test_json_lines_are_many_events_each_where_its_key_belongs(world):
    world.clock.advance("1s")
    events = [EVENT | {"id": f"c{n}", "user": f"u{n}"} for n in range(9)]
    body = "\r\n".join(json.dumps(event) for event in events) + "\n\n"
    answer = world.ask(
        "POST", "/v1/events/clicks", content=body, headers={"content-type": "application/x-ndjson; charset=utf-8"}
    )
    said = answer.json()
    assert said["accepted"] == 9
    by_place = {(record.partition, record.offset): json.loads(record.value)["id"] for record in appended(world)}
    told = [by_place[place["partition"], place["offset"]] for place in said["positions"]]
    assert told == [event["id"] for event in events]
    assert {place["arrived_at"] for place in said["positions"]} == {"2026-01-01T00:00:01Z"}
    assert len({place["partition"] for place in said["positions"]}) == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "malformed, there is nothing in it"),
        (b"{not json", "malformed"),
        (b"[1]", "invalid, the record must be an object"),
        (json.dumps(EVENT | {"shop": "1"}).encode(), "invalid, shop must be a whole number"),
        (json.dumps(EVENT | {"price": -1}).encode(), "invalid, check not_negative is false"),
        (json.dumps(EVENT).encode() * 2, "malformed"),
    ],
)
def test_an_event_that_cannot_be_used_is_refused_at_once_and_not_appended(world, body, reason):
    answer = world.ask("POST", "/v1/events/clicks", content=body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "bad-record")
    assert reason in error_of(answer)["message"]
    assert appended(world) == []


def test_one_bad_line_refuses_them_all_and_names_itself(world):
    body = "\n".join([json.dumps(EVENT), json.dumps(EVENT | {"shop": None}), "x"])
    answer = world.ask("POST", "/v1/events/clicks", content=body, headers={"content-type": "application/jsonl"})
    assert error_of(answer)["where"] == "event 2 of 3, 2 of them refused"
    assert appended(world) == []


@pytest.mark.parametrize("body", [b"{not json", b"\xff\x00", b""])
def test_poison_is_taken_when_asked_for(world, body):
    answer = world.ask("POST", "/v1/events/clicks?unchecked=1", content=body)
    assert answer.status_code == 202
    assert [(record.value, record.key) for record in appended(world)] == [(body, None)]


def test_lines_with_nothing_in_them_are_no_event(world):
    answer = world.ask("POST", "/v1/events/clicks", content=b"\n\n", headers={"content-type": "application/x-ndjson"})
    assert (answer.status_code, error_of(answer)["code"]) == (400, "bad-record")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/events/clickz", 404, "not-found"),
        ("/v1/events/clicks?unchecked=yes", 400, "bad-request"),
        ("/v1/events/clicks/more", 404, "unknown-path"),
    ],
)
def test_events_for_nobody_are_refused(world, path, status, code):
    answer = world.ask("POST", path, json=EVENT)
    assert (answer.status_code, error_of(answer)["code"]) == (status, code)


# how things stand


def test_the_process_is_alive_before_it_is_ready(world):
    assert world.get("/health").json() == {"alive": True}
    answer = world.get("/ready")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)


def test_it_is_not_ready_while_history_that_was_filled_in_is_not_served(world):
    (tiles, *_) = plan.tile_sets
    filled = HandOver(tiles.fingerprint, "2", BASE, {}, {0: 0}, 1, "filled")
    world.store.apply([filled], "runs", {0: 1})
    world.serving.filler.step()
    world.tell({"component": "pipeline", "at": BASE, "streams": {}, "tile_sets": {}})
    world.serving.monitor.tick()
    answer = world.get("/ready")
    assert (answer.status_code, answer.json()["history"]) == (503, False)
    said = ProgressRow(tiles.fingerprint, "2", {0: 0}, BASE)
    world.store.apply([replace(filled, stage="serving"), said], "runs", {0: 2})
    world.serving.monitor.tick()
    answer = world.get("/ready")
    assert (answer.status_code, answer.json()["history"]) == (200, True)


def test_it_is_ready_when_log_store_and_pipeline_are(world):
    world.serving.monitor.tick()
    parts = {"log": True, "store": True, "caught_up": False, "pipeline": False, "history": True}
    assert world.get("/ready").json() == {"ready": False, **parts}
    world.serving.filler.step()
    assert world.get("/ready").json() == {"ready": False, **parts, "caught_up": True}
    world.pipeline()
    answer = world.get("/ready")
    assert (answer.status_code, answer.json()["ready"]) == (200, True)


def test_a_changelog_that_is_far_ahead_keeps_it_from_being_ready(world, monkeypatch):
    monkeypatch.setattr("headrace.store.materializer.BATCH", 2)
    topic = NAMES.topic(f"changelog.{plan.tile_sets[0].id}")
    world.log.append_batch(topic, [Message(b"{}", b"%d" % n) for n in range(5)])
    world.serving.filler.step()
    assert not world.serving.filler.caught_up
    world.serving.filler.step()
    world.serving.filler.step()
    assert world.serving.filler.caught_up


def test_a_log_that_cannot_be_read_is_not_ready(world, monkeypatch):
    world.pipeline()

    def failing(topic):
        raise MachineError("log-failed", "The log's file cannot be used.")

    monkeypatch.setattr(world.log, "end_offsets", failing)
    world.serving.monitor.tick()
    answer = world.get("/ready")
    assert (answer.status_code, answer.json()["log"], answer.json()["store"]) == (503, False, True)


def test_a_store_that_is_away_is_not_ready_and_called_so(world, monkeypatch):
    world.pipeline()

    def failing(tile_set):
        raise MachineError("store-unreachable", "The store does not answer.")

    monkeypatch.setattr(world.store, "progress", failing)
    world.serving.monitor.tick()
    answer = world.get("/ready")
    assert (answer.status_code, answer.json()["log"], answer.json()["store"]) == (503, True, False)


def test_the_status_has_freshness_percentiles_lag_and_what_the_pipeline_said(world):
    world.pipeline({"id": "a", "user": "ann", "at": BASE})
    for _ in range(9):
        world.clock.advance("1s")
        world.serving.monitor.tick()
    world.get("/v1/features/users/ann")
    world.log.append(NAMES.topic("changelog.clicks.by_user"), b"{}", key=b"x")
    world.serving.monitor.tick()
    said = world.get("/status.json").json()
    view = said["views"]["users"]
    assert (view["freshness_ms"], view["freshness_p50_ms"], view["freshness_p99_ms"]) == (9000.0, 5000.0, 9000.0)
    assert (view["stale"], view["run"], view["max_staleness_ms"]) == (False, "1", 30_000.0)
    assert said["streams"]["clicks"]["verdicts"]["late"] == 2
    assert said["materialiser"]["lag_records"] == 1
    assert said["store"]["keys"] == 3
    assert (said["requests"]["features"], said["requests"]["p50_read_us"] > 0) == (1, True)
    assert said["pipeline"]["age_ms"] == 9000.0


def test_a_query_that_has_just_started_says_nothing_of_how_fresh_things_are(world):
    world.pipeline({"id": "a", "user": "ann", "at": BASE})
    (tiles,) = (each.id for each in plan.tile_sets if each.id == "clicks.by_user")
    assert world.serving.filler.latency[NAMES.topic(f"changelog.{tiles}")].run == "1"
    world.tell({"component": "pipeline", "at": BASE, "streams": {}, "tile_sets": {tiles: {"warming": True}}})
    world.serving.monitor.tick()
    before = world.get("/status.json").json()["views"]["users"]
    world.clock.advance("20s")
    world.serving.monitor.tick()
    after = world.get("/status.json").json()["views"]["users"]
    assert world.serving.filler.latency[NAMES.topic(f"changelog.{tiles}")].run is None
    assert after["warming"]
    assert after["freshness_ms"] == before["freshness_ms"] + 20_000, "what is, is said"
    assert after["freshness_p99_ms"] == before["freshness_p99_ms"], "but it is no sample"


def test_samples_older_than_some_minutes_are_forgotten(world):
    world.pipeline()
    world.clock.advance("1m")
    world.serving.monitor.tick()
    world.clock.advance("5m1s")
    world.serving.monitor.tick()
    assert world.get("/status.json").json()["views"]["users"]["freshness_p50_ms"] == (6 * MINUTE + SECOND) / 1_000


def test_what_this_process_knows_goes_to_the_status_topic(world):
    world.pipeline()
    world.clock.advance("3s")
    world.serving.monitor.tick()
    topic = NAMES.topic("headrace.status")
    (record,) = [record for record in world.log.read(topic, 0, 0) if record.key == b"serve"]
    said = json.loads(record.value)
    assert (said["component"], said["at"], said["views"]["users"]["freshness_ms"]) == (
        "serve",
        BASE + 3 * SECOND,
        3000.0,
    )


def test_words_of_the_pipeline_that_cannot_be_read_do_no_harm(world, caplog):
    world.pipeline()
    world.log.append(NAMES.topic("headrace.status"), b"{broken", key=b"pipeline")
    world.serving.monitor.tick()
    assert world.get("/ready").status_code == 200
    assert "status cannot be read" in caplog.text
