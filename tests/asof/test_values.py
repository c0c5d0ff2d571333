"""Past values equal the reference's: every window and aggregate, in both modes, whatever was late or in disorder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.asof import values
from headrace.clock import HOUR, MINUTE, SECOND
from headrace.define.view import View
from headrace.log.record import Record
from headrace.meaning.equality import differences
from headrace.meaning.event import Event
from headrace.meaning.exact import Mode
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.testing import record
from tests.asof.told import answered
from tests.budget import examples
from tests.streams import BASE, every_aggregate, every_window, payments, seeded, streams, times

MODES: tuple[Mode, ...] = ("as_known", "as_happened")
VIEWS = (every_window, every_aggregate)

kinds: View = hr.view(
    "kinds",
    hr.stream(
        "things",
        fields={
            "id": str,
            "shop": int,
            "open": bool,
            "price": hr.Decimal(10, 2) | None,
            "huge": hr.Decimal(38, 4) | None,
            "big": int | None,
            "ok": bool | None,
            "due": hr.Timestamp | None,
            "at": hr.Timestamp,
        },
        event_id="id",
        event_time="at",
        allowed_lateness="2m",
        max_clock_skew="30s",
    ),
    by=("shop", "open"),
    features={
        f"{name}_{field}": made
        for field in ("price", "huge", "big", "ok", "due")
        for name, made in {
            "count": hr.count(field, over="1h"),
            "min": hr.min(field, over="1h"),
            "max": hr.max(field, over="1h"),
            "first": hr.first(field, over="1h"),
            "last": hr.last(field, over="1h"),
            "last_n": hr.last_n(field, n=2, over="1h"),
            "distinct": hr.count_distinct(field, over="1h"),
            "since": hr.time_since_last(field, over="1h"),
            **(
                {
                    "sum": hr.sum(field, over="1h"),
                    "mean": hr.mean(field, over="1h"),
                    "variance": hr.variance(field, over="1h"),
                    "median": hr.quantile(field, q=0.5, over="1h"),
                    "decayed": hr.decayed_sum(field, half_life="10m", over="1h"),
                }
                if field in ("price", "huge", "big")
                else {}
            ),
            **({"top": hr.top_k(field, k=2, over="1h")} if field != "huge" else {}),
        }.items()
    }
    | {"ratio": hr.ratio(hr.sum("price", over="1h"), hr.sum("big", over="1h"))},
)


def wrong(outcome: ReferenceResult, view: View, moments: Sequence[tuple[int, ...]], mode: Mode) -> list[str]:
    """What differs from the reference, over all keys and one that has no events, at these moments."""
    keys = [*outcome.keys(view), ("nobody",) if len(view.by) == 1 else (0, True)]
    rows = [(key, moment[0], None) for key in keys for moment in moments]
    found = answered(outcome, view, rows, mode)
    return [
        difference
        for (key, t, _), given_values in zip(rows, found, strict=True)
        for difference in differences(outcome, view, key, (t,), given_values, mode)
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
@given(records=streams, moments=st.lists(times, min_size=1, max_size=8))
def test_values_are_the_references(view: View, mode: Mode, records: list[Record], moments: list[int]) -> None:
    outcome = ReferenceResult(build([view]), records)
    assert wrong(outcome, view, [(t,) for t in moments], mode) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_many_keys_and_moments_at_once_are_the_references(view: View, mode: Mode) -> None:
    outcome = ReferenceResult(build([view]), seeded(5, cases=12, size=60))
    moments = [(BASE + step * 97 * SECOND + step,) for step in range(0, 50, 3)]
    assert wrong(outcome, view, moments, mode) == []


def test_an_event_dated_ahead_within_the_clock_skew_is_zero_seconds_ago() -> None:
    given = [record(payments, id="p1", card="a", at=BASE + 20 * SECOND, arrived_at=BASE)]
    view = hr.view(
        "ahead",
        payments,
        by="card",
        features={"last": hr.time_since_last(over="1h"), "first": hr.time_since_first(over="1h")},
    )
    outcome, t = ReferenceResult(build([view]), given), BASE + 5 * SECOND
    assert answered(outcome, view, [(("a",), t, None)], "as_known") == [{"last": 0.0, "first": 0.0}]
    assert wrong(outcome, view, [(t,)], "as_known") == []


def test_the_parts_in_which_moments_are_worked_through_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_PAIRS", 3)
    outcome = ReferenceResult(build([every_aggregate]), seeded(6, cases=6, size=40))
    assert wrong(outcome, every_aggregate, [(BASE + step * MINUTE,) for step in range(0, 40, 4)], "as_known") == []


@given(data=st.data())
@examples(1 / 2)
def test_every_type_of_value_is_as_the_reference_has_it(data: st.DataObject) -> None:
    import decimal

    prices = st.none() | st.decimals(-(10**7), 10**7, places=2)
    huge = st.none() | st.integers(-(10**33), 10**33).map(lambda whole: decimal.Decimal(whole).scaleb(-4))
    big = st.none() | st.sampled_from([2**63 - 1, -(2**63), 0, 1, 2**53 + 1]) | st.integers(-9, 9)
    records = [
        record(
            kinds.stream,
            id=f"e{number}",
            shop=data.draw(st.sampled_from([1, 2])),
            open=data.draw(st.booleans()),
            price=data.draw(prices),
            huge=data.draw(huge),
            big=data.draw(big),
            ok=data.draw(st.none() | st.booleans()),
            due=data.draw(st.none() | st.integers(BASE, BASE + HOUR)),
            at=BASE + data.draw(st.integers(0, 60)) * MINUTE,
            arrived_at=BASE + 61 * MINUTE + number,
        )
        for number in range(data.draw(st.integers(0, 12)))
    ]
    # Everything was imported with an arrival of its own: what is late by it counts all the same.
    outcome = ReferenceResult(build([kinds]), records)
    for mode in MODES:
        assert wrong(outcome, kinds, [(BASE + 62 * MINUTE,), (BASE + 30 * MINUTE,)], mode) == []


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
@given(records=streams)
def test_a_rows_own_event_counts_with_all_that_stand_before_it_in_the_log(view: View, records: list[Record]) -> None:
    outcome = ReferenceResult(build([view]), records)
    rows = [(key, event.arrived_at, event) for key in outcome.keys(view) for event in outcome.events(view, key)]
    if not rows:
        return
    found = answered(outcome, view, rows, "as_known")
    for (key, _, event), given_values in zip(rows, found, strict=True):
        arrived, partition, offset = event.place
        assert differences(outcome, view, key, (arrived, partition, offset + 1), given_values) == []


def test_of_events_that_arrived_together_those_up_to_the_rows_own_place_count() -> None:
    at, places = BASE + HOUR, ((0, 0), (0, 1), (1, 0), (1, 1))
    made = [
        msgspec.structs.replace(
            record(
                payments, id=f"e{bit}", card="a", cents=1 << bit, at=at, arrived_at=at + SECOND, partition=partition
            ),
            offset=offset,
        )
        for bit, (partition, offset) in enumerate(places)
    ]
    outcome = ReferenceResult(build([every_window]), made)
    events = sorted(outcome.events(every_window, ("a",)), key=lambda event: event.place)
    found = answered(outcome, every_window, [(("a",), at + SECOND, event) for event in events], "as_known")
    assert [each["trailing_sum"] for each in found] == [1, 3, 7, 15]


def test_as_it_happened_a_rows_own_event_counts_and_no_other_of_its_time() -> None:
    at = BASE + HOUR
    made = [
        record(payments, id="own", card="a", cents=1, at=at, arrived_at=at + SECOND),
        record(payments, id="same", card="a", cents=2, at=at, arrived_at=at),
        record(payments, id="before", card="a", cents=4, at=at - SECOND, arrived_at=at + MINUTE),
    ]
    outcome = ReferenceResult(build([every_window]), made)
    (own,) = [event for event in outcome.events(every_window, ("a",)) if event.event_id == "own"]
    (found,) = answered(outcome, every_window, [(("a",), at, own)], "as_happened")
    assert found["trailing_sum"] == 5


def test_no_event_counts_before_it_arrived_as_known_nor_before_it_happened_as_happened() -> None:
    chance = np.random.default_rng(3)
    records = [
        record(
            payments,
            id=f"e{number}",
            card="a",
            cents=1,
            at=(happened := BASE + HOUR + int(chance.integers(0, 30 * MINUTE))),
            arrived_at=happened + int(chance.integers(-29 * SECOND, 10 * SECOND if number % 20 else 20 * MINUTE)),
            partition=number % 3,
        )
        for number in range(300)
    ]
    outcome = ReferenceResult(build([every_window]), records)
    events: list[Event] = outcome.events(every_window, ("a",))
    for event in events:
        for mode, moment in (("as_known", event.arrived_at), ("as_happened", event.event_time)):
            before, after = _counts(outcome, moment, mode), _counts(outcome, moment + 1, mode)
            since = [each for each in events if (each.arrived_at if mode == "as_known" else each.event_time) == moment]
            assert after - before == len(since)


def test_a_pause_of_the_gap_goes_on_with_a_session_and_a_longer_one_ends_it() -> None:
    gap, at = 3 * MINUTE, BASE + HOUR
    pauses = {"a": (gap, gap), "b": (gap, gap + 1), "c": (gap + 1, gap), "d": (0, gap)}
    made = [
        record(payments, id=f"{card}{number}", card=card, at=moment, arrived_at=moment)
        for card, (first, second) in pauses.items()
        for number, moment in enumerate((at, at + first, at + first + second))
    ]
    outcome = ReferenceResult(build([every_window]), made)
    ends = {card: at + first + second for card, (first, second) in pauses.items()}
    rows = [((card,), end + later, None) for card, end in ends.items() for later in (1, gap, gap + 1)]
    found = [each["session"] for each in answered(outcome, every_window, rows, "as_known")]
    assert found == [3, 3, 0, 1, 1, 0, 2, 2, 0, 3, 3, 0]


def test_a_session_goes_on_over_an_event_that_is_still_under_way() -> None:
    gap, at = 3 * MINUTE, BASE + HOUR
    made = [
        record(payments, id=f"{card}{pause}", card=card, at=at + pause, arrived_at=at + (HOUR if pause == 1 else pause))
        for card, last in (("a", gap), ("b", gap + 1))
        for pause in (0, 1, last)  # the second arrives an hour later
    ]
    outcome = ReferenceResult(build([every_window]), made)
    rows = [((card,), at + gap + 2, None) for card in "ab"]
    assert [each["session"] for each in answered(outcome, every_window, rows, "as_known")] == [2, 1]


def test_a_value_of_events_under_way_counts_as_distinct_once_where_it_is_seen_again() -> None:
    at = BASE + HOUR
    under_way = ("DE", "DE", "FR", "JP")
    seen = [("JP", 0), ("FR", 10), ("DE", 20), ("DE", 30), ("SE", 40)]
    made = [
        record(payments, id=f"late{place}", card="a", country=country, at=at + place, arrived_at=at + 90 * SECOND)
        for place, country in enumerate(under_way)
    ] + [
        record(
            payments,
            id=f"seen{later}",
            card="a",
            country=country,
            at=at + later * SECOND,
            arrived_at=at + later * SECOND,
        )
        for country, later in seen
    ]
    # Many that arrive at once, so that those above are the exception.
    made += [
        record(payments, id=f"other{place}", card="b", country="DE", at=at + place, arrived_at=at + place)
        for place in range(60)
    ]
    outcome = ReferenceResult(build([every_aggregate]), made)
    moments = [at + later * SECOND + 1 for later in (0, 10, 20, 30, 40, 89, 90)]
    found = answered(outcome, every_aggregate, [(("a",), t, None) for t in moments], "as_known")
    assert [each["distinct"] for each in found] == [1, 2, 3, 3, 4, 4, 4]
    assert [each["count"] for each in found] == [1, 2, 3, 4, 5, 5, 9]


def _counts(outcome: ReferenceResult, moment: int, mode: Any) -> int:
    (found,) = answered(outcome, every_window, [(("a",), moment, None)], mode)
    return int(found["lifetime"])
