"""Generated cases: disorder, lateness, copies, poison, future and replayed records, with values from the edges.

Copies of an event say the same thing here. Which of two contradicting copies counts is decided by arrival, and an
engine that reads partitions side by side may meet them in another order (`test_contradictions.py`).
"""

from __future__ import annotations

from decimal import Decimal as Exact
from typing import Any

from hypothesis import strategies as st

from headrace.clock import DAY, HOUR, MINUTE, SECOND
from tests.budget import run_seed
from tests.conformance.cases import Case, Delivery, Sent
from tests.conformance.definitions import GAP, LATENESS, SKEW
from tests.draws import draw_cases

_steps = (0, 1, SECOND, MINUTE, GAP, GAP + 1, 5 * MINUTE, 10 * MINUTE, HOUR, DAY)
_moments = st.sampled_from([step + near for step in _steps for near in (-1, 0, 1)]) | st.integers(0, 30 * MINUTE)
_delays = st.one_of(
    st.sampled_from([-SKEW - 1, -SKEW, -1, 0, 1, SECOND, LATENESS - 1, LATENESS, LATENESS + 1, HOUR]),
    st.integers(-SKEW, LATENESS),
)
_again = st.sampled_from([None] * 8 + [0, LATENESS, LATENESS + 1, HOUR])
_deliveries = st.builds(Delivery, delay=_delays, partition=st.integers(0, 2), again=_again)
_texts = st.sampled_from(["", "DE", "FR", "日本", "🜁", "12", "1.5", "true", "2026-01-01T00:00:00Z", "it's"])

_fields: dict[str, st.SearchStrategy[Any]] = {
    "shop": st.sampled_from([0, 1, -3, 2**63 - 1]),
    "online": st.booleans(),
    "amount": st.none() | st.sampled_from([0.0, -0.0, 0.1, 1e9 + 0.5, -1e300]) | st.floats(-100, 100),
    "cents": st.none() | st.just(13) | st.integers(-20, 20) | st.sampled_from([2**63 - 1, -(2**63), 2**62]),
    "price": st.none() | st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: Exact(n).scaleb(-2)),
    "huge": st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Exact(f"{n}E-18")),
    "country": st.none() | _texts,
    "paid": st.none() | st.booleans(),
    "due": st.none() | st.integers(-(2**50), 2**51),
    "note": st.none() | _texts,
}

events: st.SearchStrategy[Sent] = st.builds(
    Sent,
    id=st.sampled_from("abcdef"),
    happened=_moments,
    card=st.sampled_from(["a", "b", "", "ключ"]),
    fields=st.fixed_dictionaries(_fields),
    deliveries=st.lists(_deliveries, min_size=1, max_size=3).map(tuple),
    raw=st.sampled_from([None] * 15 + [b"{not json"]),
)
streams = st.lists(events, min_size=1, max_size=16, unique_by=lambda sent: (sent.id, sent.happened)).map(tuple)


def generated(count: int) -> list[Case]:
    """So many different cases, which the seed of the run decides."""
    found: dict[str, Case] = {}

    def collect(sent: tuple[Sent, ...]) -> None:
        case = Case(f"generated-{len(found)}", sent)
        found.setdefault(repr(sent), case)

    draw_cases(streams, 2 * count, run_seed(), collect)
    largest = sorted(found.values(), key=lambda case: -len(case.sent))[:count]
    return sorted(largest, key=lambda case: int(case.name.rpartition("-")[2]))
