"""Values of a past moment over HTTP: from the lake, complete or refused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest

import headrace as hr
from headrace.clock import HOUR, MINUTE, SECOND, show_time
from headrace.errors import MachineError
from headrace.lake.counters import BATCH, OFFSET, TURN
from headrace.lake.files import DayWriter
from headrace.lake.layout import BRONZE, SILVER, bronze_shape, silver_shape
from headrace.lake.maintenance import forget
from headrace.lake.table import LakeTable
from headrace.read.catalog import Readable
from headrace.serve.past_reads import PastReads
from headrace.store import MemoryStore
from tests.client.conftest import running
from tests.serve.conftest import NAMES, World, clicks, plan
from tests.serve.serving import Serving
from tests.streams import BASE


class Shop:
    """A log, and a lake that has what it is given of it."""

    def __init__(self, world: World, folder: Any) -> None:
        self.clock, self.log = world.clock, world.log
        self.tables = {
            BRONZE: LakeTable(str(folder / BRONZE), bronze_shape()),
            SILVER: LakeTable(str(folder / SILVER), silver_shape(clicks)),
        }
        self.there = self.tables
        store = MemoryStore()
        self.serving = Serving(plan, self.log, store, NAMES, self.clock, tables=lambda _: self.there)

    def opened(self, folder: Any) -> dict[str, LakeTable]:
        """The tables as they are now."""
        shapes = {BRONZE: bronze_shape(), SILVER: silver_shape(clicks)}
        return {name: LakeTable(str(folder / name), shape) for name, shape in shapes.items()}

    def click(self, user: str, price: str = "1.50") -> None:
        """An event that happens and arrives now."""
        text = f'{{"id":"{self.clock.now()}","user":"{user}","shop":1,"paid":true,"price":{price}'
        value = f'{text},"at":"{show_time(self.clock.now())}"}}'
        self.log.append(NAMES.topic("clicks"), value.encode(), key=user.encode())

    def archive(self, *rows: tuple[str, int, str]) -> None:
        """Everything that is in the log is in the lake, silver with these rows: user, moment, price."""
        from decimal import Decimal

        shape = silver_shape(clicks)
        made = [
            {
                "id": str(at),
                "user": user,
                "shop": 1,
                "paid": True,
                "price": Decimal(price),
                "at": at,
                "_partition": 0,
                "_offset": number,
                "_arrived_at": at,
                "_late": False,
                "_closed": False,
                "_event_id": str(at),
                "_identity": at,
                "_payload": at,
            }
            for number, (user, at, price) in enumerate(rows)
        ]
        writer = DayWriter(self.tables[SILVER].uri, shape)
        writer.add(pa.RecordBatch.from_pylist(made, schema=shape.schema))
        ends = self.log.end_offsets(NAMES.topic("clicks"))
        moved = {TURN: 1, BATCH: 1, **{f"{OFFSET}{partition}": end for partition, end in ends.items()}}
        self.tables[BRONZE].commit([], moved)
        self.tables[SILVER].commit(writer.close(), moved)

    def get(self, path: str) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.serving.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.get(path)

        return asyncio.run(asked())

    def at(self, moment: int, name: str = "users") -> httpx.Response:
        return self.get(f"/v1/features/{name}?user=ann&at={quote(show_time(moment))}")


@pytest.fixture
def shop(world, tmp_path):
    made = Shop(world, tmp_path)
    made.clock.advance("1h")
    return made


def test_a_past_moment_is_answered_with_what_was_known_then(shop):
    now = shop.clock.now()
    shop.archive(("ann", now - 30 * MINUTE, "1.50"), ("ann", now - 10 * MINUTE, "2.25"), ("bob", now, "9.00"))
    shop.clock.advance("1m")
    said = shop.at(now - 10 * MINUTE).json()
    assert (said["features"]["clicks_1h"], said["features"]["spent_1h"]) == (1, 1.50)
    assert (said["mode"], said["missing"], said["stale"], said["freshness_ms"]) == ("lake", False, False, 0.0)
    assert said["at"] == said["as_of"] == show_time(now - 10 * MINUTE)
    later = shop.at(now).json()["features"]
    assert (later["clicks_1h"], later["spent_1h"]) == (2, 3.75)
    assert later["last_two"] == [show_time(now - 10 * MINUTE), show_time(now - 30 * MINUTE)]


def test_a_feature_set_has_a_past_too(shop):
    now = shop.clock.now()
    shop.archive(("ann", now - MINUTE, "1.50"))
    said = shop.at(now, "rests").json()
    assert (said["features"]["clicks_1h"], said["mode"], said["views"]["users"]["mode"]) == (1, "lake", "lake")


def test_the_client_asks_for_the_past_with_a_datetime_or_its_text(shop):
    now = shop.clock.now()
    shop.archive(("ann", now - MINUTE, "1.50"))
    moment = datetime.fromtimestamp(now / SECOND, UTC)
    with running(shop) as url, hr.Client(url) as client:
        found = client.features_at("users", "ann", moment)
        assert (found.features["clicks_1h"], found.mode, found.at) == (1, "lake", moment)
        assert client.features_at("users", {"user": "ann"}, show_time(now)) == found
        assert asyncio.run(by_coroutine(url, moment)) == found


async def by_coroutine(url: str, moment: datetime) -> Any:
    async with hr.AsyncClient(url) as client:
        return await client.features_at("users", "ann", moment)


def test_a_key_that_was_not_known_yet_is_missing(shop):
    now = shop.clock.now()
    shop.archive(("ann", now, "1.50"))
    shop.clock.advance("1m")
    said = shop.at(now).json()
    assert (said["missing"], said["features"]["clicks_1h"]) == (True, 0)


def test_a_moment_that_the_lake_has_not_reached_is_refused_and_may_be_asked_for_again(shop):
    shop.archive(("ann", shop.clock.now() - MINUTE, "1.50"))
    shop.clock.advance("1s")
    shop.click("ann")
    waiting = shop.clock.now()
    shop.clock.advance("10s")
    assert shop.at(waiting).status_code == 200, "what had not arrived before then is not needed"
    refused = shop.at(waiting + SECOND)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "lake-behind")
    assert refused.headers["retry-after"] == "1"


def test_where_records_declare_their_arrival_everything_must_be_in_the_lake(shop):
    fields = {"id": str, "user": str, "seen": hr.Timestamp, "at": hr.Timestamp}
    declared = hr.stream("clicks", fields=fields, event_time="at", arrival="field:seen")
    view = hr.view("users", declared, by="user", features={"clicks_1h": hr.count(over="1h")})
    before = shop.clock.now()
    shop.archive(("ann", before - MINUTE, "1.50"))
    past, asked = PastReads(lambda _: shop.tables, shop.log, NAMES), Readable("users", (view,))
    assert past.read(asked, {"user": "ann"}, before)["users"].values == {"clicks_1h": 1}
    shop.clock.advance("1s")
    shop.click("ann")
    with pytest.raises(MachineError) as refused:
        past.read(asked, {"user": "ann"}, before)
    assert refused.value.code == "lake-behind"


def test_a_lake_that_is_not_there_or_half_written_is_behind(shop):
    now = shop.clock.now()
    shop.there = {}
    assert shop.at(now).json()["error"]["code"] == "lake-behind"
    shop.there = shop.tables
    shop.tables[BRONZE].commit([], {TURN: 1, BATCH: 1})
    assert shop.at(now).json()["error"]["code"] == "lake-behind"


def test_what_was_forgotten_cannot_be_asked_for(shop):
    now = shop.clock.now()
    shop.archive(("ann", now - MINUTE, "1.50"))
    forget(shop.tables[SILVER], now + 48 * HOUR)
    refused = shop.at(now)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "lake-forgotten")


@pytest.mark.parametrize("at", ["yesterday", "2026-01-01T12:00:00", "", "NaN"])
def test_what_is_no_moment_is_refused(shop, at):
    refused = shop.get(f"/v1/features/users?user=ann&at={at}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad-request")


def test_the_future_is_refused(shop):
    refused = shop.at(BASE + 1_000 * HOUR)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad-request")
    assert "yet to come" in refused.json()["error"]["message"]


@pytest.mark.parametrize("broken", ["commit", "file"])
def test_a_lake_that_is_damaged_is_503_and_says_nothing_of_the_machine(shop, tmp_path, broken):
    now = shop.clock.now()
    shop.archive(("ann", now - MINUTE, "1.50"))
    found = tmp_path.joinpath(SILVER).rglob("*.parquet" if broken == "file" else "*.json")
    (file,) = [max(each for each in found)]
    file.write_bytes(file.read_bytes()[:40])
    shop.serving = Serving(plan, shop.log, MemoryStore(), NAMES, shop.clock, tables=lambda _: shop.opened(tmp_path))
    answer = shop.at(now)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["where"], error["got"]) == (503, "lake-failed", None, None)
    assert error["hint"]
    assert str(tmp_path) not in answer.text
