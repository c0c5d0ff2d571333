"""What a training set may ask of the lake: all that had arrived, in a version that is still there."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace as hr
from headrace.clock import DAY, HOUR, micros
from headrace.errors import DataError, MachineError
from headrace.lake.completeness import complete, refuse_forgotten, refuse_removed
from headrace.lake.counters import BATCH, OFFSET, TURN
from headrace.lake.files import DayWriter
from headrace.lake.layout import BRONZE, SILVER, bronze_shape, silver_shape
from headrace.lake.maintenance import forget
from headrace.lake.table import LakeTable
from headrace.log.memory import MemoryLog
from headrace.testing import FakeClock

clicks = hr.stream("clicks", fields={"id": str, "user": str, "at": hr.Timestamp}, event_time="at", event_id="id")
users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
NOW = micros("2026-01-05T12:00:00Z")


@pytest.fixture
def tables(tmp_path):
    return {
        BRONZE: LakeTable(str(tmp_path / BRONZE), bronze_shape()),
        SILVER: LakeTable(str(tmp_path / SILVER), silver_shape(clicks)),
    }


def add(table, *times):
    row = {"_partition": 0, "_late": False, "_closed": False, "_identity": 1, "_payload": 1}
    made = [
        row | {"id": str(t), "user": "ann", "at": t, "_offset": n, "_arrived_at": t, "_event_id": str(t)}
        for n, t in enumerate(times)
    ]
    writer = DayWriter(table.uri, table.shape)
    writer.add(pa.RecordBatch.from_pylist(made, schema=table.shape.schema))
    table.commit(writer.close(), {})


def there(table, version=None):
    return LakeTable.there(table.uri, table.shape, version=version)


def test_a_stream_that_was_only_imported_has_no_topic_and_is_complete(tables):
    assert complete(tables, clicks, MemoryLog(), "clicks", NOW) is tables[SILVER]


def test_a_record_that_waits_in_the_log_counts_from_its_arrival(tables):
    log = MemoryLog(clock=FakeClock(NOW))
    log.create_topic("clicks")
    log.append("clicks", b"{}")
    assert complete(tables, clicks, log, "clicks", NOW) is tables[SILVER]
    with pytest.raises(MachineError) as refused:
        complete(tables, clicks, log, "clicks", NOW + 1)
    assert refused.value.code == "lake-behind"
    for table in tables.values():
        table.commit([], {TURN: 1, BATCH: 1, f"{OFFSET}0": 1})
    assert complete(tables, clicks, log, "clicks", NOW + DAY) is tables[SILVER]


def test_an_empty_or_half_written_lake_is_behind(tables):
    with pytest.raises(MachineError):
        complete({}, clicks, MemoryLog(), "clicks", NOW)
    tables[BRONZE].commit([], {TURN: 1})
    with pytest.raises(MachineError):
        complete(tables, clicks, MemoryLog(), "clicks", NOW)


def test_moments_whose_windows_reach_into_forgotten_days_are_refused(tables):
    add(tables[SILVER], NOW)
    refuse_forgotten(tables[SILVER], users, NOW)
    forget(tables[SILVER], NOW)
    midnight = NOW - NOW % DAY
    refuse_forgotten(tables[SILVER], users, midnight + 2 * HOUR)
    with pytest.raises(DataError) as refused:
        refuse_forgotten(tables[SILVER], users, midnight + HOUR // 2)
    assert refused.value.code == "lake-forgotten"


def test_a_table_can_be_opened_as_it_was(tables):
    add(tables[SILVER], NOW)
    before = tables[SILVER].delta.version()
    add(tables[SILVER], NOW + 1)
    assert len(there(tables[SILVER]).files()) == 2
    old = there(tables[SILVER], before)
    assert (len(old.files()), old.delta.version()) == (1, before)
    refuse_removed(old)


def test_a_version_that_never_was_is_refused(tables):
    with pytest.raises(DataError) as refused:
        there(tables[SILVER], 99)
    assert refused.value.code == "lake-version"


def test_a_version_whose_files_were_removed_is_refused(tables):
    add(tables[SILVER], NOW)
    before = tables[SILVER].delta.version()
    tables[SILVER].delta.delete()
    tables[SILVER].delta.vacuum(0, dry_run=False, enforce_retention_duration=False)
    tables[SILVER].refresh()
    refuse_removed(tables[SILVER])
    with pytest.raises(DataError) as refused:
        refuse_removed(there(tables[SILVER], before))
    assert (refused.value.code, refused.value.got) == ("lake-version", "1 of 1 file")
