"""A table that is kept in order, after a crash: no row that can still be asked for is changed, and it can go on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from headrace.clock import DAY, HOUR
from headrace.lake.counters import FORGOTTEN
from headrace.lake.maintenance import compact, forget, vacuum
from headrace.lake.table import LakeTable
from tests.faults.image import CrashImages, at_each_point
from tests.lake.conftest import SHAPE, add

YOUNG = ["e0", "e1", "e2"]
OLD_FILE = "orphan.parquet"


def event(number, time):
    return (f"e{number}", time, number, time, 0, number, number)


def content(table):
    return sorted(row["id"] for row in table.delta.to_pyarrow_table().to_pylist())


def keep(table, faults=None):
    """All that is done to a table now and then."""
    given = {} if faults is None else {"faults": faults}
    compact(table, **given)
    forget(table, DAY, **given)
    vacuum(table, 24, **given)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keep")
    made = CrashImages(folder / "world", folder / "images", "keep")
    table = LakeTable(str(folder / "world"), SHAPE)
    for number in range(3):
        add(table, [event(number, DAY + HOUR)], {"batch": number})
    add(table, [event(9, HOUR)], {"batch": 3})
    orphan, then = folder / "world" / "_day=1970-01-02" / OLD_FILE, time.time() - 3 * 24 * 3_600
    orphan.write_bytes(b"left by a batch that was cut off")
    os.utime(orphan, (then, then))
    keep(table, made)
    return made


@at_each_point("keep")
def test_rows_are_there_until_their_day_is_said_to_be_forgotten(images, name):
    (taken,) = images.of(name)
    table = LakeTable(str(taken.folder), SHAPE)
    found = content(table)
    assert found in (YOUNG, [*YOUNG, "e9"])
    assert found != YOUNG or table.counter(FORGOTTEN) == DAY, "rows went before anybody was told"
    add(table, [event(5, DAY + HOUR)], {"batch": 4})
    keep(table)
    again = LakeTable(table.uri, SHAPE)
    assert (content(again), again.counter("batch"), again.counter(FORGOTTEN)) == ([*YOUNG, "e5"], 4, DAY)
    assert len(again.files()) == 1
    assert not list(Path(table.uri).rglob(OLD_FILE))
