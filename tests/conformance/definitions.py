"""What every engine is held to: one plan with all types, aggregates, windows and kinds of key there are.

Two streams. `orders` has event ids, and its late events count; `clicks` has none, drops late ones, and names a field as
its arrival. One plan for all, so that an engine runs every case in one query for each tile set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import headrace as hr
from headrace.aggregate import AGGREGATES
from headrace.clock import MINUTE, SECOND
from headrace.define.measure import Measure, Ratio
from headrace.define.stream import Arrival, Stream
from headrace.define.view import View
from headrace.plan.build import build
from headrace.plan.model import Plan

LATENESS, SKEW, GAP = 2 * MINUTE, 30 * SECOND, 90 * SECOND
PARTITIONS = 4
"""Of every topic; nobody writes to the last one."""
ARRIVED = "arrived"
"""The header that says when a record arrived, for logs whose own clock cannot be set."""

INPUTS: dict[str, Any] = {
    "amount": float | None,
    "cents": int | None,
    "price": hr.Decimal(10, 2) | None,
    "huge": hr.Decimal(38, 18) | None,
    "country": str | None,
    "paid": bool | None,
    "due": hr.Timestamp | None,
}
"""One field of every type that can be aggregated."""

orders: Stream = hr.stream(
    "orders",
    fields={
        "id": str,
        "card": str,
        "shop": int,
        "online": bool,
        **INPUTS,
        "note": str | None,
        "at": hr.Timestamp,
    },
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
    max_clock_skew="30s",
    checks={"sane_shop": "shop <> 666"},
)
clicks: Stream = hr.stream(
    "clicks",
    fields={"user": int, "cents": int | None, "at": hr.Timestamp, "seen": hr.Timestamp},
    event_time="at",
    arrival="field:seen",
    allowed_lateness="2m",
    max_clock_skew="30s",
    late="drop",
)

_PARAMETERS: dict[str, dict[str, Any]] = {
    "last_n": {"n": 3},
    "quantile": {"q": 0.5},
    "top_k": {"k": 3},
    "decayed_sum": {"half_life": "10m"},
}


def every_aggregate(stream: Stream, fields: Iterable[str] = INPUTS, over: str = "1h") -> dict[str, Measure | Ratio]:
    """Every aggregate over every one of the fields that it takes, and over the event itself."""
    made: dict[str, Measure | Ratio] = {}
    for name, kind in AGGREGATES.items():
        word, more = getattr(hr, name), _PARAMETERS.get(name, {})
        if not kind.needs_input:
            made[name] = word(over=over, **more)
        for field in fields:
            if isinstance(stream.column(field).type, kind.accepts):
                made[f"{name}_{field}"] = word(field, over=over, **more)
    return made


EXPRESSIONS: dict[str, Measure | Ratio] = {
    "squared": hr.sum("cents * cents", over="1h"),
    "above": hr.max("cents + 1", over="1h"),
    "negated": hr.min("-cents", over="1h"),
    "rest": hr.sum("cents % shop", over="1h"),
    "quotient": hr.mean("amount / shop", over="1h"),
    "root": hr.sum("sqrt(amount)", over="1h"),
    "enormous": hr.max("amount * 1e300", over="1h"),
    "as_integer": hr.sum("CAST(note AS BIGINT)", over="1h"),
    "as_float": hr.last("CAST(note AS DOUBLE)", over="1h"),
    "as_decimal": hr.sum("CAST(note AS DECIMAL(10, 2))", over="1h"),
    "as_boolean": hr.count("CAST(note AS BOOLEAN)", over="1h"),
    "as_timestamp": hr.max("CAST(note AS TIMESTAMP)", over="1h"),
    "narrowed": hr.sum("CAST(huge AS DECIMAL(10, 2))", over="1h"),
    "product": hr.sum("price * price", over="1h"),
    "shouted": hr.last("upper(country)", over="1h"),
    "parted": hr.top_k("concat(country, note)", k=2, over="1h"),
    "divisible": hr.count(over="1h", where="cents % shop = 0"),
    "german": hr.sum("cents", over="1h", where="country = 'DE' AND paid"),
    "share": hr.ratio(hr.count(over="1h", where="amount / shop > 1"), hr.count(over="1h")),
}
"""Overflow, division by zero and bad casts: null in every engine, and an error in none."""

WINDOWS: dict[str, Measure | Ratio] = {
    "seconds": hr.count(over=hr.trailing("10s", resolution="1s")),
    "exact": hr.sum("cents", over=hr.trailing("5m", resolution="exact")),
    "trailing": hr.sum("cents", over="1h"),
    "coarse": hr.mean("amount", over=hr.trailing("10m", resolution="5m")),
    "minute": hr.count(over=hr.tumbling("1m")),
    "day": hr.count(over=hr.tumbling("1d")),
    "day_before": hr.sum("price", over=hr.tumbling("1d", previous=True)),
    "hopping": hr.sum("cents", over=hr.hopping("10m", every="5m")),
    "session": hr.count(over=hr.session(gap="90s", max_length="30m")),
    "session_sum": hr.sum("cents", over=hr.session(gap="90s", max_length="30m")),
    "session_last": hr.last("country", over=hr.session(gap="90s", max_length="30m")),
    "lifetime": hr.count(over=hr.lifetime()),
    "lifetime_countries": hr.count_distinct("country", over=hr.lifetime()),
    "today": hr.count(over=hr.calendar("day", timezone="Asia/Kolkata")),
    "yesterday": hr.max("cents", over=hr.calendar("day", timezone="Asia/Kolkata", previous=True)),
    "month": hr.count(over=hr.calendar("month", timezone="America/New_York")),
}
"""Every shape of window; tiles of a second, because the finest window has them, and windows of days over them."""


def views(source: Stream = orders) -> list[View]:
    """Every view, over that variant of the orders."""
    placed = source.with_columns(region="coalesce(country, '-')").where("cents IS NULL OR cents <> 13")
    return [
        hr.view("types", source, by="card", features=every_aggregate(source)),
        hr.view("expressions", source, by="card", features=EXPRESSIONS),
        hr.view("filtered", source.where("paid"), by="card", features={"n": hr.count(over="1h")}),
        hr.view("windows", placed, by=("card", "shop", "online", "region"), features=WINDOWS),
        hr.view(
            "everyone",
            source.where("note IS DISTINCT FROM 'contradiction'"),
            by=(),
            features={
                "n": hr.count(over="10m"),
                "cents": hr.sum("cents", over="10m"),
                "least": hr.min("price", over="10m"),
                "cards": hr.count_distinct("card", over="1d"),
                "session": hr.count(over=hr.session(gap="90s", max_length="30m")),
            },
        ),
        hr.view("clickers", clicks, by="user", features=every_aggregate(clicks, ["cents"], over="10m")),
    ]


def plan_of(arrival: str = "log", only: Sequence[str] = ()) -> Plan:
    """The plan; `arrival` says where the orders' arrival comes from, `only` which views are wanted if not all."""
    made = views(dataclasses.replace(orders, arrival=Arrival(*arrival.split(":"))))
    return build([view for view in made if not only or view.name in only])
