"""A batch is one commit of bronze, files and position together, and silver follows it; no Spark is needed to see it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.clock import HOUR
from headrace.errors import DataError, DiskFullError
from headrace.lake.counters import BATCH, OFFSET, behind, position
from headrace.lake.files import DayWriter, remove_batch
from headrace.lake.imports import IMPORTS
from headrace.lake.layout import BRONZE, SILVER, bronze_shape
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.spark.archive import table_files as deposits
from headrace.spark.archive.lake_writer import LakeWriter
from headrace.spark.archive.table_files import Deposit
from tests.lake.bronze import record
from tests.lake.conftest import SHAPE, clicks, rows

MOVED = {BATCH: 1, f"{OFFSET}0": 1}


class DiedError(Exception):
    """What stands for a SIGKILL."""


def opened(folder):
    return Lake(
        LakeTable(str(folder / "bronze"), bronze_shape()),
        LakeTable(str(folder / "silver"), SHAPE),
        str(folder / "staging"),
    )


def writer_of(lake):
    return LakeWriter(clicks, "clicks", lake, None)


def one_record(lake, offset=0):
    """A deposit of one record, written and not committed."""
    bronze, silver = DayWriter(lake.bronze.uri, bronze_shape()), DayWriter(lake.silver.uri, SHAPE)
    bronze.add(pa.RecordBatch.from_pylist([record(0, offset, HOUR, 0)], schema=bronze_shape().schema))
    silver.add(rows([(f"e{offset}", HOUR, offset, HOUR, 0, offset, offset)]))
    return Deposit({BRONZE: bronze.close(), SILVER: silver.close()})


def history(table):
    """At every version of a table: how many rows there are, and the number of the last batch."""
    versions = (LakeTable.there(table.uri, table.shape, version=at) for at in range(table.delta.version() + 1))
    return [(each.delta.count(), each.counter(BATCH) or 0) for each in versions if each is not None]


def dies(*_):
    raise DiedError


def test_no_version_of_a_table_has_a_batch_without_its_position_or_the_position_without_it(tmp_path):
    lake = opened(tmp_path)
    writer_of(lake).commit(one_record(lake), MOVED, {})
    assert set(history(lake.bronze)) == set(history(lake.silver)) == {(0, 0), (1, 1)}


def test_silver_comes_to_the_position_of_bronze(tmp_path):
    lake = opened(tmp_path)
    writer_of(lake).commit(one_record(lake), MOVED, {})
    assert position(lake.bronze) == position(lake.silver) == {0: 1}
    assert not behind(lake.bronze, lake.silver)


def test_a_batch_that_dies_before_bronze_has_left_nothing_in_silver(tmp_path, monkeypatch):
    lake = opened(tmp_path)
    monkeypatch.setattr(lake.bronze, "commit", dies)
    with pytest.raises(DiedError):
        writer_of(lake).commit(one_record(lake), MOVED, {})
    assert history(opened(tmp_path).silver) == [(0, 0)]


def test_of_an_archive_and_an_import_that_start_from_one_state_only_one_commits(tmp_path):
    archived, imported = opened(tmp_path), opened(tmp_path)
    writer_of(archived).commit(one_record(archived), MOVED, {})
    with pytest.raises(DataError) as refused:
        writer_of(imported).commit(one_record(imported, 1), {IMPORTS: 1}, {})
    assert refused.value.code == "lake-conflict"
    assert (opened(tmp_path).bronze.delta.count(), opened(tmp_path).silver.delta.count()) == (1, 1)


def files(lake):
    return sorted(file.name for table in (lake.bronze, lake.silver) for file in Path(table.uri).glob("*/*.parquet"))


def full(*_, **__):
    raise OSError("Generic LocalFileSystem error\n Unable to copy data to file\n No space left on device (os error 28)")


@pytest.mark.parametrize("table", [BRONZE, SILVER])
def test_a_commit_without_room_is_a_full_disk_and_leaves_no_file_that_keeps_it_full(tmp_path, monkeypatch, table):
    lake = opened(tmp_path)
    writer_of(lake).commit(one_record(lake), MOVED, {})
    before = files(lake)
    deposit = one_record(lake, 1)
    with monkeypatch.context() as patched:
        patched.setattr(getattr(lake, table)._table, "create_write_transaction", full, raising=False)
        with pytest.raises(DiskFullError):
            writer_of(lake).commit(deposit, {BATCH: 2, f"{OFFSET}0": 2}, {})
    kept = [] if table == BRONZE else [Path(file.path).name for file in deposit.files[BRONZE]]
    assert files(opened(tmp_path)) == sorted([*before, *kept])
    assert behind(opened(tmp_path).bronze, opened(tmp_path).silver) == (table == SILVER)


def test_a_commit_that_happened_keeps_its_files_although_what_came_after_it_had_no_room(tmp_path, monkeypatch):
    lake = opened(tmp_path)
    commit = lake.bronze.commit

    def committed(*given):
        commit(*given)
        raise DiskFullError("disk-full", "The checkpoint has no room.")

    monkeypatch.setattr(lake.bronze, "commit", committed)
    deposit = one_record(lake)
    with pytest.raises(DiskFullError):
        writer_of(lake).commit(deposit, MOVED, {})
    assert len(files(lake)) == 2
    assert opened(tmp_path).bronze.delta.count() == 1


def test_the_files_of_a_batch_that_failed_are_removed_and_no_others(tmp_path):
    lake = opened(tmp_path)
    for batch in ("one-", "two-"):
        writer = DayWriter(lake.silver.uri, SHAPE, batch=batch)
        writer.add(rows([("e", HOUR, 0, HOUR, 0, 0, 0)]))
        writer.close()
    remove_batch(lake.silver.uri, "one-")
    assert [name[:4] for name in files(lake)] == ["two-"]
    remove_batch(lake.silver.uri, "")
    assert len(files(lake)) == 1


class FailingTasks:
    """A session of which one task has written its file when another fails."""

    def __init__(self, write):
        self._write = write

    def __getattr__(self, name):
        return lambda *_: self

    def collect(self):
        self._write()
        raise RuntimeError("java.io.IOException: No space left on device")


def test_a_second_pass_that_fails_leaves_no_file_of_the_tasks_that_had_ended(tmp_path, monkeypatch):
    lake, batches, seen = opened(tmp_path), list[str](), list[str]()

    def write():
        made = DayWriter(lake.silver.uri, SHAPE, batch=batches[-1])
        made.add(rows([("e", HOUR, 0, HOUR, 0, 0, 0)]))
        made.close()
        seen.extend(files(lake))

    monkeypatch.setattr(deposits, "_writer", lambda *given: batches.append(given[-1]))
    tables = {BRONZE: lake.bronze, SILVER: lake.silver}
    with pytest.raises(RuntimeError):
        deposits.deposit(FailingTasks(write), "root", ["one"], None, tables, 2)
    assert len(seen) == 1
    assert files(lake) == []
