"""A small shop with history: its definitions, its events with their arrivals, and rows to ask for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headrace import project
from headrace.clock import SystemClock
from headrace.config.config import names
from headrace.project import Project
from headrace.testing import record, run

FEATURES = """
import headrace as hr
from rates import RATE

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "shop": int, "amount": float, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    allowed_lateness="1h",
)
cards = hr.view(
    "cards",
    payments,
    by="card",
    features={
        "payments_1h": hr.count(over="1h"),
        "spend_1d": hr.sum("amount", over="1d"),
        "last_shop": hr.last("shop", over="1d"),
        "first_id": hr.first("id", over="1d"),
    },
)
shops = hr.view("shops", payments, by="shop", features={"payments_1h": hr.count(over="1h"), "all": hr.count(over="7d")})


@hr.on_demand(shops, request={"amount": float})
def crowd(payments_1h, amount, t) -> float | None:
    return payments_1h * amount * RATE if t else None


@hr.on_demand(cards, request={"amount": float})
def fails(spend_1d, amount) -> float:
    return amount / spend_1d


@hr.on_demand(cards)
def untyped(spend_1d):
    return spend_1d


merchants = hr.dimension(
    "merchants",
    "merchants.parquet",
    by="shop",
    fields={"shop": int, "category": str, "risk": float | None, "since": hr.Timestamp},
    valid_from="since",
)


@hr.on_demand(merchants, cards)
def risky(risk, payments_1h) -> float | None:
    return None if risk is None else risk * payments_1h


fraud = hr.feature_set("fraud", [cards, crowd])
places = hr.feature_set("places", [cards.only("payments_1h"), merchants, risky])
failing = hr.feature_set("failing", [fails])
"""
TOML = '[project]\nname = "shop"\n'
START = datetime(2025, 3, 3, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    """A moment of the day."""
    return START + timedelta(minutes=minutes)


EVENTS: list[dict[str, Any]] = [
    {
        "id": f"p{n}",
        "card": f"c{n % 3}",
        "shop": n % 2,
        "amount": 1.5 * n + 1,
        "at": at(7 * n),
        # Some come at once, some minutes later, one so late that it is late.
        "received": at(7 * n + (0.1, 3, 20, 90)[n % 4]),
    }
    for n in range(24)
]
SPINE: list[dict[str, Any]] = [
    {"card": f"c{n % 4}", "shop": n % 2, "t": at(11 * n + 5), "amount": 2.0 + n, "label": int(n % 5 == 0)}
    for n in range(20)
]


MERCHANTS: list[dict[str, Any]] = [
    {"shop": 0, "category": "food", "risk": 0.1, "since": at(-60)},
    {"shop": 0, "category": "wine", "risk": 0.4, "since": at(100)},
    {"shop": 1, "category": "toys", "risk": None, "since": at(60)},
]


def make_shop(folder: Path, spark: Any) -> Project:
    """The project with its history in the lake."""
    folder.mkdir()
    (folder / "headrace.toml").write_text(TOML)
    (folder / "features.py").write_text(FEATURES)
    (folder / "rates.py").write_text("RATE = 0.5\n")
    write_merchants(folder, MERCHANTS)
    loaded = project.load(folder)
    bring_in(loaded, EVENTS, spark)
    return loaded


def write_merchants(folder: Path, rows: list[dict[str, Any]]) -> None:
    """The dimension's table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), folder / "merchants.parquet")


def bring_in(loaded: Project, events: list[dict[str, Any]], spark: Any) -> None:
    """More history."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from headrace.ingest.files.columns import parse_columns
    from headrace.ingest.files.rows import read_rows
    from headrace.ingest.files.source import find_source
    from headrace.lake.location import open_lake
    from headrace.spark.archive.lake_writer import LakeWriter
    from headrace.spark.imports.history_import import ImportRequest, bring

    (stream,) = loaded.streams
    file, scratch = loaded.config.root / "history.parquet", loaded.config.root / "scratch"
    pq.write_table(pa.Table.from_pylist(events), file)
    scratch.mkdir(exist_ok=True)
    lake = replace(open_lake(loaded.config, stream), staging=str(scratch / "staging"))
    given, read = find_source(str(file)), parse_columns(stream.schema, {}, "received")
    wish = ImportRequest(given.fingerprint(), "rule", lambda start: read_rows(given, read, start))
    writer = LakeWriter(stream, names(loaded.config).topic(stream.name), lake, spark)
    done = bring(writer, wish, scratch, most=1_000, clock=SystemClock())
    assert done.rows == len(events)


def expected(loaded: Project, name: str, mode: Any = "as_known", rows: Any = None) -> list[dict[str, Any]]:
    """What the reference interpreter says of rows of the spine."""
    (stream,) = loaded.streams
    records = [
        record(stream, arrived_at=event["received"], **{k: v for k, v in event.items() if k != "received"})
        for event in EVENTS
    ]
    tables = {"merchants": MERCHANTS}
    result, wanted = run([*loaded.views, *loaded.feature_sets], records, tables=tables), loaded.find(name)
    return [
        result.features(wanted, _key(wanted, row), at=row["t"], mode=mode, request={"amount": row["amount"]})
        for row in (SPINE if rows is None else rows)
    ]


def _key(wanted: Any, row: dict[str, Any]) -> Any:
    return {name: row[name] for name in ("card", "shop")}
