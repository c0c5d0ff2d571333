"""Dimensions over HTTP: what the reference says of their rows, read again when they change, kept when they fail."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.client.answer import answer_of
from headrace.client.connection import Reply
from headrace.client.dataframe import frame_of
from headrace.clock import show_time
from headrace.define.dimension import value_at
from headrace.lake.dimension import DimensionLocation, read
from headrace.lake.dimension_table import load_rows
from headrace.log import MemoryLog, Message
from headrace.plan.build import build
from headrace.read.catalog import Readable
from headrace.read.dimension_index import DimensionIndex
from headrace.read.reader import ViewValues
from headrace.serve import dimensions as module
from headrace.serve.dimensions import Dimensions
from headrace.serve.feature_reads import set_json
from headrace.serve.past_reads import PastReads
from headrace.store import MemoryStore
from headrace.testing import FakeClock
from headrace.tiles.changelog import ProgressRow
from headrace.tiles.changelog_format import encode
from headrace.topics import create, topics
from headrace.types.field_types import arrow_type
from tests.lake.dimensions import merchants, table, written
from tests.serve.conftest import NAMES
from tests.serve.serving import Serving
from tests.streams import BASE

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})


@hr.on_demand(merchants, users, request={"amount": float})
def exposure(amount, risk, clicks_1h):
    return None if risk is None else amount * risk + clicks_1h


@hr.on_demand(merchants)
def risky(risk):
    return risk is not None and risk > 0.5


fraud = hr.feature_set("fraud", [users, merchants.only("risk"), exposure])
shopping = hr.feature_set("shopping", [merchants.only("category"), risky])
plan = build([fraud, shopping])
DAY = 86_400_000_000
OLD, NEW = ("m 1", "food", 0.25, BASE - DAY), ("m 1", "travel", 0.75, BASE + DAY)
ENDED = ("gone", "food", 0.5, BASE - 2 * DAY, BASE - DAY)


class Shop:
    """All of serving in one process, and a table that somebody else writes."""

    def __init__(self, folder: Any, *rows: tuple[Any, ...]) -> None:
        self.folder, self.clock = folder, FakeClock(BASE)
        self.log = MemoryLog(clock=self.clock)
        create(self.log, topics(plan, NAMES, 1))
        self.dimensions = Dimensions(
            [DimensionLocation(merchants, str(folder / "merchants.parquet"))], clock=self.clock
        )
        more: dict[str, Any] = {"dimensions": self.dimensions}
        self.serving = Serving(plan, self.log, MemoryStore(), NAMES, self.clock, **more)
        if rows:
            self.write(*rows)

    def write(self, *rows: tuple[Any, ...]) -> None:
        written(self.folder, *rows)
        self.dimensions.look()

    def break_(self) -> None:
        (self.folder / "merchants.parquet").write_bytes(b"not parquet")
        self.dimensions.look()

    def pipeline(self) -> None:
        """It has spoken."""
        (tiles,) = plan.tile_sets
        key, value = encode(ProgressRow(tiles.fingerprint, "1", {0: 0}, self.clock.now()))
        self.log.append_batch(NAMES.topic(f"changelog.{tiles.id}"), [Message(value, key)])
        self.log.append(NAMES.topic("headrace.status"), b'{"component":"pipeline"}', key=b"pipeline")
        self.serving.filler.step()
        self.serving.monitor.tick()

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.serving.app, raise_app_exceptions=False)

        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **more)

        return asyncio.run(asked())


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path, OLD, NEW, ENDED)


# the same value as the reference


regions = hr.dimension(
    "regions",
    "regions",
    by=("name", "shop", "open"),
    fields={"name": str, "shop": int, "open": bool, "n": int | None, "opened": hr.Timestamp, "tags": list[str]},
    valid_from="since",
    valid_to="until",
)
NAME = st.sampled_from(["", "a", "aa", "b", "é", "\U0001f600", "z"])
ROW = st.fixed_dictionaries(
    {
        "name": NAME,
        "shop": st.sampled_from([-(2**63), -1, 0, 7]),
        "open": st.booleans(),
        "n": st.none() | st.integers(-5, 5),
        "opened": st.integers(0, 10),
        "tags": st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "since": st.integers(0, 12),
        "until": st.none() | st.integers(0, 15),
    }
)


def indexed(rows: list[dict[str, Any]]) -> DimensionIndex:
    columns = {field.name: arrow_type(field.type) for field in regions.schema}
    arrays = {name: pa.array([row[name] for row in rows], kind) for name, kind in columns.items()}
    return DimensionIndex(load_rows(regions, [pa.table(arrays)], "1"))


@given(st.lists(ROW, max_size=40, unique_by=lambda row: (row["name"], row["shop"], row["open"], row["since"])))
def test_the_index_says_of_every_key_and_moment_what_the_reference_says(rows):
    index = indexed(rows)
    keys = {(row["name"], row["shop"], row["open"]) for row in rows} | {("a", 0, True), ("\ud800", 7, False)}
    for key in keys:
        for t in range(-1, 17):
            assert index.value_at(key, t) == value_at(regions, rows, key, t)
    assert index.rows == len(rows)


# over HTTP


def test_a_dimension_answers_like_a_view(shop):
    shop.clock.advance("2s")
    answer = shop.get("/v1/features/merchants/m%201")
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "view": "merchants",
            "key": {"merchant": "m 1"},
            "features": {"category": "food", "risk": 0.25},
            "at": "2026-01-01T00:00:02Z",
            "as_of": "2026-01-01T00:00:00Z",
            "late_as_of": "2026-01-01T00:00:00Z",
            "freshness_ms": 2000.0,
            "missing": False,
            "stale": False,
            "mode": "table",
        },
    )


@pytest.mark.parametrize("merchant", ["gone", "nobody"])
def test_a_key_without_a_valid_row_is_missing_and_all_is_null(shop, merchant):
    said = shop.get(f"/v1/features/merchants?merchant={merchant}").json()
    assert (said["missing"], said["features"]) == (True, {"category": None, "risk": None})


def test_a_row_of_the_future_counts_from_its_moment_on(shop):
    shop.clock.advance("23h59m59s")
    assert shop.get("/v1/features/merchants/m%201").json()["features"]["risk"] == 0.25
    shop.clock.advance("1s")
    assert shop.get("/v1/features/merchants/m%201").json()["features"]["risk"] == 0.75


def test_a_past_moment_is_answered_from_the_same_rows(shop):
    for merchant, back, risk in (("m 1", 0, 0.25), ("m 1", DAY, 0.25), ("m 1", DAY + 1, None), ("gone", DAY + 1, 0.5)):
        answer = shop.get("/v1/features/merchants", params={"merchant": merchant, "at": show_time(BASE - back)})
        said = answer.json()
        assert (said["features"]["risk"], said["mode"], said["freshness_ms"]) == (risk, "table", 0.0)
        assert said["as_of"] == said["at"]


def test_a_feature_set_of_a_past_moment_has_views_from_the_lake_and_dimensions_from_their_tables(shop, monkeypatch):
    def from_the_lake(_self, view, key, t):
        return ViewValues(view.name, dict(key), {"clicks_1h": 7}, t, t, 0.0, False, False, "lake")

    monkeypatch.setattr(PastReads, "_view", from_the_lake)
    found = PastReads(lambda _: {}, shop.log, NAMES, shop.dimensions).read(
        Readable("fraud", fraud.keyed, fraud), {"user": "ann", "merchant": "gone"}, BASE - DAY - 1
    )
    assert {name: each.values for name, each in found.items()} == {
        "users": {"clicks_1h": 7},
        "merchants": {"category": "food", "risk": 0.5},
    }
    said = set_json(fraud, {}, found, {"exposure": {"amount": 2.0}}, found["users"].at)
    assert (said["features"]["exposure"], said["mode"]) == (8.0, "lake")


def test_many_keys_and_request_values_in_one_request(shop):
    shop.pipeline()
    keys = [{"user": "ann", "merchant": "m 1"}, {"user": "ann", "merchant": "nobody"}, {"user": "ann"}]
    answers = shop.ask("POST", "/v1/features", json={"view": "fraud", "keys": keys, "request": {"amount": 8.0}}).json()
    found = [each.get("features") for each in answers["answers"]]
    assert found[:2] == [
        {"clicks_1h": 0, "risk": 0.25, "exposure": 2.0},
        {"clicks_1h": 0, "risk": None, "exposure": None},
    ]
    assert (answers["errors"], answers["answers"][2]["error"]["code"]) == (1, "bad-request")
    several = shop.ask("POST", "/v1/features", json={"view": ["merchants", "shopping"], "keys": ["m 1"]}).json()
    assert [each["features"] for each in several["answers"]] == [
        {"category": "food", "risk": 0.25},
        {"category": "food", "risky": False},
    ]


def test_a_feature_set_is_as_old_as_its_oldest_part_and_has_the_mode_of_its_slowest(shop):
    shop.clock.advance("3s")
    shop.pipeline()
    shop.clock.advance("1s")
    (said,) = shop.ask(
        "POST",
        "/v1/features",
        json={"view": "fraud", "keys": [{"user": "ann", "merchant": "m 1"}], "request": {"amount": 1.0}},
    ).json()["answers"]
    assert (said["as_of"], said["mode"]) == ("2026-01-01T00:00:00Z", "micro-batch")
    assert said["views"]["merchants"] == {
        "as_of": "2026-01-01T00:00:00Z",
        "late_as_of": "2026-01-01T00:00:00Z",
        "freshness_ms": 4000.0,
        "missing": False,
        "stale": False,
        "mode": "table",
    }
    assert shop.get("/v1/features/shopping/m%201").json()["mode"] == "table"


def test_a_bad_key_is_refused_in_the_words_of_a_dimension(shop):
    answer = shop.get("/v1/features/merchants/a/b")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("Dimension 'merchants' is kept by one column")
    assert shop.get("/v1/features/merchnats/a").json()["error"]["hint"] == "Did you mean 'merchants'?"


def test_the_openapi_document_has_dimensions_with_their_types(shop):
    made = shop.get("/openapi.json").json()
    assert "/v1/features/merchants/{merchant}" in made["paths"]
    said = made["components"]["schemas"]["merchants.answer"]["properties"]
    assert said["features"]["properties"]["risk"]["type"] == ["number", "null"]
    assert said["features"]["properties"]["category"]["description"] == "category of merchants.parquet as of since"
    assert "table" in said["mode"]["enum"]
    example = made["paths"]["/v1/features/merchants/{merchant}"]["get"]["responses"]["200"]
    assert example["content"]["application/json"]["example"]["missing"] is True


def test_the_client_gives_values_in_the_dimensions_types():
    opened = hr.dimension(
        "opened", "o", by="shop", fields={"shop": int, "at": hr.Timestamp, "fee": hr.Decimal(5, 2)}, valid_from="since"
    )
    body = b"""{"view": "opened", "key": {"shop": 1}, "features": {"at": "2026-01-01T00:00:00Z", "fee": 1.50},
    "at": "2026-01-01T00:00:00Z", "as_of": null, "late_as_of": null, "freshness_ms": null, "missing": false,
    "stale": false, "mode": "table"}"""
    for of in (opened, hr.feature_set("set", [opened]), hr.feature_set("set", [opened.only("fee", "at")])):
        found = answer_of(Reply(200, body), of)
        assert found.features["at"] == datetime(2026, 1, 1, tzinfo=UTC)
        assert str(found.features["fee"]) == "1.50"
        assert list(frame_of(of, []).columns)[:1] == ["shop"]


# tables that change


def test_a_table_that_changed_is_read_again_and_one_that_did_not_is_only_looked_at(shop):
    shop.clock.advance("10s")
    shop.dimensions.look()
    told = shop.get("/status.json").json()["dimensions"]["merchants"]
    assert (told["loaded_at"], told["as_of"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z")
    shop.clock.advance("10s")
    shop.write(("m 1", "food", 0.5, BASE - DAY))
    said = shop.get("/v1/features/merchants/m%201").json()
    assert (said["features"]["risk"], said["as_of"]) == (0.5, "2026-01-01T00:00:20Z")
    assert shop.get("/status.json").json()["dimensions"]["merchants"]["loaded_at"] == "2026-01-01T00:00:20Z"


def test_a_delta_table_is_read_again_with_its_next_version(tmp_path):
    dimensions = Dimensions([DimensionLocation(merchants, str(tmp_path))], clock=FakeClock(BASE))
    write_deltalake(str(tmp_path), table(OLD))
    dimensions.look()
    (before,) = dimensions.read(merchants, [("new",)], BASE)
    write_deltalake(str(tmp_path), table(("new", "food", 0.5, 1)), mode="append")
    dimensions.look()
    (after,) = dimensions.read(merchants, [("new",)], BASE)
    assert (before.missing, after.missing, after.values["risk"]) == (True, False, 0.5)


def test_before_the_first_read_nobody_is_answered_and_it_is_not_ready(tmp_path):
    shop = Shop(tmp_path)
    shop.pipeline()
    answer = shop.get("/v1/features/merchants/m%201")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "dimension-unread")
    assert answer.headers["retry-after"] == "1"
    ready = shop.get("/ready")
    assert (ready.status_code, ready.json()["dimensions"]) == (503, False)
    assert shop.get("/status.json").json()["waiting_for"] == ["dimensions"]
    assert shop.get("/v1/features/users/ann").status_code == 200
    shop.write(OLD)
    assert (shop.get("/ready").status_code, shop.get("/ready").json()["dimensions"]) == (200, True)
    assert shop.get("/v1/features/merchants/m%201").status_code == 200


@pytest.mark.parametrize("how", ["broken", "gone", "two rows of one moment"])
def test_a_table_that_became_unreadable_keeps_its_last_good_content_and_says_so(shop, how):
    shop.pipeline()
    shop.clock.advance("10s")
    if how == "gone":
        (shop.folder / "merchants.parquet").unlink()
        shop.dimensions.look()
    elif how == "broken":
        shop.break_()
    else:
        shop.write(OLD, OLD)
    said = shop.get("/v1/features/merchants/m%201").json()
    assert (said["features"]["risk"], said["stale"], said["as_of"]) == (0.25, True, "2026-01-01T00:00:00Z")
    refused = shop.get("/v1/features/merchants/m%201?stale=refuse")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too-stale")
    ready = shop.get("/ready")
    assert (ready.status_code, ready.json()["ready"], ready.json()["failing_dimensions"]) == (200, True, ["merchants"])
    metrics = shop.get("/metrics").text
    assert 'headrace_dimension_failing{dimension="merchants"} 1.0' in metrics
    assert 'headrace_dimension_age_seconds{dimension="merchants"} 10.0' in metrics
    assert "merchants" in shop.get("/status.json").json()["dimensions"]["merchants"]["failing"]
    assert 'class=bad data-path="dimensions/merchants/failing"' in shop.get("/").text
    shop.write(("m 1", "food", 0.5, BASE - DAY))
    assert shop.get("/v1/features/merchants/m%201").json()["stale"] is False
    assert "failing_dimensions" not in shop.get("/ready").json()
    assert 'headrace_dimension_failing{dimension="merchants"} 0.0' in shop.get("/metrics").text


def test_metrics_and_the_page_say_how_large_a_table_is(shop):
    shop.get("/v1/features/merchants/nobody")
    metrics = shop.get("/metrics").text
    assert 'headrace_dimension_rows{dimension="merchants"} 3.0' in metrics
    assert 'headrace_reads_missing_total{view="merchants"} 1.0' in metrics
    told = shop.get("/status.json").json()["dimensions"]["merchants"]
    assert (told["rows"], told["keys"], told["key"], told["failing"]) == (3, 2, ["merchant"], None)
    assert told["bytes"] > 0
    assert "<h2>Dimensions</h2>" in shop.get("/").text


def test_a_failing_table_is_looked_at_again_soon_and_a_good_one_in_its_time(shop, monkeypatch):
    monkeypatch.setattr(module, "AGAIN", 5.0)
    waited: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0.0)
            if len(waited) == 1:
                shop.break_()
            return len(waited) == 2

    shop.dimensions.run(Stop())
    assert waited == [10.0, 5.0]


def test_a_table_that_takes_long_to_be_refused_is_not_read_all_the_time(shop, monkeypatch):
    moments = iter([0.0, 0.5])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    waited: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0.0)
            return True

    (shop.folder / "merchants.parquet").unlink()
    shop.dimensions.run(Stop())
    assert waited == [5.0]


def test_a_read_during_a_reload_is_answered_at_once_from_what_there_is(shop, monkeypatch):
    began, go_on = threading.Event(), threading.Event()

    def slow(place):
        began.set()
        assert go_on.wait(30)
        return original(place)

    original = read
    monkeypatch.setattr(module, "read", slow)
    written(shop.folder, ("m 1", "food", 0.5, BASE - DAY))
    thread = threading.Thread(target=shop.dimensions.look)
    thread.start()
    assert began.wait(30)
    started = time.monotonic()
    assert shop.get("/v1/features/merchants/m%201").json()["features"]["risk"] == 0.25
    assert time.monotonic() - started < timedelta(seconds=20).total_seconds()
    go_on.set()
    thread.join(30)
    assert shop.get("/v1/features/merchants/m%201").json()["features"]["risk"] == 0.5
