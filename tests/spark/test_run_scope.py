"""Batch, stream and late lane of a run have every event exactly once, wherever the cut and the point are."""

from __future__ import annotations

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.pipeline.run_scope import before, in_batch, in_late_lane, in_stream
from headrace.tiles.changelog import HandOver

PARTITIONS = (-2, -1, 0, 1, 2)
rows = st.lists(
    st.tuples(st.sampled_from(PARTITIONS), st.integers(0, 12), st.integers(0, 100), st.booleans(), st.booleans()),
    unique_by=lambda row: row[:2],
    max_size=40,
)
cuts = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 13))


def places(events, hand_over, policy):
    """For each event how often batch, stream and late lane have it."""
    con = duckdb.connect()
    con.execute('CREATE TABLE e ("~partition" INT, "~offset" INT, "~event_time" INT, "~late" BOOL, "~behind" BOOL)')
    con.executemany("INSERT INTO e VALUES (?, ?, ?, ?, ?)", [[*row[:4], row[3] or row[4]] for row in events])
    conditions = [in_batch(hand_over), in_stream(hand_over), in_late_lane(hand_over, policy)]
    asked = ", ".join(condition.replace("`", '"') for condition in conditions)
    return con.execute(f"SELECT * EXCLUDE (tick), {asked} FROM (SELECT *, 1 AS tick FROM e)").fetchall()


@given(rows, st.integers(0, 100), cuts, st.sampled_from(["update", "drop"]))
def test_every_event_that_counts_is_in_exactly_one_place(events, point, cut, policy):
    begin = {}
    for partition in (p for p in PARTITIONS if p >= 0):
        mine = [
            offset
            for p, offset, time, late, closed in events
            if p == partition and time >= point and not late and not closed and offset < cut.get(partition, 0)
        ]
        begin[partition] = min([cut.get(partition, 0), *mine])
    made = HandOver("ab", "2", point, cut, begin, 1)
    for hand_over in (made, None):
        for row in places(events, hand_over, policy) if events else []:
            late, found = row[3], row[5:]
            assert sum(found) == (0 if late and policy == "drop" else 1), (row, made)
            assert not (late and (found[0] or found[1]))


def test_what_the_batch_has_lies_before_the_point_and_in_the_cut():
    made = HandOver("ab", "2", 10, {0: 5, -1: 3}, {0: 2}, 1)
    events = [(0, 4, 9, False, False), (0, 5, 9, False, False), (0, 4, 10, False, False), (-1, 2, 9, False, False)]
    assert [row[5] for row in places(events, made, "update")] == [True, False, False, True]
    assert [row[7] for row in places(events, made, "update")] == [False, True, False, False]


def test_what_the_stream_has_happened_at_the_point_or_later_and_stands_where_it_reads():
    made = HandOver("ab", "2", 10, {0: 5}, {0: 2}, 1)
    events = [(0, 1, 10, False, False), (0, 2, 10, False, False), (0, 2, 9, False, False), (0, 9, 11, False, False)]
    assert [row[6] for row in places(events, made, "update")] == [False, True, False, True]


def test_positions_say_what_was_there_before():
    con = duckdb.connect()
    asked = before({0: 5, -1: 2}).replace("`", '"')
    held = 'VALUES (0, 4), (0, 5), (-1, 1), (7, 0)) e("~partition", "~offset"'
    assert con.execute(f"SELECT {asked} FROM ({held})").fetchall() == [(True,), (False,), (True,), (False,)]
