"""Everything that can go wrong between the log and a reader is found and given its name; what is healthy is not."""

from __future__ import annotations

import msgspec
import pytest

from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from tests.serve.shape import rows_of
from tests.skew import injected
from tests.skew.injected import INJECTED
from tests.skew.world import World, cards_view, history, plan, tile_set


@pytest.fixture
def world():
    return World()


def defect(found):
    assert found is not None
    assert found.cause == "defect", found
    return found.evidence


@pytest.mark.parametrize("kind", INJECTED)
def test_what_is_injected_is_found_and_named(world, kind):
    assert defect(world.wrong(INJECTED[kind](world))).kind == kind


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


def test_an_answer_that_knows_nothing_of_itself_is_no_defect(world):
    answer = msgspec.structs.replace(world.read([]), as_of=None)
    assert world.wrong(world.kept(answer)).cause == "unready"


def test_other_definitions_are_another_version(world):
    other = build([cards_view("20m")])
    rows = rows_of(ReferenceResult(other, world.records), other.tile_sets[0], (world.now,))
    said = msgspec.structs.replace(world.said(), tile_set=other.tile_sets[0].fingerprint)
    assert world.wrong(world.kept(world.read(rows, said, of=other), of=other)).cause == "version"


def test_the_features_of_a_wrong_window_are_named(world):
    assert build([cards_view("20m")]).tile_sets == plan.tile_sets
    assert world.wrong(injected.wrong_window(world)).features == ("payments_10m",)


def test_the_events_of_a_tile_that_is_gone_are_named(world):
    events = defect(world.wrong(injected.dropped_tile(world))).events
    assert len(events) > 1
    assert len({event.event_time // tile_set.grain for event in events}) == 1


def test_the_event_that_counts_twice_is_named(world):
    events = defect(world.wrong(injected.doubled_event(world))).events
    assert [event.place[2] for event in events] == [world.records[-4].offset]


def test_an_event_that_is_lost_is_found(world):
    gone = world.records[-5]
    outcome = ReferenceResult(plan, [each for each in world.records if each is not gone])
    found = defect(world.wrong(world.kept(world.read(rows_of(outcome, tile_set, (world.now,))))))
    assert found.kind in ("missing event", "dropped tile")
    assert [event.place[2] for event in found.events] == [gone.offset]


def test_how_long_a_replica_stands_still_is_told(world):
    assert "s earlier" in defect(world.wrong(injected.stale_replica(world))).text


def test_whose_place_features_have_is_told(world):
    assert "spend_1h is largest_1h" in defect(world.wrong(injected.mis_ordered(world))).text


def test_what_nothing_explains_is_a_defect_all_the_same(world):
    changed = world.kept(world.read(world.rows()), change=lambda values: values | {"spend_1h": 1234.5})
    assert defect(world.wrong(changed)).kind == "unexplained"


def test_one_number_that_is_met_by_chance_is_not_freshness(world):
    """Two events fewer in a count alone is no earlier state of the log: the other features would differ too."""
    before = world.records[-3].arrived_at
    said = world.said(before)

    def fewer(values):
        return values | {"payments_10m": values["payments_10m"] - 2}

    changed = world.kept(world.read(world.rows(), said), said, change=fewer)
    assert world.wrong(changed).cause == "defect"
