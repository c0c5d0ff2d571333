"""Rows are sorted by arrival on the disk: as a sort in memory would, whatever the runs and blocks are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.imports import arrival_order
from headrace.spark.imports.arrival_order import sorted_by_arrival
from tests.budget import examples

ARRIVALS = st.one_of(st.integers(-3, 12).map(str), st.sampled_from(["", "not a moment: soon", "9" * 30]), st.none())


def batch(first, arrivals):
    values = [f"row {first + at}".encode() for at in range(len(arrivals))]
    return pa.RecordBatch.from_pydict(
        {"value": pa.array(values, pa.binary()), "arrival": pa.array(arrivals, pa.string())}
    )


def chunks(arrivals, size):
    return (batch(at, arrivals[at : at + size]) for at in range(0, len(arrivals), size))


def moment(text):
    try:
        return int(text) if len(text) < 20 else None
    except (TypeError, ValueError):
        return None


@examples(1)
@given(st.lists(ARRIVALS, max_size=60), st.integers(1, 9), st.integers(1, 300), st.integers(1, 120), st.integers(2, 4))
def test_rows_come_by_arrival_and_those_of_one_arrival_as_the_source_has_them(
    tmp_path_factory, arrivals, size, run, block, fan_in
):
    folder = tmp_path_factory.mktemp("import") / "sorted"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrival_order, "RUN_BYTES", run)
        patched.setattr(arrival_order, "BLOCK_BYTES", block)
        patched.setattr(arrival_order, "FAN_IN", fan_in)
        with sorted_by_arrival(chunks(arrivals, size), folder) as rows:
            found = [tuple(row.values()) for part in rows for row in part.to_pylist()]
    numbered = list(enumerate(arrivals))
    expected = sorted(numbered, key=lambda row: (moment(row[1]) is None, moment(row[1]) or 0))
    assert found == [(f"row {at}".encode(), arrival) for at, arrival in expected]
    assert not folder.exists()


def test_no_more_than_a_run_of_rows_is_in_memory_while_they_are_sorted(tmp_path, monkeypatch):
    monkeypatch.setattr(arrival_order, "RUN_BYTES", 100_000)
    monkeypatch.setattr(arrival_order, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(arrival_order, "FAN_IN", 8)
    arrivals = [str(100_000 - at) for at in range(100_000)]
    before, most = pa.total_allocated_bytes(), []
    with sorted_by_arrival(chunks(arrivals, 1_000), tmp_path / "sorted") as rows:
        count = 0
        for part in rows:
            count += part.num_rows
            most.append(pa.total_allocated_bytes() - before)
    assert count == 100_000
    assert max(most) < 300_000, "all rows together take several megabytes"
