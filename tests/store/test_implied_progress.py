"""What rows in order say: nothing that had arrived before is missing, whatever the partitions and the pauses."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.store import MemoryStore
from headrace.store.implied_progress import InOrder
from headrace.tiles.changelog import Gone, ProgressRow, TileRow

TILES, RUN = "ab12", "1"
SAID = ProgressRow(TILES, RUN, {0: 0, 1: 0}, as_of=0, ordered=True)
ORDER = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=30)


def row(partition, offset, arrived, run=RUN, lane="on_time"):
    positions = {partition: offset + 1}
    return TileRow(TILES, run, ("ann",), 0, lane, 1, positions=positions, max_arrived_at=arrived)


@given(ORDER, st.randoms(use_true_random=False))
def test_all_that_arrived_before_has_a_row_wherever_the_changelog_is_cut(steps, chance):
    """Records arrive in two partitions, and are read in the order of each of them but at any pace."""
    now = 0
    waiting: tuple[list[tuple[int, int]], ...] = ([], [])
    for partition, passed in steps:
        now += passed
        waiting[partition].append((len(waiting[partition]), now))
    arrived = [moment for each in waiting for _, moment in each]
    told, seen, rows = InOrder(MemoryStore()), [], [SAID]
    left = [list(each) for each in waiting]
    while any(left):
        partition = chance.choice([p for p in (0, 1) if left[p]])
        offset, moment = left[partition].pop(0)
        seen.append(moment)
        rows.append(row(partition, offset, moment))
        if chance.random() < 0.5:
            for said in told.told(rows):
                assert sum(each < said.as_of for each in seen) == sum(each < said.as_of for each in arrived)
                assert said.positions == {p: len(waiting[p]) - len(left[p]) for p in (0, 1)}
            rows = []


def test_an_idle_partition_holds_the_time_until_it_is_said_that_nothing_came():
    told = InOrder(MemoryStore())
    (said,) = told.told([SAID, row(0, 0, arrived=10)])
    assert (said.as_of, said.positions) == (0, {0: 1, 1: 0})
    (said,) = told.told([msgspec.structs.replace(SAID, positions={0: 1, 1: 0}, as_of=8), row(0, 1, arrived=12)])
    assert (said.as_of, said.positions) == (8, {0: 2, 1: 0})
    (said,) = told.told([row(1, 0, arrived=11)])
    assert (said.as_of, said.positions) == (11, {0: 2, 1: 1})


@pytest.mark.parametrize(
    "rows",
    [
        [row(0, 0, 10), row(1, 0, 10)],
        [msgspec.structs.replace(SAID, ordered=False), row(0, 0, 10), row(1, 0, 10)],
        [SAID, Gone(TILES, RUN), row(0, 0, 10), row(1, 0, 10)],
        [SAID, row(0, 0, 10, run="2"), row(1, 0, 10, run="2")],
        [SAID, row(0, 0, 10, lane="late"), row(1, 0, 10, lane="late")],
        [SAID, msgspec.structs.replace(row(0, 0, 10), positions={0: 1, 1: 1})],
    ],
    ids=["nothing said", "not in order", "gone", "another run", "late lane", "two partitions in one row"],
)
def test_rows_that_say_nothing(rows):
    assert InOrder(MemoryStore()).told(rows) == []


def test_rows_of_micro_batches_say_nothing_although_rows_in_order_came_before():
    told = InOrder(MemoryStore())
    assert told.told([SAID, row(0, 0, 10), row(1, 0, 10)])
    assert told.told([msgspec.structs.replace(SAID, ordered=False), row(0, 1, 20), row(1, 1, 20)]) == []


def test_what_was_said_is_remembered_by_the_store():
    store = MemoryStore()
    store.apply([SAID], "changelog", {0: 1})
    (said,) = InOrder(store).told([row(0, 0, 10), row(1, 0, 11)])
    assert (said.as_of, said.positions) == (10, {0: 1, 1: 1})
