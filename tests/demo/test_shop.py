"""The demo's past in files: the same payments at whatever time it is, and no label before its time."""

from __future__ import annotations

import json

from headrace.clock import HOUR, MINUTE, SECOND, micros
from headrace_demo.shop import HISTORY, LABELS, PAUSE, START, live_of, write_past
from headrace_demo.world.stream import World

NOW = micros("2026-11-17T03:21:00.123456Z")
WORLD = World(seed=3, start=START, cards=300, days=6, payments=1_500)


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_past_ends_now_and_labels_of_the_future_are_not_in_it(tmp_path):
    past = write_past(tmp_path, WORLD, NOW)
    payments, labels = lines(tmp_path / HISTORY), lines(tmp_path / LABELS)
    assert (past.payments, past.labels) == (len(payments), len(labels))
    assert NOW - HOUR < max(micros(each["arrived_at"]) for each in payments) < NOW
    assert max(micros(each["at"]) for each in labels) <= NOW
    # Some are not known yet.
    assert 0 < len(labels) < len({each["id"] for each in payments})


def test_at_another_time_the_same_payments_happen(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = write_past(tmp_path / "a", WORLD, NOW), write_past(tmp_path / "b", WORLD, NOW + 7 * HOUR)
    for first, second in zip(lines(tmp_path / "a" / HISTORY), lines(tmp_path / "b" / HISTORY), strict=True):
        assert micros(second["at"]) - micros(first["at"]) == 7 * HOUR
        assert {**first, "at": 0, "arrived_at": 0} == {**second, "at": 0, "arrived_at": 0}
    now, later = (live_of(past, NOW + 9 * HOUR, 10, 5) for past in (one, other))
    assert now == later


def test_live_begins_when_it_is_told_to(tmp_path):
    past = write_past(tmp_path, WORLD, NOW)
    start = NOW + 3 * MINUTE
    sent = live_of(past, start, 10, 5)
    assert len(sent) >= 50
    assert all(start <= each.sent_at < start + 10 * SECOND for each in sent)
    ids = {each["id"] for each in lines(tmp_path / HISTORY)}
    assert not any(each.event["id"] in ids for each in sent)
    assert past.world.start + PAUSE > past.world.start
