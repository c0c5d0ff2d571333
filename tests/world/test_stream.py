from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from headrace.clock import DAY, HOUR, MINUTE, SECOND, micros, parse_timestamp
from headrace.errors import DataError
from headrace_demo.world.stream import KINDS, Sent, World, history, live
from headrace_demo.world.visits import CHANNELS, STORIES

START = micros("2026-03-04T10:00:00Z")
WORLD = World(seed=3, start=START, cards=9_000, days=4, payments=40_000)
FIELDS = ["id", "card", "merchant", "category", "amount", "country", "lat", "lon", "channel", "at"]


@pytest.fixture(scope="module")
def past():
    return list(history(WORLD))


@pytest.fixture(scope="module")
def now():
    return list(live(WORLD, START, seconds=60, per_second=60))


def digest(sent, count: int) -> str:
    made = hashlib.sha256()
    for each in islice(sent, count):
        made.update(b"%d %b %b\n" % (each.sent_at, each.key, each.value))
    return made.hexdigest()[:16]


def test_the_same_world_is_the_same_bytes_on_every_machine():
    assert digest(history(WORLD), 5_000) == "0f56e8d53be285bc"
    assert digest(live(WORLD, START, seconds=60, per_second=60), 2_000) == "152c49fe5a2a40e3"


def test_another_seed_is_another_world():
    other = World(seed=4, start=START, cards=9_000, days=4, payments=40_000)
    assert digest(live(other, START, per_second=40), 100) != digest(live(WORLD, START, per_second=40), 100)


def test_records_come_in_the_order_of_arrival_and_within_their_span(past, now):
    for sent, begin, end in ((past, START - 4 * DAY, START), (now, START, START + MINUTE)):
        arrivals = [each.sent_at for each in sent]
        assert arrivals == sorted(arrivals)
        assert begin <= arrivals[0] <= arrivals[-1] < end


def test_live_traffic_can_begin_some_minutes_after_history():
    later = [each.sent_at for each in live(WORLD, START + 5 * MINUTE, seconds=10, per_second=40)]
    assert START + 5 * MINUTE <= min(later) <= max(later) < START + 5 * MINUTE + 10 * SECOND


def test_there_are_as_many_payments_as_asked_for_besides_copies(past, now):
    assert sum(each.kind != "duplicate" for each in past) == pytest.approx(40_000, rel=0.03)
    assert sum(each.kind != "duplicate" for each in now) == pytest.approx(3_600, rel=0.03)


def test_every_kind_of_record_has_its_share(past):
    share = {kind: count / len(past) for kind, count in Counter(each.kind for each in past).items()}
    assert set(share) == set(KINDS)
    assert 0.003 < share["late"] < 0.02
    assert 0.007 < share["duplicate"] < 0.013
    assert 0.002 < share["broken"] < 0.004
    assert 0.001 < share["mistyped"] < 0.003
    assert 0.0004 < share["future"] < 0.002


def test_fraud_has_the_share_that_was_asked_for(past, now):
    for sent in (past, now):
        assert sum(each.is_fraud for each in sent) / len(sent) == pytest.approx(0.015, rel=0.25)
    none = World(seed=3, start=START, cards=9_000, days=4, payments=2_000, fraud=0)
    assert not any(each.is_fraud for each in history(none))


def test_every_story_is_told_in_history_and_live(past, now):
    for sent in (past, now):
        assert {each.story for each in sent} == set(STORIES) - {"patient"}
        assert {each.story for each in sent if each.is_fraud} == {"velocity", "testing", "travel"}


def test_in_a_world_that_turns_thieves_are_patient_from_then_on_and_nothing_else_changes():
    turned = START - 2 * DAY
    usual = World(seed=3, start=START, cards=3_000, days=6, payments=12_000)
    before, after = list[Sent](), list[Sent]()
    for each in history(replace(usual, turned=turned)):
        (before if each.sent_at < turned else after).append(each)
    assert "patient" not in {each.story for each in before}
    assert {each.story for each in after if each.is_fraud and each.kind == "payment"} == {"patient"}
    assert {each.story for each in after if not each.is_fraud} == {"ordinary", "spree", "bills"}
    assert sum(each.is_fraud for each in after) / len(after) == pytest.approx(0.015, rel=0.25)
    assert list(history(replace(usual, turned=START))) == list(history(usual))


def test_a_readable_payment_has_all_its_fields(past):
    for each in past[:3_000]:
        if each.kind in ("payment", "late", "duplicate"):
            row = json.loads(each.value)
            assert list(row) == FIELDS
            assert row == each.event
            assert each.key == row["card"].encode()
            assert row["amount"] > 0
            assert row["channel"] in CHANNELS
            assert parse_timestamp(row["at"]) < each.sent_at


def test_ids_are_never_used_again_but_for_copies(past, now):
    ids = [each.event["id"] for each in past + now if each.kind != "duplicate"]
    assert len(ids) == len(set(ids))


def test_a_copy_is_the_same_bytes_some_seconds_later(past):
    first = {each.event["id"]: each for each in past if each.kind != "duplicate"}
    copies = [each for each in past if each.kind == "duplicate"]
    assert copies
    for copy in copies:
        original = first[copy.event["id"]]
        assert copy.value == original.value
        assert SECOND <= copy.sent_at - original.sent_at <= 20 * SECOND


def test_late_payments_are_from_phones_and_minutes_to_an_hour_late(past):
    late = [each for each in past if each.kind == "late"]
    assert {each.event["channel"] for each in late} == {"mobile"}
    assert all(3 * MINUTE <= each.sent_at - micros(each.event["at"]) <= HOUR for each in late)


def test_poison_cannot_be_read_or_is_ahead_of_its_time(past):
    for each in past:
        if each.kind == "broken":
            with pytest.raises(json.JSONDecodeError):
                json.loads(each.value)
        elif each.kind == "mistyped":
            row = json.loads(each.value)
            assert row["amount"] == "a lot" or parse_timestamp(row["at"]) is None
        elif each.kind == "future":
            assert micros(each.event["at"]) - each.sent_at >= 5 * MINUTE


def test_live_traffic_is_not_faster_for_a_card_than_history(now):
    ordinary = Counter(each.event["card"] for each in now if each.story == "ordinary" and each.kind == "payment")
    assert set(ordinary.values()) == {1}


def test_live_nobody_is_in_two_stories_of_their_own_at_once(now):
    stories: dict[str, set[str]] = {}
    for each in now:
        if not each.is_fraud:
            stories.setdefault(each.event["card"], set()).add(each.story)
    robbed = {each.event["card"] for each in now if each.is_fraud}
    assert all(len(told) == 1 for told in stories.values())
    assert not robbed & set(stories)


def test_more_payments_than_people_can_make_are_refused():
    with pytest.raises(DataError, match="100 cards cannot make so many payments") as caught:
        list(live(World(seed=3, start=START, cards=100, days=1, payments=50), START, per_second=200))
    assert caught.value.code == "bad-argument"


@pytest.mark.parametrize("wrong", [{"cards": 0}, {"days": 0}, {"payments": -1}, {"fraud": 0.5}, {"fraud": -0.1}])
def test_a_world_that_cannot_be_is_refused(wrong):
    with pytest.raises(DataError) as caught:
        World(seed=1, start=START, **wrong)
    assert caught.value.code == "bad-argument"


def test_live_traffic_of_no_time_is_refused():
    with pytest.raises(DataError, match="longer than nothing"):
        next(live(WORLD, START, seconds=0))
