"""What honest people and thieves do, seen in the payments alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from headrace.clock import DAY, HOUR, MINUTE, SECOND, micros
from headrace_demo.world import places
from headrace_demo.world.people import awake, people
from headrace_demo.world.report import caught_at
from headrace_demo.world.stream import World, history, live
from tests.world.seen import Seen, kilometres, readable

START = micros("2026-03-04T10:00:00Z")
WORLD = World(seed=5, start=START, cards=9_000, days=4, payments=40_000)


@pytest.fixture(scope="module")
def past():
    return readable(history(WORLD))


@pytest.fixture(scope="module")
def now():
    return readable(live(WORLD, START, seconds=60, per_second=60))


def bursts(seen, story: str, field: str) -> list[list[Seen]]:
    """The payments of a story, by a field, cut where nothing happens for ten minutes."""
    by = defaultdict(list)
    for each in seen:
        if each.story == story:
            by[each.event[field]].append(each)
    found = []
    for several in by.values():
        found.append([several[0]])
        for before, each in pairwise(several):
            if each.at - before.at > 10 * MINUTE:
                found.append([])
            found[-1].append(each)
    return found


def test_a_velocity_attack_is_over_within_90_seconds_in_history_and_live(past, now):
    for seen in (past, now):
        attacks = bursts(seen, "velocity", "card")
        assert max(len(attack) for attack in attacks) >= 5
        assert all(attack[-1].at - attack[0].at <= 91 * SECOND for attack in attacks)
        assert all(len({each.event["merchant"] for each in attack}) <= 3 for attack in attacks)


def test_card_testing_tries_many_cards_at_one_shop_and_then_takes_more(past):
    tests = [burst for burst in bursts(past, "testing", "merchant") if len({e.event["card"] for e in burst}) >= 5]
    assert len(tests) >= 5
    assert all(each.event["channel"] == "online" for burst in tests for each in burst)
    tried = {each.event["card"] for burst in tests for each in burst}
    larger = [each for each in past if each.story == "testing" and each.event["amount"] > 20]
    assert larger
    assert sum(each.event["card"] in tried for each in larger) / len(larger) > 0.9


@pytest.mark.parametrize("when", ["past", "now"])
def test_impossible_travel_follows_an_honest_payment_of_the_hour_before(past, now, when):
    honest = defaultdict(list)
    for each in past + now:
        if not each.is_fraud:
            honest[each.event["card"]].append(each)
    thefts = [each for each in (past if when == "past" else now) if each.story == "travel"]
    followed = 0
    for theft in thefts:
        near = [each for each in honest[theft.event["card"]] if 0 < theft.at - each.at <= 62 * MINUTE]
        followed += any(kilometres(each.event, theft.event) > 100 for each in near)
    assert len(thefts) >= 5
    # The honest payment may be one that nobody could read, or have come late.
    assert followed / len(thefts) > 0.9


def test_honest_people_travel_go_on_sprees_and_are_billed_in_runs(past):
    honest = [each for each in past if not each.is_fraud]
    home: dict[str, Counter[str]] = {}
    for each in honest:
        home.setdefault(each.event["card"], Counter())[each.event["country"]] += 1
    abroad = sum(each.event["country"] != home[each.event["card"]].most_common(1)[0][0] for each in honest)
    assert 0.01 < abroad / len(honest) < 0.15
    assert any(len(burst) >= 5 and burst[-1].at - burst[0].at < 90 * SECOND for burst in bursts(past, "spree", "card"))
    assert any(len({each.event["card"] for each in burst}) >= 8 for burst in bursts(past, "bills", "merchant"))


def test_no_field_of_a_payment_tells_fraud_by_itself(past):
    stolen = [each.is_fraud for each in past]
    for field in ("amount", "lat", "lon"):
        values = np.array([each.event[field] for each in past])
        for direction in (1, -1):
            assert caught_at(direction * values, stolen, false_alarm_rate=0.01).recall < 0.1
    for field in ("country", "category", "channel"):
        total = Counter(each.event[field] for each in past)
        frauds = Counter(each.event[field] for each in past if each.is_fraud)
        assert max(frauds[value] / count for value, count in total.items() if count >= 200) < 0.2


def test_people_pay_by_day_where_they_live():
    made = people(5, 2_000, days=4)
    card = np.arange(2_000)
    local = START // DAY * DAY - places.HOURS[made.city] * HOUR
    assert awake(made, card, local + 13 * HOUR).mean() > 10 * awake(made, card, local + 3 * HOUR).mean()


def test_a_few_cards_are_used_much_more_than_most(past):
    used = sorted(Counter(each.event["card"] for each in past).values())
    assert used[-1] > 8 * used[len(used) // 2]


def test_spending_differs_from_card_to_card_by_more_than_tenfold():
    spend = np.sort(people(5, 2_000, days=4).spend)
    assert spend[-20] > 10 * spend[20]
