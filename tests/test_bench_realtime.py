"""What the comparison with Flink makes of what was sent and what was received."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bench.realtime.compare import FLINK, HEADRACE, Load
from bench.realtime.latency import latencies

SECOND, MS = 10**9, 10**6


@pytest.fixture
def received(tmp_path):
    """A record each second from second 0 on, at offsets from 100 on."""
    np.savez(tmp_path / "sent.npz", first=100, moments=np.arange(10) * SECOND, copies=0)

    def found(*rows, warm=0.0, ends=()):
        np.save(tmp_path / "rows.npy", np.array(rows, dtype=np.int64).reshape(-1, 2))
        return latencies(tmp_path / "sent.npz", tmp_path / "rows.npy", warm, ends)

    return found


def test_a_row_tells_the_latency_of_the_newest_record_in_it_and_the_first_one_counts(received):
    # The row names the offset that follows: 103 has record 102, which was sent at second 2.
    found = received((103, 2 * SECOND + 5 * MS), (103, 9 * SECOND), (106, 5 * SECOND + 7 * MS))
    assert list(found.at) == [2.0, 5.0]
    assert list(found.ms) == [5.0, 7.0]


def test_what_was_sent_while_it_was_warming_up_does_not_count(received):
    found = received((103, 3 * SECOND), (106, 5 * SECOND + 7 * MS), warm=4)
    assert list(found.ms) == [7.0]
    assert list(found.at) == [1.0]


def test_the_ends_of_batches_can_be_left_out(received):
    rows = [(101 + number, number * SECOND + (900 if number == 3 else 2) * MS) for number in range(10)]
    found = received(*rows, ends=[3.0])
    assert found.percentiles()["p999"] > 800
    assert found.percentiles(without_ends=True) == {"p50": 2.0, "p95": 2.0, "p99": 2.0, "p999": 2.0}


def test_rows_of_both_engines_say_how_many_events_they_have_and_where_the_next_one_is():
    ours = b'{"version":3,"partials":{"count_1":3},"positions":{"0":17},"max_event_time":1,"max_arrived_at":2}'
    flinks = b'{"card":"a","tile":10,"n":3,"spend":1.5,"next_offset":17}'
    for engine, row in ((HEADRACE, ours), (FLINK, flinks)):
        found = re.search(engine.row, row)
        assert found is not None
        assert found.groups() == (b"3", b"17")
    assert re.search(HEADRACE.row, b'{"positions":{"0":17},"as_of":7,"ordered":true}') is None


def test_loads_are_called_by_their_rate_and_by_their_keys_when_these_are_unusual():
    assert Load(1_000, 5_000).name == "1k"
    assert Load(5_000, 100_000).name == "5k.keys_100k"
