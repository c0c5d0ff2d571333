"""A table's files and counters move together; a second writer from one state gives way; columns can be added."""

from __future__ import annotations

import json

import pytest

import headrace as hr
from headrace.clock import DAY, HOUR, MILLISECOND
from headrace.errors import DefinitionError, MachineError
from headrace.lake.files import DayWriter
from headrace.lake.layout import SILVER_COLUMNS, SILVER_DAY, silver_shape
from headrace.lake.table import LakeTable
from tests.lake.conftest import SHAPE, add, rows


def event(number, time=HOUR):
    return (f"e{number}", time, number, time, 0, number, number)


def test_files_and_counters_are_committed_together(silver):
    add(silver, [event(1)], {"batch": 1, "offset": 5})
    again = LakeTable(silver.uri, SHAPE)
    assert (again.delta.count(), again.counter("batch"), again.counter("offset"), again.counter("other")) == (
        1,
        1,
        5,
        None,
    )


def test_a_table_that_cannot_be_made_is_named_with_a_hint(tmp_path):
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(MachineError) as caught:
        LakeTable(str(tmp_path / "lake" / "silver"), SHAPE)
    assert (caught.value.code, str(caught.value.hint).startswith("Look at lake.path")) == ("lake-failed", True)


def test_no_version_of_a_table_has_files_without_their_counters_or_counters_without_their_files(silver):
    add(silver, [event(1)], {"batch": 1})
    add(silver, [event(2)], {"batch": 2})
    versions = [LakeTable.there(silver.uri, SHAPE, version=at) for at in range(silver.delta.version() + 1)]
    assert {(each.delta.count(), each.counter("batch") or 0) for each in versions} == {(0, 0), (1, 1), (2, 2)}


def test_a_writer_that_missed_a_commit_is_refused_and_adds_nothing(silver):
    late = LakeTable(silver.uri, SHAPE)
    add(silver, [event(1)], {"batch": 1})
    with pytest.raises(hr.HeadraceError) as refused:
        add(late, [event(2)], {"batch": 1})
    assert refused.value.code == "lake-conflict"
    assert LakeTable(silver.uri, SHAPE).delta.count() == 1


def test_files_that_nobody_committed_do_not_exist(silver):
    writer = DayWriter(silver.uri, SHAPE)
    writer.add(rows([event(1)]))
    writer.close()
    assert LakeTable(silver.uri, SHAPE).delta.count() == 0


def test_counters_survive_checkpoints_of_the_delta_log(silver):
    for number in range(60):
        silver.commit([], {"batch": number})
    assert LakeTable(silver.uri, SHAPE).counter("batch") == 59


def test_rows_go_to_the_file_of_their_day_with_statistics_rounded_outwards(silver):
    writer = DayWriter(silver.uri, SHAPE)
    writer.add(rows([event(1, HOUR + 1), event(2, DAY + 1)]))
    first, second = sorted(writer.close(), key=lambda file: file.day)
    assert (first.day, second.day) == ("1970-01-01", "1970-01-02")
    told = json.loads(first.statistics)
    assert (told["minValues"]["at"], told["maxValues"]["at"]) == ("1970-01-01T01:00:00Z", "1970-01-01T01:00:00.001000Z")
    silver.commit([first, second], {})
    assert len(silver.files("at", [(HOUR, HOUR + MILLISECOND)])) == 1
    assert len(silver.files("at", [(HOUR, HOUR + MILLISECOND), (DAY, DAY + 1)])) == 2
    assert silver.files("at", [(2 * HOUR, 3 * HOUR)]) == []


def test_a_new_field_becomes_a_new_column_and_old_rows_have_none(silver):
    add(silver, [event(1)])
    grown = hr.stream(
        "clicks", fields={"id": str, "at": hr.Timestamp, "page": str | None}, event_time="at", event_id="id"
    )
    table = LakeTable(silver.uri, silver_shape(grown))
    assert table.delta.to_pyarrow_table().column("page").to_pylist() == [None]


def test_a_column_whose_type_changed_is_refused(silver):
    changed = hr.stream("clicks", fields={"id": int, "at": hr.Timestamp}, event_time="at", event_id="id")
    with pytest.raises(hr.HeadraceError) as refused:
        LakeTable(silver.uri, silver_shape(changed))
    assert refused.value.code == "lake-conflict"


def test_no_field_can_have_the_name_of_a_column_of_the_lake():
    for column in [*SILVER_COLUMNS, SILVER_DAY, "_ORDER"]:
        with pytest.raises(DefinitionError) as refused:
            hr.stream("clicks", fields={column: str, "at": hr.Timestamp}, event_time="at")
        assert refused.value.code == "bad-name"
