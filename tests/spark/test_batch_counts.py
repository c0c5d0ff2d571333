"""Counts of a batch are the same in whatever parts it was written."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.alarms import PartitionCounts
from headrace.spark.archive.batch_counts import EARLIER, BatchCounts

ROW = st.tuples(
    st.integers(0, 2),
    st.integers(0, 50),
    st.sampled_from(["admitted", "late", "future", "duplicate", "malformed"]),
    st.booleans(),
    st.none() | st.integers(0, 50),
    st.booleans(),
)
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("appended_at", pa.timestamp("us", "UTC")),
        ("verdict", pa.string()),
        ("conflict", pa.bool_()),
        ("first_offset", pa.int64()),
        (EARLIER, pa.bool_()),
    ]
)


def batch(rows):
    """Times follow offsets, but for offset 7, at which a clock stood wrong."""
    made = [
        {
            "partition": partition,
            "offset": offset,
            "appended_at": 1_000 + offset * 10 if offset != 7 else 1,
            "verdict": verdict,
            "conflict": conflict,
            "first_offset": first,
            EARLIER: earlier,
        }
        for partition, offset, verdict, conflict, first, earlier in rows
    ]
    return pa.RecordBatch.from_pylist(made, schema=SCHEMA)


@given(st.lists(st.lists(ROW, max_size=12), max_size=4))
def test_counts_of_parts_join_to_the_counts_of_all(parts):
    joined, whole = BatchCounts(), BatchCounts()
    for rows in parts:
        part = BatchCounts()
        part.add(batch(rows))
        joined.join(json.loads(json.dumps(part.told())))
    everything = [row for rows in parts for row in rows]
    whole.add(batch(everything))
    assert joined.seen() == whole.seen()
    assert joined.verdicts == whole.verdicts
    assert joined.records == len(everything)
    assert joined.conflicts == sum(row[3] for row in everything)
    assert joined.earlier_copies == sum(row[5] for row in everything)
    assert joined.late_copies == sum(row[2] == "late" and row[4] is not None for row in everything)


def test_what_was_seen_of_a_partition_are_its_ends_and_its_extremes():
    counts = BatchCounts()
    offsets = ((8, "late"), (6, "admitted"), (7, "future"))
    counts.add(batch([(1, offset, verdict, False, None, False) for offset, verdict in offsets]))
    assert counts.seen() == [
        PartitionCounts(1, read=3, late=1, future=1, first=1_060, last=1_080, least=1, greatest=1_080)
    ]
