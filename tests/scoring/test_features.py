"""What an event's model sees is the reference at its arrival, itself included, however far the tiles are behind."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import MachineError
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.read.reader import Reader
from headrace.scoring.admission import Admit
from headrace.scoring.features import EventFeatures
from headrace.serve.dimensions import Dimensions
from headrace.store import MemoryStore
from headrace.tiles.changelog import HandOver, ProgressRow
from tests.scoring.stored import stored
from tests.streams import every_aggregate, every_window, payments, streams

scored = hr.model("scored", hr.feature_set("all_of_it", [every_window, every_aggregate]), stream=payments)
plan = build([scored])
(tile_set,) = plan.tile_sets


def features_over(store):
    return EventFeatures(scored, plan, Reader(plan, store), Dimensions())


@given(records=streams, seed=st.integers(0, 999))
def test_every_event_sees_what_the_reference_knows_at_its_place_itself_included(records, seed):
    chance, outcome = random.Random(seed), ReferenceResult(plan, records)
    counted = [each for each in outcome.judged["payments"] if each.contributes]
    for number, each in enumerate(counted):
        before = chance.choice(counted[: number + 1])
        said: dict[int, int] | None = {} if chance.random() < 0.5 else None
        features = features_over(stored(outcome, tile_set, before.place, each.place, said))
        for earlier in counted[: number + 1]:
            if earlier.lane == "on_time":
                features.add(earlier.event)
        known = features.of(each.event, late=each.lane == "late")
        if said is None:
            # Nobody has said which run is read: only the tail is there.
            continue
        arrived, partition, offset = each.place
        moment = (arrived, partition, offset + 1)
        for view in (every_window, every_aggregate):
            key = (each.event.row["card"],)
            assert differences(outcome, view, key, moment, known.answers[view.name].values) == []


@given(records=streams)
def test_verdicts_one_by_one_are_those_of_the_reference(records):
    wanted = {(each.place, each.verdict) for each in ReferenceResult(plan, records).judged["payments"]}
    assert {(each.place, each.verdict) for each in Admit(payments).judge_all(records)} == wanted


def test_what_was_folded_is_folded_anew_when_the_row_of_its_tile_has_part_of_it(two_payments):
    from msgspec.structs import replace

    first = two_payments[0].record
    other = replace(first, offset=1, arrived_at=first.arrived_at + 1, value=first.value.replace(b"p1", b"p3"))
    outcome, (one, two) = ReferenceResult(plan, [first, other]), Admit(payments).judge_all([first, other])
    features = features_over(stored(outcome, tile_set, one.place, one.place, {}))
    for each in (one, two):
        features.add(each.event)
    assert features.of(two.event).answers["every_window"].values["lifetime"] == 2
    features._reader.store = stored(outcome, tile_set, two.place, two.place, {})
    known = features.of(two.event)
    assert (known.answers["every_window"].values["lifetime"], known.folded) == (2, 1)


def test_an_event_that_the_tiles_have_as_a_whole_is_let_go(two_payments):
    features = features_over(MemoryStore())
    for each in two_payments:
        features.add(each.event)
    features._reader.store.apply([ProgressRow(tile_set.fingerprint, "1", {0: 1}, 0)], "changelog", {0: 1})
    features.forget()
    (tail,) = features.tails.values()
    assert tail.events == 1


def test_what_happened_before_a_hand_over_is_not_folded_in_because_the_late_lane_has_it(two_payments):
    store = MemoryStore()
    first, second = (each.event for each in two_payments)
    point = second.event_time
    serving = HandOver(tile_set.fingerprint, "2", point, {0: 0}, {0: 0}, 1, "serving")
    store.apply([serving, ProgressRow(tile_set.fingerprint, "2", {0: 0}, 0)], "changelog", {0: 1})
    features = features_over(store)
    for event in (first, second):
        features.add(event)
    assert features.of(second).answers["every_window"].values["lifetime"] == 1


def test_tiles_that_change_at_every_read_are_an_error_and_not_a_number(two_payments):
    class Restless(MemoryStore):
        version = 0

        def tiles(self, *asked):
            self.version += 1
            row = stored(outcome, tile_set, (2**62,), (2**62,), {}).tiles(*asked)[0]
            return [type(row)(row.tile, row.lane, self.version, row.partials, row.positions)]

    outcome = ReferenceResult(plan, [each.record for each in two_payments])
    store = Restless()
    store.apply([ProgressRow(tile_set.fingerprint, "1", {}, 0)], "changelog", {0: 1})
    features = features_over(store)
    features.add(two_payments[0].event)
    with pytest.raises(MachineError, match="changed at every one"):
        features.of(two_payments[0].event)


def test_a_row_that_comes_during_a_read_is_noticed_and_its_event_counted_once(two_payments):
    first, second = two_payments
    outcome = ReferenceResult(plan, [first.record, second.record])
    store = MemoryStore()
    store.apply([ProgressRow(tile_set.fingerprint, "1", {}, 0)], "changelog", {0: 1})
    features = features_over(store)
    for each in two_payments:
        features.add(each.event)
    reader = features._reader
    read = reader.read_many

    def while_a_row_comes(*asked):
        if not store.tiles(tile_set.fingerprint, "1", (first.event.row["card"],)):
            whole = stored(outcome, tile_set, (2**62,), (2**62,), None)
            rows = whole.tiles(tile_set.fingerprint, "1", (first.event.row["card"],))
            from headrace.tiles.changelog import TileRow

            store.apply(
                [
                    TileRow(
                        tile_set.fingerprint,
                        "1",
                        (first.event.row["card"],),
                        row.tile,
                        row.lane,
                        row.version,
                        row.partials,
                        row.positions,
                    )
                    for row in rows
                ],
                "changelog",
                {0: 9},
            )
        return read(*asked)

    reader.read_many = while_a_row_comes
    assert features.of(second.event).answers["every_window"].values["lifetime"] == 2


@pytest.fixture
def two_payments():
    from headrace.testing import record

    told = {"card": "a", "amount": 1.0, "cents": 5, "country": "DE"}
    records = [
        record(payments, id="p1", at="2026-01-01T00:00:00Z", **told),
        record(payments, id="p2", at="2026-01-01T00:01:00Z", **told),
    ]
    from msgspec.structs import replace

    return Admit(payments).judge_all(replace(each, offset=number) for number, each in enumerate(records))


def test_an_event_that_the_tiles_have_already_is_not_kept(two_payments, tmp_path):
    from headrace.store import LmdbStore

    with LmdbStore(tmp_path) as store:
        store.apply([ProgressRow(tile_set.fingerprint, "1", {0: 1}, 0)], "changelog", {0: 1})
        features = features_over(store)
        with features.at_once():
            for each in two_payments:
                features.add(each.event)
        (tail,) = features.tails.values()
        assert tail.events == 1
