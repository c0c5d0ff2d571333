"""A serving application over memory, a clock that stands still, and a client without a network."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

import headrace as hr
from headrace.config.config import Names
from headrace.config.serve_settings import DEFAULTS, ServeSettings
from headrace.log import MemoryLog, Message
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.serve.server_options import ServerOptions
from headrace.store import MemoryStore
from headrace.testing import FakeClock, record
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from headrace.topics import create, topics
from tests.moments import refuse_numbers_in
from tests.serve.serving import Serving
from tests.serve.shape import rows_of
from tests.streams import BASE

clicks = hr.stream(
    "clicks",
    fields={"id": str, "user": str, "shop": int, "paid": bool, "price": hr.Decimal(10, 2), "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    key="user",
    checks={"not_negative": "price >= 0"},
)
users = hr.view(
    "users",
    clicks,
    by="user",
    max_staleness="30s",
    features={
        "clicks_1h": hr.count(over="1h"),
        "spent_1h": hr.sum("price", over="1h"),
        "last_at": hr.last("at", over="1h"),
        "last_two": hr.last_n("at", n=2, over="1h"),
        "top_shops": hr.top_k("shop", k=1, over="1h"),
    },
)
shops = hr.view("shops", clicks, by=("shop", "paid", "user"), features={"clicks_1h": hr.count(over="1h")})
everyone = hr.view("everyone", clicks, by=(), features={"clicks_1h": hr.count(over="1h")})


@hr.on_demand(users, request={"budget": hr.Decimal(10, 2), "note": str | None})
def left_over(budget, spent_1h, note):
    """What is left of the budget."""
    return None if note == "none" else budget - spent_1h


@hr.on_demand(users, left_over, request={"goal": int})
def per_click(left_over, clicks_1h, goal, t):
    return {"each": goal / clicks_1h, "left": left_over, "t": t}


habits = hr.feature_set("habits", [users.only("last_at", "spent_1h"), everyone, left_over])
pace = hr.feature_set("pace", [per_click, shops])
rests = hr.feature_set("rests", [users.only("last_two", "clicks_1h")])
plan = build([users, shops, everyone, habits, pace, rests])
NAMES = Names("eu", "shop", Path("data"))


class World:
    """All of serving in one process, and what a pipeline would have written."""

    def __init__(
        self, settings: ServeSettings = DEFAULTS, log: MemoryLog | None = None, terms: ServerOptions | None = None
    ) -> None:
        self.clock = FakeClock(BASE)
        self.log = log or MemoryLog(clock=self.clock)
        create(self.log, topics(plan, NAMES, 2))
        self.store = MemoryStore()
        # No read is kept by chance.
        terms = terms or ServerOptions(settings=dataclasses.replace(settings, sample=0.0))
        self.serving = Serving(plan, self.log, self.store, NAMES, self.clock, terms=terms)

    def pipeline(self, *events: dict[str, Any]) -> None:
        """Tiles and progress as of now, and a word on how it is doing."""
        given = [record(clicks, **{"shop": 1, "paid": True, "price": 1, **event}) for event in events]
        outcome, now = ReferenceResult(plan, _placed(given)), self.clock.now()
        for tiles in plan.tile_sets:
            names = tuple(name for name, _ in tiles.key)
            said = ProgressRow(tiles.fingerprint, "1", {0: len(given)}, now)
            rows: list[TileRow | ProgressRow] = [*rows_of(outcome, tiles, (now + 1,)), said]
            pairs = [encode(row, names if isinstance(row, TileRow) else ()) for row in rows]
            self.log.append_batch(NAMES.topic(f"changelog.{tiles.id}"), [Message(value, key) for key, value in pairs])
        self.tell({"component": "pipeline", "at": now, "streams": {"clicks": STREAM}, "tile_sets": TILES})
        self.tell({"component": "archive", "at": now, "streams": {"clicks": KEPT}}, "archive")
        self.serving.filler.step()
        self.serving.monitor.tick()

    def tell(self, said: Any, component: str = "pipeline") -> None:
        self.log.append(NAMES.topic("headrace.status"), json.dumps(said).encode(), key=component.encode())

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """A request to the application, in this process."""
        transport = httpx.ASGITransport(self.serving.app, raise_app_exceptions=False)

        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **more)

        answer = asyncio.run(asked())
        refuse_numbers_in(answer.text)
        return answer

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, **asked: Any) -> httpx.Response:
        """A request for many keys."""
        return self.ask("POST", "/v1/features", json=asked)


STREAM: dict[str, Any] = {
    "lag_events": 3,
    "lag_seconds": 0.5,
    "rate_per_s": 12.5,
}
KEPT: dict[str, Any] = {
    "archived": 10,
    "verdicts": {"malformed": 1, "invalid": 1, "future": 0, "late": 2, "duplicate": 1, "admitted": 5},
    "conflict": 0,
    "lost": 0,
    "lag_events": 1,
    "batch_seconds": 0.5,
}
TILES = {
    "clicks.by_user": {"batch": 4, "batch_ms": 250, "state_rows": 7, "state_bytes": 1500, "dropped_by_watermark": 0}
}


def _placed(given: Iterable[Any]) -> list[Any]:
    from msgspec.structs import replace

    return [replace(each, offset=offset) for offset, each in enumerate(given)]


@pytest.fixture
def world() -> World:
    return World()
