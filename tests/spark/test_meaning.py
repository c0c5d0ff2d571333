"""What follows from the rules: each statement of the design, held against generated streams."""

from __future__ import annotations

import dataclasses
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from headrace.clock import DAY, MINUTE, SECOND
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult, contributing
from headrace.meaning.value import value
from headrace.meaning.verdict import judge
from headrace.plan.build import build
from headrace.testing import record
from tests.streams import BASE, LATENESS, SKEW, every_aggregate, every_window, payments, streams, times

plan = build([every_window, every_aggregate])
(tile_set,) = plan.tile_sets
END = (BASE + 400 * DAY,)


def tiles_of(outcome, key, before):
    tiles = outcome.tiles(tile_set, before)
    return [(start, columns) for (held, start, _), columns in tiles.items() if held == key]


@given(records=streams, t=times)
def test_merging_tiles_gives_the_value_of_the_single_events_for_every_window(records, t):
    outcome = ReferenceResult(plan, records)
    for key in outcome.keys(every_window):
        direct = outcome.values(every_window, key, (t,))
        held = tiles_of(outcome, key, (t,))
        merged = {planned.feature.name: value(planned, held, t) for planned in plan.view("every_window")}
        assert merged == direct


@given(records=streams, t=times)
def test_merging_tiles_gives_the_value_of_the_single_events_for_every_aggregate(records, t):
    outcome = ReferenceResult(plan, records)
    for key in outcome.keys(every_aggregate):
        held = tiles_of(outcome, key, (t,))
        found = {planned.feature.name: value(planned, held, t) for planned in plan.view("every_aggregate")}
        assert differences(outcome, every_aggregate, key, (t,), found) == []


pauses = st.lists(
    st.sampled_from([0, 1, MINUTE, 90 * SECOND - 1, 90 * SECOND, 90 * SECOND + 1]), min_size=1, max_size=12
)


@given(pauses=pauses, wait=st.sampled_from([1, MINUTE, 90 * SECOND, 90 * SECOND + 1]), shift=st.integers(0, 5 * MINUTE))
def test_a_session_from_tiles_breaks_exactly_where_a_pause_is_longer_than_the_gap(pauses, wait, shift):
    moments = [BASE + shift + sum(pauses[: at + 1]) for at in range(len(pauses))]
    records = [record(payments, id=str(at), card="a", cents=1, at=moment) for at, moment in enumerate(moments)]
    outcome, t = (
        ReferenceResult(plan, [replace(each, offset=at) for at, each in enumerate(records)]),
        moments[-1] + wait,
    )
    longer = [at for at, pause in enumerate(pauses) if at and pause > 90 * SECOND]
    expected = 0 if wait > 90 * SECOND else len(pauses) - (longer[-1] if longer else 0)
    (planned,) = (each for each in plan.view("every_window") if each.feature.name == "session_sum")
    assert value(planned, tiles_of(outcome, ("a",), (t,)), t) == expected
    assert outcome.values(every_window, ("a",), (t,))["session_sum"] == expected


