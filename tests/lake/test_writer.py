"""A batch is one commit of bronze, files and position together, and silver follows it; no Spark is needed to see it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.clock import HOUR
from headrace.errors import DataError
from headrace.lake.counters import BATCH, OFFSET, behind, position
from headrace.lake.files import DayWriter
from headrace.lake.imports import IMPORTS
from headrace.lake.layout import BRONZE, SILVER, bronze_shape
from headrace.lake.place import Lake
from headrace.lake.table import LakeTable
from headrace.run.deposit import Deposit
from headrace.run.lake_writer import LakeWriter
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
