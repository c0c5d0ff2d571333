"""Hot keys: shares of what was read lately, from the most frequent keys of each batch."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.alarms.alarm import hot_key_alarm
from headrace.alarms.hot_keys import HOT, LEAST, STRETCH, HotKeys
from headrace.clock import SECOND

MANY = {f"k{number}": 1 for number in range(50)}


def fed(*batches, at=0):
    keys = HotKeys()
    for counts in batches:
        keys.feed(at, sum(counts.values()), counts)
    return keys


def test_keys_are_listed_by_their_share_of_the_events():
    keys = fed({"a": 50, "b": 30, "c": 20}, {"b": 100})
    assert [(one.key, one.share) for one in keys.top(0)] == [("b", 0.65), ("a", 0.25), ("c", 0.1)]
    assert keys.events(0) == 200


def test_events_of_keys_that_are_not_told_of_count_as_events():
    keys = HotKeys()
    keys.feed(0, 1_000, {"a": 250})
    assert keys.top(0)[0].share == 0.25


def test_of_few_events_nothing_is_said():
    assert fed({"a": LEAST - 1}).top(0) == []
    assert fed({"a": LEAST}).top(0) != []


def test_what_was_hot_is_forgotten_after_two_stretches_of_time():
    keys = fed({"a": 500, **MANY})
    assert keys.top(STRETCH)[0].key == "a"
    keys.feed(STRETCH, 1_000, {"b": 1_000})
    assert [one.key for one in keys.top(STRETCH)[:2]] == ["b", "a"]
    assert [one.key for one in keys.top(2 * STRETCH)] == ["b"]
    assert keys.top(10 * STRETCH) == []
    assert keys.events(10 * STRETCH) == 0


def test_a_key_is_hot_from_a_fifth_of_the_events_and_since_when_it_was_seen():
    keys = fed({**MANY, "a": 10})
    keys.feed(0, 60, {**MANY, "a": 10})
    assert keys.hot(0) == {}
    keys.feed(5 * SECOND, 50, {"a": 50})
    ((found, since),) = keys.hot(6 * SECOND).items()
    assert (found.key, since) == ("a", 6 * SECOND)
    assert found.share == pytest.approx(70 / 170)
    assert list(keys.hot(9 * SECOND).values()) == [6 * SECOND]


def test_a_key_at_the_limit_does_not_flap():
    keys = fed({"a": int(HOT * 1_000), **{f"k{number}": 16 for number in range(50)}})
    assert len(keys.hot(0)) == 1
    keys.feed(0, 100, MANY)
    assert 0.8 * HOT < keys.top(0)[0].share < HOT
    assert len(keys.hot(0)) == 1
    assert fed({"a": int(HOT * 1_000), **{f"k{number}": 16 for number in range(50)}}, MANY, MANY).hot(0) == {}


def test_where_there_are_few_keys_none_of_them_is_hot():
    assert fed({"DE": 600, "FR": 300, "PL": 100}).hot(0) == {}


@given(st.lists(st.dictionaries(st.sampled_from([f"k{n}" for n in range(2_000)]), st.integers(1, 50)), max_size=30))
def test_shares_are_right_within_the_error_that_is_declared(batches):
    keys = HotKeys()
    true: Counter[str] = Counter()
    for counts in batches:
        true.update(counts)
        keys.feed(0, sum(counts.values()), dict(Counter(counts).most_common(32)))
    events = true.total()
    for key, share in keys.top(0, most=1_000_000):
        assert -0.031 <= share - true[key] / events <= 0.005


def test_memory_is_bounded_however_many_keys_there_are():
    keys = HotKeys()
    for batch in range(500):
        keys.feed(0, 1_000, {"hot": 300, **{f"{batch}-{number}": 1 for number in range(31)}})
    assert len(keys.top(0, most=1_000_000)) <= 768
    assert keys.top(0)[0].share == pytest.approx(0.3, abs=0.005)


def test_an_alarm_is_told_with_a_moment_and_not_a_number():
    told = hot_key_alarm("payments", "payments.by_card", "card=42", 0.5, 1_767_225_600_000_000).status()
    assert told.since == "2026-01-01T00:00:00Z"