@given(records=streams, t=times, finer=st.sampled_from([2, 5, 10, 64]))
def test_the_stored_grain_never_changes_a_value(records, t, finer):
    fine_set = dataclasses.replace(tile_set, grain=tile_set.grain // finer)
    outcome = ReferenceResult(plan, records)
    tiles = outcome.tiles(fine_set, (t,))
    for key in outcome.keys(every_window):
        held = [(start, columns) for (owner, start, _), columns in tiles.items() if owner == key]
        for planned in plan.view("every_window"):
            fine = dataclasses.replace(planned, tile_set=fine_set)
            assert value(fine, held, t) == outcome.values(every_window, key, (t,))[planned.feature.name]


@given(records=streams)
def test_a_tile_is_closed_once_its_end_and_the_allowed_lateness_have_passed(records):
    outcome = ReferenceResult(plan, records)
    whole = outcome.tiles(tile_set)
    for place, columns in whole.items():
        _, start, lane = place
        if lane == "on_time":
            closed = (start + tile_set.grain + LATENESS,)
            count = next(name for name in columns if name.startswith("span_"))
            assert outcome.tiles(tile_set, closed)[place][count] == columns[count]


@given(records=streams)
def test_the_lanes_hold_disjoint_events_and_together_all_that_count(records):
    outcome = ReferenceResult(plan, records)
    lanes = contributing("update", outcome.judged["payments"])
    identities = [(event.event_id, event.event_time) for _, event in lanes]
    assert len(set(identities)) == len(identities)
    on_time = {identity for (lane, _), identity in zip(lanes, identities, strict=True) if lane == "on_time"}
    readable = {
        (judged.event.event_id, judged.event.event_time)
        for judged in outcome.judged["payments"]
        if judged.verdict in ("admitted", "late", "duplicate")
    }
    assert set(identities) == readable
    assert on_time <= readable


@given(records=streams)
def test_every_record_gets_one_verdict_and_a_duplicate_names_its_first_copy(records):
    judged = judge(payments, records)
    assert sorted(each.record.offset for each in judged) == sorted(each.offset for each in records)
    by_place = {each.place: each for each in judged}
    for each in judged:
        if each.verdict == "duplicate":
            first = by_place[each.first or (0, 0, 0)]
            assert first.verdict == "admitted"
            assert (first.event.event_id, first.event.event_time) == (each.event.event_id, each.event.event_time)
            assert first.place < each.place


@given(records=streams, cut=times)
def test_verdicts_depend_only_on_what_arrived_before_so_late_events_can_be_published_behind_a_cut(records, cut):
    whole = [(each.place, each.verdict, each.first) for each in judge(payments, records) if each.place < (cut,)]
    behind = judge(payments, [each for each in records if each.arrived_at < cut])
    assert [(each.place, each.verdict, each.first) for each in behind] == whole


def interleaved(records, order, spread):
    """Records as a reader meets them: partition by partition, never more than `spread` behind the unread ones."""
    queues = {p: sorted((r for r in records if r.partition == p), key=lambda r: r.offset) for p in range(3)}
    for choice in [*order, *range(3 * len(records))]:
        heads = {p: queue[0].arrived_at for p, queue in queues.items() if queue}
        if not heads:
            return
        allowed = [p for p, arrived in heads.items() if arrived <= min(heads.values()) + spread]
        yield queues[allowed[choice % len(allowed)]].pop(0)


def live_deduplication(records, horizon):
    """What a stream that forgets does: an identity is dropped once the newest arrival is past it by the horizon."""
    held: dict[tuple[str, int], int] = {}
    newest = 0
    for judged in records:
        event = judged.event
        newest = max(newest, event.arrived_at)
        held = {identity: seen for identity, seen in held.items() if newest - seen <= horizon}
        identity = (event.event_id, event.event_time)
        if identity not in held:
            held[identity] = event.arrived_at
            yield identity


def on_time_copies(records):
    """Each record judged alone: what a stream sees before it removes duplicates."""
    return [one for each in records for one in judge(payments, [each]) if one.verdict == "admitted"]


@given(records=streams, order=st.lists(st.integers(0, 2), max_size=60), spread=st.sampled_from([0, SECOND, 5 * MINUTE]))
def test_deduplication_that_forgets_after_lateness_skew_and_spread_counts_every_event_once(records, order, spread):
    read = on_time_copies(interleaved(records, order, spread))
    counted = Counter(live_deduplication(read, LATENESS + SKEW + spread))
    admitted = {(e.event_id, e.event_time) for lane, e in contributing("drop", judge(payments, records))}
    assert counted == Counter(dict.fromkeys(admitted, 1))


def test_a_shorter_horizon_would_count_an_event_twice():
    def copy(arrived, partition):
        return record(payments, id="x", card="a", at=BASE, arrived_at=arrived, partition=partition)

    early, last = copy(BASE - SKEW, 0), copy(BASE + LATENESS, 1)
    ahead = record(payments, id="y", card="a", at=BASE + LATENESS + 9, arrived_at=BASE + LATENESS + 9, partition=0)
    read = on_time_copies([early, ahead, last])
    enough = LATENESS + SKEW + 9
    assert Counter(live_deduplication(read, enough))[("x", BASE)] == 1
    assert Counter(live_deduplication(read, enough - 1))[("x", BASE)] == 2


@given(records=streams, tiles_ahead=st.integers(-10, 40), guard=st.sampled_from([0, 1, MINUTE]))
def test_a_batch_before_and_a_stream_from_the_hand_over_make_every_tile_once(records, tiles_ahead, guard):
    handover = BASE + tiles_ahead * tile_set.grain
    cut = handover + LATENESS + guard
    stream_from = handover - SKEW
    warmed_from = stream_from - LATENESS - SKEW

    def tiles(judged, keep):
        counts: Counter[tuple[str, int]] = Counter()
        for lane, event in contributing("drop", judged):
            start = event.event_time - event.event_time % tile_set.grain
            if lane == "on_time" and keep(event, start):
                counts[(event.row["card"], start)] += 1
        return counts

    batch = tiles(judge(payments, [r for r in records if r.arrived_at < cut]), lambda event, start: start < handover)
    live = tiles(
        judge(payments, [r for r in records if r.arrived_at >= warmed_from]),
        lambda event, start: start >= handover and event.arrived_at >= stream_from,
    )
    whole = tiles(judge(payments, records), lambda event, start: True)
    assert batch + live == whole
    assert not batch.keys() & live.keys()
