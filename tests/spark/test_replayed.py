"""Records that were appended again later with their first arrival in a header: what they mean, here and in Spark."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import headrace as hr
from headrace.clock import HOUR, MINUTE, SECOND, show_time
from headrace.codec.json.rules import EARLIEST, LATEST
from headrace.define.stream import Arrival
from headrace.log.record import Record
from headrace.meaning.reference import contributing
from headrace.meaning.verdict import ARRIVED_AT, judge
from headrace.testing import duplicate, late, record
from tests.streams import BASE, LATENESS, payments, seeded, streams

DELAYS = [0, 1, SECOND, LATENESS, LATENESS + 1, HOUR]


def again(given: Record, after: int, arrived: bytes | None = None) -> Record:
    """The record appended again after a while, with its first arrival in the header."""
    header = (ARRIVED_AT, str(given.arrived_at).encode() if arrived is None else arrived)
    return replace(given, arrived_at=given.arrived_at + after, headers=(*given.headers, header), offset=-1)


def placed(records: list[Record]) -> list[Record]:
    """Offsets in the order of the appends, within each partition."""
    heads: Counter[int] = Counter()
    made = []
    for each in sorted(records, key=lambda one: one.arrived_at):
        made.append(replace(each, offset=heads[each.partition]))
        heads[each.partition] += 1
    return made


def pay(id: str = "p", at: int = BASE, **more: Any) -> Record:
    return record(payments, id=id, card="a", at=at, **more)


def only(records: list[Record]) -> Any:
    (judged,) = judge(payments, placed(records))
    return judged


def test_a_record_appended_again_is_judged_by_its_first_arrival():
    judged = only([again(pay(), HOUR)])
    assert (judged.verdict, judged.place[0]) == ("admitted", BASE)
    assert only([late(pay(), HOUR)]).verdict == "late"


@pytest.mark.parametrize(("after", "lane"), [(0, "on_time"), (LATENESS, "on_time"), (LATENESS + 1, "late")])
def test_what_was_appended_after_its_tile_was_closed_travels_in_the_late_lane(after, lane):
    judged = only([again(pay(), after)])
    assert (judged.verdict, judged.lane, judged.closed) == ("admitted", lane, lane == "late")


@pytest.mark.parametrize("policy", ["update", "side_output", "drop"])
def test_it_counts_under_every_late_policy_because_it_is_not_late(policy):
    judged = judge(payments, placed([again(pay(), HOUR)]))
    assert [lane for lane, _ in contributing(policy, judged)] == ["late"]


def test_a_copy_that_came_before_the_second_append_counts_in_its_place():
    first, second = judge(payments, placed([again(pay(), HOUR), duplicate(pay())]))
    assert (first.verdict, first.lane, second.verdict, second.lane) == ("duplicate", None, "admitted", "on_time")
    assert first.first == second.place


@pytest.mark.parametrize("text", [b"", b"soon", b"--1", b"1.5", b"\xff", b"9" * 5_000, str(LATEST + 1).encode()])
def test_an_arrival_that_cannot_be_read_makes_the_record_invalid(text):
    judged = only([again(pay(), 0, text)])
    assert (judged.verdict, judged.reason) == ("invalid", f"header {ARRIVED_AT} holds no arrival time")


def with_replays(records: list[Record], chosen: list[int]) -> list[Record]:
    """Some of the records twice, some only appended again, the others as they are."""
    made = []
    for number, each in enumerate(records):
        choice = chosen[number % len(chosen)] if chosen else 0
        if choice % 3 != 1:
            made.append(each)
        if choice % 3:
            made.append(again(each, DELAYS[choice % len(DELAYS)]))
    return placed(made)


@given(records=streams, chosen=st.lists(st.integers(0, 17), max_size=40))
def test_every_event_counts_once_and_an_on_time_copy_wins_over_one_in_the_late_lane(records, chosen):
    judged = judge(payments, with_replays(records, chosen))
    counted = [(event.event_id, event.event_time) for _, event in contributing("update", judged)]
    assert len(set(counted)) == len(counted)
    readable = [each for each in judged if each.verdict in ("admitted", "late", "duplicate")]
    assert {(each.event.event_id, each.event.event_time) for each in readable} == set(counted)
    on_time = {(e.event_id, e.event_time) for lane, e in contributing("drop", judged) if lane == "on_time"}
    could = {
        (each.event.event_id, each.event.event_time) for each in readable if not each.closed and each.verdict != "late"
    }
    assert on_time == could


@given(records=streams, chosen=st.lists(st.integers(0, 17), max_size=40), cut=st.integers(0, HOUR))
def test_verdicts_depend_only_on_what_was_appended_before(records, chosen, cut):
    given = with_replays(records, chosen)
    whole = {each.record: (each.verdict, each.first) for each in judge(payments, given)}
    before = [each for each in given if each.arrived_at < BASE + cut]
    assert {each.record: (each.verdict, each.first) for each in judge(payments, before)} == {
        each: whole[each] for each in before
    }


# Spark


def source(kind: str) -> hr.Stream:
    """The payments with another source of arrival."""
    return dataclasses.replace(payments, arrival=Arrival(*kind.split(":")))


TEXTS = [
    b"-1",
    str(EARLIEST).encode(),
    str(EARLIEST - 1).encode(),
    b"",
    b"soon",
    b"\xff\xfe",
    b"9" * 5_000,
    b"9" * 19,
    str(LATEST).encode(),
    str(LATEST + 1).encode(),
    b"0",
    b"007",
]
WRITTEN = [
    *TEXTS,
    show_time(BASE).encode(),
    b"0001-01-01T00:00:00+05:00",
    b"9999-12-31T23:59:59-05:00",
    b"0000-01-01T00:00:00Z",
    b"2026-02-30T00:00:00Z",
    b"2026-01-01T00:00:00",
]


def cases() -> list[Record]:
    """Seeded streams with replays, and headers of every sort."""
    chance = random.Random(5)
    given = seeded(seed=3, cases=25, size=40)
    made = [again(each, chance.choice(DELAYS)) if chance.random() < 0.3 else each for each in given]
    made += [again(each, chance.choice(DELAYS)) for each in given if chance.random() < 0.2]
    for number, text in enumerate(TEXTS):
        made.append(again(pay(f"x{number}", BASE + number), 0, text))
    for number, text in enumerate(WRITTEN):
        seen = replace(pay(f"y{number}", BASE + number), headers=(("seen", text),))
        made += [seen, again(seen, MINUTE), replace(seen, headers=(("seen", b"1"), ("seen", text)))]
    made += [replace(one, headers=(("seen", str(one.arrived_at).encode()), *one.headers)) for one in made[:200]]
    return placed(made)


def frame(spark: Any, records: list[Record]) -> Any:
    rows: list[Any] = [
        (r.topic, r.partition, r.offset, r.arrived_at, r.key, r.value, [*r.headers] if r.headers else None)
        for r in records
    ]
    made = spark.createDataFrame(
        rows,
        "topic STRING, partition INT, offset BIGINT, arrived BIGINT, key BINARY, value BINARY, "
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    )
    return made.selectExpr(
        "topic", "partition", "offset", "timestamp_micros(arrived) AS arrived_at", "key", "value", "headers"
    )


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["log", "header:seen", "field:at"])
def test_spark_and_the_reference_agree_on_arrival_verdict_lane_and_order(spark, kind):
    from headrace.spark import admission

    records, stream = cases(), source(kind)
    names = (
        admission.PARTITION,
        admission.OFFSET,
        admission.ARRIVED,
        admission.VERDICT,
        admission.CLOSED,
        admission.ORDER,
        admission.REASON,
    )
    rows = admission.judged(frame(spark, records), stream).select(*(f"`{name}`" for name in names)).collect()
    found = {(row[0], row[1]): tuple(row)[2:] for row in rows}
    assert len(found) == len(records)
    verdicts: Counter[str] = Counter()
    for each in records:
        (alone,) = judge(stream, [each])
        arrived, verdict, closed, order, reason = found[each.partition, each.offset]
        assert (arrived, verdict, closed, order) == (alone.place[0], alone.verdict, alone.closed, alone.order[0]), each
        if verdict != "malformed":
            assert reason == alone.reason, each
        verdicts[f"{verdict} {alone.lane}"] += 1
    expected = {"malformed None", "invalid None", "late late", "admitted on_time", "admitted late"}
    assert expected <= set(verdicts) | ({"malformed None", "late late"} if kind == "field:at" else set()), verdicts
