"""Merging, removing and forgetting change no row that can still be asked for."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import headrace as hr
from headrace.clock import DAY, HOUR
from headrace.lake.maintenance import compact, forget, vacuum
from headrace.lake.table import LakeTable
from tests.lake.conftest import SHAPE, add


def event(number, time=HOUR):
    return (f"e{number}", time, number, time, 0, number, number)


def content(table):
    return sorted(row["id"] for row in LakeTable(table.uri, SHAPE).delta.to_pyarrow_table().to_pylist())


def parquet(table):
    return sorted(Path(table.uri).glob("*/*.parquet"))


def test_compaction_merges_files_of_a_day_and_keeps_rows_and_counters(silver):
    for number in range(5):
        add(silver, [event(number)], {"batch": number})
    add(silver, [event(9, 2 * DAY)])
    done = compact(silver)
    assert (done.before, done.after) == (5, 1)
    assert content(silver) == ["e0", "e1", "e2", "e3", "e4", "e9"]
    assert silver.counter("batch") == 4
    assert len(silver.files("at", [(HOUR, HOUR)])) == 1


def test_vacuum_removes_only_old_files_that_no_version_needs(silver):
    for number in range(3):
        add(silver, [event(number)])
    compact(silver)
    assert len(parquet(silver)) == 4
    assert vacuum(silver, 24) == []
    old = time.time() - 3 * 24 * 3600
    orphan = Path(silver.uri) / "_day=1970-01-01" / "orphan.parquet"
    orphan.write_bytes(b"left by a batch that was cut off")
    os.utime(orphan, (old, old))
    assert len(vacuum(silver, 24, dry=True)) == 1
    assert orphan.exists()
    vacuum(silver, 24)
    assert not orphan.exists()
    assert content(silver) == ["e0", "e1", "e2"]


def test_vacuum_refuses_to_touch_young_files(silver):
    with pytest.raises(hr.HeadraceError) as refused:
        vacuum(silver, 1)
    assert refused.value.code == "lake-conflict"


def test_forgetting_takes_whole_days_that_ended_before(silver):
    add(silver, [event(0, HOUR), event(1, DAY + HOUR), event(2, 2 * DAY + HOUR)])
    assert forget(silver, 2 * DAY + 2 * HOUR) == 2
    assert content(silver) == ["e2"]
