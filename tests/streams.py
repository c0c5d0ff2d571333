"""Generated streams: disorder, lateness, duplicates, poison and future records, in a few partitions."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from msgspec.structs import replace

import headrace as hr
from headrace.clock import DAY, HOUR, MINUTE, SECOND
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.log.record import Record
from headrace.testing import poison, record

BASE = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z, on every boundary there is
LATENESS, SKEW = 2 * MINUTE, 30 * SECOND

payments: Stream = hr.stream(
    "payments",
    fields={
        "id": str,
        "card": str,
        "amount": float | None,
        "cents": int | None,
        "country": str | None,
        "at": hr.Timestamp,
    },
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
    max_clock_skew="30s",
    checks={"sane_amount": "amount < 1000000"},
)

every_window: View = hr.view(
    "every_window",
    payments.where("cents is null or cents <> 13"),
    by="card",
    features={
        "trailing": hr.count(over="10m"),
        "trailing_sum": hr.sum("cents", over="1h"),
        "coarse": hr.sum("cents", over=hr.trailing("10m", resolution="5m")),
        "exact": hr.sum("cents", over=hr.trailing("5m", resolution="exact")),
        "tumbling": hr.count(over=hr.tumbling("5m")),
        "previous": hr.count(over=hr.tumbling("5m", previous=True)),
        "hopping": hr.sum("cents", over=hr.hopping("10m", every="5m")),
        "session": hr.count(over=hr.session(gap="3m", max_length="30m")),
        "session_sum": hr.sum("cents", over=hr.session(gap="90s", max_length="30m")),
        "lifetime": hr.count(over=hr.lifetime()),
        "today": hr.count(over=hr.calendar("day", timezone="Asia/Kolkata")),
        "yesterday": hr.count(over=hr.calendar("day", timezone="Asia/Kolkata", previous=True)),
        "this_month": hr.count(over=hr.calendar("month", timezone="America/New_York")),
    },
)

every_aggregate: View = hr.view(
    "every_aggregate",
    payments,
    by="card",
    features={
        "count": hr.count(over="1h"),
        "amounts": hr.count("amount", over="1h"),
        "large": hr.count(over="1h", where="amount > 50"),
        "sum": hr.sum("amount", over="1h"),
        "mean": hr.mean("amount", over="1h"),
        "min": hr.min("cents", over="1h"),
        "max": hr.max("country", over="1h"),
        "variance": hr.variance("amount", over="1h"),
        "stddev": hr.stddev("amount", over="1h"),
        "first": hr.first("country", over="1h"),
        "last": hr.last("amount", over="1h"),
        "last_n": hr.last_n("country", n=3, over="1h"),
        "distinct": hr.count_distinct("country", over="1h"),
        "median": hr.quantile("amount", q=0.5, over="1h"),
        "top_k": hr.top_k("country", k=2, over="1h"),
        "decayed": hr.decayed_sum("amount", half_life="10m", over="1h"),
        "since_last": hr.time_since_last(over="1h"),
        "since_first": hr.time_since_first(over="1h"),
        "ratio": hr.ratio(hr.count(over="1h", where="amount > 50"), hr.count(over="1h")),
    },
)


@dataclass(frozen=True)
class Spec:
    """One record before it has an offset."""

    id: int
    card: str
    happened: int
    delay: int
    partition: int
    amount: float | None
    cents: int | None
    country: str | None
    poison: bool


_steps = [0, 1, SECOND, 30 * SECOND, MINUTE, 90 * SECOND, 90 * SECOND + 1, 3 * MINUTE, 3 * MINUTE + 1, 5 * MINUTE]
_moments = st.one_of(
    st.sampled_from([step + near for step in (*_steps, 10 * MINUTE, HOUR, DAY) for near in (-1, 0, 1)]),
    st.integers(0, 30 * MINUTE),
)
_delays = st.one_of(
    st.sampled_from([-SKEW - 1, -SKEW, -1, 0, 1, SECOND, LATENESS - 1, LATENESS, LATENESS + 1, HOUR]),
    st.integers(-SKEW, LATENESS),
)

specs = st.builds(
    Spec,
    id=st.integers(0, 12),
    card=st.sampled_from(["a", "b", "", "ключ"]),
    happened=_moments,
    delay=_delays,
    partition=st.integers(0, 2),
    amount=st.none() | st.floats(-100, 100).map(lambda x: x + 0.0),
    cents=st.none() | st.integers(-20, 20) | st.just(13),
    country=st.none() | st.sampled_from(["DE", "FR", "日本"]),
    poison=st.sampled_from([False] * 9 + [True]),
)


def records_of(chosen: Sequence[Spec]) -> list[Record]:
    """Records as a log would hold them: offsets follow arrival within a partition."""
    made = sorted((_record(spec) for spec in chosen), key=lambda each: (each.partition, each.arrived_at))
    heads: dict[int, int] = {}
    placed = []
    for each in made:
        offset = heads.get(each.partition, 0)
        heads[each.partition] = offset + 1
        placed.append(replace(each, offset=offset))
    return placed


def _record(spec: Spec) -> Record:
    happened = BASE + spec.happened
    arrived = happened + spec.delay
    if spec.poison:
        return poison(payments, arrived_at=arrived, partition=spec.partition)
    return record(
        payments,
        id=f"e{spec.id}",
        card=spec.card,
        amount=spec.amount,
        cents=spec.cents,
        country=spec.country,
        at=happened,
        arrived_at=arrived,
        partition=spec.partition,
    )


streams = st.lists(specs, max_size=40).map(records_of)
times = _moments.map(lambda moment: BASE + moment) | st.integers(BASE - MINUTE, BASE + 2 * HOUR)


def seeded(seed: int, cases: int, size: int) -> list[Record]:
    """Many small streams in one, told apart by the card: for engines that are slow to start and quick to run.

    Copies of an event say the same thing here. Which of two contradicting copies counts is decided by arrival, and an
    engine that reads partitions side by side may meet them in another order.
    """
    chance = random.Random(seed)
    chosen: list[Spec] = []
    for case in range(cases):
        made: list[Spec] = []
        for number in range(chance.randrange(size)):
            if made and chance.random() < 0.25:
                again = chance.choice(made)
                made.append(dataclasses.replace(again, delay=_seeded_delay(chance), partition=chance.randrange(3)))
                continue
            made.append(_seeded_spec(chance, case * 1_000 + number, f"{case}-{chance.choice(['a', 'ключ', ''])}"))
        chosen += made
    return records_of(chosen)


def _seeded_delay(chance: random.Random) -> int:
    edges = [-SKEW - 1, -SKEW, 0, 1, LATENESS, LATENESS + 1, HOUR]
    return chance.choice(edges) if chance.random() < 0.4 else chance.randrange(-SKEW, LATENESS)


def _seeded_spec(chance: random.Random, number: int, card: str) -> Spec:
    edge = chance.choice([0, SECOND, MINUTE, 90 * SECOND, 3 * MINUTE, 5 * MINUTE, 10 * MINUTE, HOUR])
    happened = edge + chance.choice([-1, 0, 1]) if chance.random() < 0.5 else chance.randrange(30 * MINUTE)
    return Spec(
        id=number,
        card=card,
        happened=happened,
        delay=_seeded_delay(chance),
        partition=chance.randrange(3),
        amount=chance.choice([None, chance.uniform(-100, 100), 0.0, 1e100, 60.0]),
        cents=chance.choice([None, 13, chance.randrange(-20, 20), 2**62, -(2**63)]),
        country=chance.choice([None, "DE", "FR", "日本"]),
        poison=chance.random() < 0.05,
    )
