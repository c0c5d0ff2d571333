"""Everything that can go wrong between the log and a reader is found and given its name; what is healthy is not."""

from __future__ import annotations

import msgspec
import pytest

from headrace.clock import HOUR, MINUTE
from headrace.plan.build import build
from headrace.run.reference import Outcome
from tests.audit.world import World, cards_view, history, plan, tile_set
from tests.serve.shape import rows_of


@pytest.fixture
def world():
    return World()


def kind(found):
    assert found is not None
    assert found.cause == "defect", found
    return found.evidence.kind


def test_what_is_healthy_has_no_mismatch(world):
    assert world.wrong(world.kept(world.read(world.rows()))) is None


def test_what_the_log_held_a_little_earlier_is_freshness(world):
    before = world.records[-3].arrived_at
    said = world.said(before)
    found = world.wrong(world.kept(world.read(world.rows(before), said), said))
    assert (found.cause, len(found.missing)) == ("freshness", 3)
    assert found.delay == world.now - before


def test_a_tile_may_be_ahead_of_what_was_said(world):
    early = world.records[-3].arrived_at
    tiles = {(row.tile, row.lane): row for row in world.rows(early)}
    newest = max(world.rows(), key=lambda row: row.tile)
    said = world.said(early)
    found = world.wrong(world.kept(world.read([*tiles.values(), newest], said), said))
    assert found.cause == "freshness"
    assert 0 < len(found.missing) < 3


def test_a_late_event_may_be_on_its_way():
    world = World(history(late=[119]))
    sample = world.kept(world.read([row for row in world.rows() if row.lane == "on_time"]))
    found = world.wrong(sample)
    assert (found.cause, [event.event_id for event in found.missing]) == ("late lane", ["p119"])


def test_a_late_event_that_is_never_published_is_a_defect(world):
    rows = [row for row in world.rows() if row.lane == "on_time"]
    world.now += 40 * MINUTE
    assert kind(world.wrong(world.kept(world.read(rows)))) == "late event never published"


def test_other_definitions_are_another_version(world):
    other = build([cards_view("20m")])
    rows = rows_of(Outcome(other, world.records), other.tile_sets[0], (world.now,))
    said = msgspec.structs.replace(world.said(), tile_set=other.tile_sets[0].fingerprint)
    sample = world.kept(world.read(rows, said, of=other), of=other)
    assert world.wrong(sample).cause == "version"


def test_a_wrong_window_is_found(world):
    other = build([cards_view("20m")])
    assert other.tile_sets == plan.tile_sets
    found = world.wrong(world.kept(world.read(world.rows(), of=other)))
    assert kind(found) == "wrong window"
    assert found.features == ("payments_10m",)


def test_a_tile_that_is_gone_is_found(world):
    counts = {row.tile: row.version for row in world.rows() if row.lane == "on_time"}
    recent = [tile for tile, count in counts.items() if count > 1 and tile > world.now - 50 * MINUTE]
    found = world.wrong(world.kept(world.read([row for row in world.rows() if row.tile != recent[0]])))
    assert kind(found) == "dropped tile"
    assert {event.event_time // tile_set.grain for event in found.evidence.events} == {recent[0] // tile_set.grain}


def test_an_event_that_counts_twice_is_found(world):
    again = world.records[-4]
    copy = msgspec.structs.replace(again, value=again.value.replace(b'"id":"p', b'"id":"x'), offset=len(world.records))
    outcome = Outcome(plan, [*world.records, copy])
    found = world.wrong(world.kept(world.read(rows_of(outcome, tile_set, (world.now,)))))
    assert kind(found) == "doubled event"
    assert [event.place[2] for event in found.evidence.events] == [again.offset]


def test_an_event_that_is_lost_is_found(world):
    gone = world.records[-5]
    outcome = Outcome(plan, [each for each in world.records if each is not gone])
    found = world.wrong(world.kept(world.read(rows_of(outcome, tile_set, (world.now,)))))
    assert kind(found) in ("missing event", "dropped tile")
    assert [event.place[2] for event in found.evidence.events] == [gone.offset]


def test_a_clock_that_is_wrong_is_found(world):
    answer = world.read(world.rows(), t=world.now - HOUR)
    found = world.wrong(world.kept(answer, change=lambda values: values | {"payments_10m": 77}))
    assert kind(found) == "shifted clock"


def test_a_replica_that_stands_still_and_says_otherwise_is_found(world):
    found = world.wrong(world.kept(world.read(world.rows(world.now - 30 * MINUTE))))
    assert kind(found) == "stale replica"
    assert "s earlier" in found.evidence.text


def test_a_store_that_forgot_the_past_is_found(world):
    found = world.wrong(world.kept(world.read([row for row in world.rows() if row.tile > world.now - 20 * MINUTE])))
    assert kind(found) == "truncated store"


def test_features_in_another_order_are_found(world):
    def swapped(values):
        return values | {"spend_1h": values["largest_1h"], "largest_1h": values["spend_1h"]}

    found = world.wrong(world.kept(world.read(world.rows()), change=swapped))
    assert kind(found) == "mis-ordered features"
    assert "spend_1h is largest_1h" in found.evidence.text


def test_a_default_that_is_made_up_is_found(world):
    answer = world.read(world.rows(), key="nobody")
    found = world.wrong(world.kept(answer, change=lambda values: values | {"largest_1h": 0.0}))
    assert kind(found) == "wrong default"


def test_what_nothing_explains_is_a_defect_all_the_same(world):
    found = world.wrong(world.kept(world.read(world.rows()), change=lambda values: values | {"spend_1h": 1234.5}))
    assert kind(found) == "unexplained"


def test_one_number_that_is_met_by_chance_is_not_freshness(world):
    """Two events fewer in a count alone is no earlier state of the log: the other features would differ too."""
    before = world.records[-3].arrived_at
    said = world.said(before)
    changed = world.kept(
        world.read(world.rows(), said),
        said,
        change=lambda values: values | {"payments_10m": values["payments_10m"] - 2},
    )
    assert world.wrong(changed).cause == "defect"
