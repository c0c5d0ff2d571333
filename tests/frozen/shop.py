"""A small project that has one of each definition, and rows of its changelog, with fixed times and versions."""

from __future__ import annotations

from pathlib import Path

import headrace as hr
from headrace.config.config import Config, parse
from headrace.plan.build import build
from headrace.tiles.changelog import Gone, HandOver, ProgressRow, Row, TileRow

MINUTE = 60_000_000
BASE = 1_735_689_600_000_000
"""2025-01-01 in microseconds."""

TOPIC = "changelog.payments.by_card"
TILES, RUN = "0123456789ab", "1"
"""The fingerprint of a tile set that exists nowhere else, and its run."""

SETTINGS = """
prefix = "eu"
[project]
name = "shop"
"""

payments = hr.stream(
    "payments",
    fields={
        "id": str,
        "card": str,
        "amount": float,
        "cents": int,
        "price": hr.Decimal(12, 2),
        "online": bool | None,
        "tags": list[str],
        "place": {"country": str, "zip": str | None},
        "at": hr.Timestamp,
    },
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
    late="side_output",
)
disputes = hr.stream("disputes", fields={"payment": str, "at": hr.Timestamp}, event_time="at")
cards = hr.view(
    "cards",
    payments.where("amount > 0"),
    by="card",
    max_staleness="30s",
    features={
        "payments_10m": hr.count(over="10m"),
        "spent_1h": hr.sum("amount", over="1h"),
        "dearest": hr.max("cents", over="1d"),
        "spent_ever": hr.sum("cents", over=hr.lifetime()),
    },
)
everyone = hr.view("everyone", payments, by=[], features={"payments_1h": hr.count(over="1h")})


@hr.on_demand(cards, request={"amount": float})
def share_of_hour(amount: float, spent_1h: float | None) -> float | None:
    """The payment as a share of what the card has spent in an hour."""
    return amount / spent_1h if spent_1h else None


fraud = hr.feature_set("fraud", [cards, share_of_hour])
risk = hr.model("risk", fraud, stream=payments)
disputed = hr.label("disputed", disputes, of=risk, on="payment", horizon="30d", default=False)

plan = build([payments, disputes, cards, everyone, fraud, risk, disputed])
by_card = plan.view_tiles["cards"]


def read_config(root: Path = Path("shop"), more: str = "") -> Config:
    """The settings of the project, none of them from this process's environment."""
    return parse(SETTINGS + more, root, {})


def tile_row(minute: int, lane: str = "on_time", version: int = 1, key: tuple[str | int | bool, ...] = ("42",)) -> Row:
    """The row of one tile, which starts so many minutes after `BASE`."""
    start = BASE + minute * MINUTE
    partials = b'{"count_1":%d,"total_1":[1.5,0.0]}' % version
    return TileRow(TILES, RUN, key, start, lane, version, partials, {0: 17, 1: 4}, start + 5, start + 7)


ROWS: dict[str, tuple[Row, tuple[str, ...]]] = {
    "tile": (tile_row(0), ("card",)),
    "late tile": (tile_row(1, lane="late", version=2**40), ("card",)),
    "tile of three key columns": (tile_row(2, key=('a\u00e9"', -3, True)), ("card", "number", "online")),
    "tile without a key": (tile_row(3, key=()), ()),
    "tile without times": (TileRow(TILES, RUN, ("42",), -MINUTE, "on_time", 0), ("card",)),
    "progress": (ProgressRow(TILES, RUN, {0: 18, 1: 4}, BASE), ()),
    "progress of ordered rows": (ProgressRow(TILES, "2", {0: 19}, BASE, ordered=True), ()),
    "progress of both lanes": (ProgressRow(TILES, "3", {}, BASE, late_as_of=BASE - MINUTE), ()),
    "progress of a late lane that knows nothing": (ProgressRow(TILES, "4", {}, 0, late_as_of=0), ()),
    "hand-over while it fills": (HandOver(TILES, "2", BASE, {0: 9, -1: 3}, {0: 8}, 7, filled=BASE - MINUTE), ()),
    "hand-over that serves": (HandOver(TILES, "3", BASE, {}, {}, 9, "serving"), ()),
    "removed tile": (Gone(TILES, RUN, ("42",), BASE, "late"), ("card",)),
    "removed run": (Gone(TILES, "2"), ()),
}
"""One of each kind of row, with the names of its key columns."""
