"""Whatever state the tiles are in that they may be in, the audit finds no defect; and it finds what is missing."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

from msgspec.structs import replace

from headrace.asof.lake import PastEvents
from headrace.clock import DAY, MINUTE
from headrace.log import MemoryLog
from headrace.meaning.reference import ReferenceResult, contributing
from headrace.plan.build import build
from headrace.read.reader import Reader
from headrace.serve.served_samples import Samples
from headrace.skew.compare import Against, judged
from headrace.skew.sample import read_sample
from headrace.store import MemoryStore
from headrace.testing import FakeClock
from headrace.tiles.changelog import ProgressRow
from tests.serve.shape import rows_of
from tests.skew import world as small
from tests.skew.world import NAMES
from tests.streams import BASE, every_aggregate, every_window, payments, seeded

plan = build([every_window, every_aggregate])
(tile_set,) = plan.tile_sets


def partly_ahead(outcome, said, t, order):
    """Tiles as of what was said, but each perhaps already as of some later moment."""
    moments = sorted({said, t, *(order.randrange(said, t + 1) for _ in range(3))})
    found = {}
    for moment in moments:
        for row in rows_of(outcome, tile_set, (moment,)):
            identity = (row.key, row.tile, row.lane)
            if moment == said or order.random() < 0.5:
                found[identity] = row
    return list(found.values())


def renumbered(records):
    """Offsets in the order of arrival over all partitions, so that a moment is the same offset in each."""
    in_order = sorted(records, key=lambda each: each.arrived_at)
    return [replace(each, offset=number) for number, each in enumerate(in_order)]


def found(seed):
    """The causes of every mismatch in reads of tiles in a random state that they may be in."""
    order, records = random.Random(seed), renumbered(seeded(seed, 40, 25))
    t = BASE + order.randrange(5 * MINUTE, 40 * MINUTE)
    said, outcome = t - order.randrange(10 * MINUTE), ReferenceResult(plan, records)
    before = sum(each.arrived_at < said for each in records)
    progress = ProgressRow(tile_set.fingerprint, "1", dict.fromkeys(range(3), before), said)
    store = MemoryStore()
    reader = Reader(plan, store)
    store.apply([*partly_ahead(outcome, said, t, order), progress], "changelog", {0: 1})
    counted = contributing(payments.late, outcome.judged["payments"])
    for view in (every_window, every_aggregate):
        log = MemoryLog(clock=FakeClock(t + 1))
        log.create_topic(f"served.{view.name}")
        samples = Samples(plan, log, NAMES, 1.0)
        for key in outcome.keys(view):
            samples.offer(view, reader.read(view.name, key, t), progress)
        samples.step()
        taken = [read_sample(view, each) for each in log.read(f"served.{view.name}", 0, 0)]
        past = PastEvents(view, [(event, lane == "late") for lane, event in counted])
        # Late events may be as old as the stream here: how long one may wait is another test's business.
        against = Against(view, tile_set.grain, plan.versions[view.name], DAY)
        yield from (one.mismatch for one in judged(against, past, taken))


def test_no_state_that_is_allowed_is_taken_for_a_defect():
    wrong = [each for seed in range(12) for each in found(seed)]
    causes = Counter(None if each is None else each.cause for each in wrong)
    assert [each for each in wrong if each is not None and each.cause == "defect"] == []
    assert causes["undecided"] == 0
    assert causes[None] > 100
    assert causes["freshness"] > 100
    assert causes["late lane"] > 5


def test_a_prediction_whose_tiles_had_passed_its_event_is_ahead():
    world = small.World()
    own, last = world.records[60], world.records[75]
    t, later = own.arrived_at, last.arrived_at + 1
    answer = world.read(world.rows(later), world.said(later), t=t)
    sample = world.kept(answer, world.said(later))
    sample = dataclasses.replace(sample, moment=(t, own.partition, own.offset + 1))
    against = Against(small.cards, small.tile_set.grain, small.plan.versions["cards"], small.PATIENCE)
    (found,) = judged(against, world.past(), [sample], world.past)
    assert found.mismatch.cause == "ahead"
    (found,) = judged(
        against, world.past(), [dataclasses.replace(sample, values={**sample.values, "payments_10m": 99})], world.past
    )
    assert found.mismatch.cause in ("defect", "undecided")
