"""Rows of every format as JSON with their arrival: what is read, in which order, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.clock import SECOND, micros
from headrace.codec.json.read import decoder
from headrace.errors import DataError, HeadraceError, UsageError
from headrace.ingest.files.columns import ArrivalColumn, Columns, parse_columns
from headrace.ingest.files.rows import read_extent, read_rows
from headrace.ingest.files.source import Source, find_source
from headrace.types.field_types import schema_of

SCHEMA = schema_of({"id": str, "amount": float, "note": str | None, "at": hr.Timestamp})
NOON = "2026-01-01T12:00:00Z"


def read(place, *, schema=SCHEMA, mapping=None, arrived_at=None, start=0, format=None):
    """Every value and every arrival of a source."""
    values, arrivals = [], []
    for row in read_rows(find_source(str(place), format), parse_columns(schema, mapping or {}, arrived_at), start):
        values.append(row.value)
        arrivals += [] if row.arrival is None else [row.arrival]
    return values, arrivals


def written(folder, name, text):
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def table(folder, name="old.parquet", **columns):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    return file


def moments(*texts):
    return pa.array([datetime.fromisoformat(text) for text in texts], pa.timestamp("us", "UTC"))


# CSV.


def test_csv_cells_are_read_by_their_fields_types(tmp_path):
    file = written(tmp_path, "old.csv", f'id,amount,note,at,more\np1,1.50,,{NOON},x\n"p,2",2,"a ""b""",{NOON},y\n')
    values, _ = read(file)
    assert values[0].decode() == f'{{"id":"p1","amount":1.50,"note":null,"at":"{NOON}"}}'
    assert json.loads(values[1]) == {"id": "p,2", "amount": 2, "note": 'a "b"', "at": NOON}


def test_a_cell_that_is_not_its_fields_type_makes_the_row_invalid_and_is_kept(tmp_path):
    file = written(tmp_path, "old.csv", f"id,amount,at\np1,a lot,{NOON}\np2,1,{NOON},extra\n")
    values, _ = read(file)
    assert json.loads(values[0])["amount"] == "a lot"
    faults = [decoder(SCHEMA)(value).fault for value in values]
    assert [fault.kind for fault in faults] == ["invalid", "invalid"]
    assert json.loads(values[1]) == ["p2", "1", NOON, "extra"]


def test_csv_columns_can_be_mapped_and_one_can_say_when_rows_arrived(tmp_path):
    file = written(tmp_path, "old.csv", f"payment,amount,at,seen\np1,1,{NOON},2026-01-01T12:00:05Z\np2,1,{NOON},\n")
    values, arrivals = read(file, mapping={"payment": "id"}, arrived_at="seen")
    assert [json.loads(value)["id"] for value in values] == ["p1", "p2"]
    assert arrivals == [str(micros(NOON) + 5 * SECOND), ""]


def test_what_is_no_csv_is_refused_with_its_place(tmp_path):
    file = written(tmp_path, "old.csv", f'id,amount,at\np1,"1"x,{NOON}\n')
    with pytest.raises(DataError) as refused:
        read(file)
    assert (refused.value.code, refused.value.where) == ("bad-file", "old.csv:2")


@pytest.mark.parametrize(
    ("header", "options", "told"),
    [
        ("id,at", {}, "There is no column for the required field 'amount'."),
        ("id,id,amount,at", {}, "Two columns have one name."),
        ("id,amount,at", {"mapping": {"nr": "id"}}, "There is no such column."),
        ("id,amount,at", {"arrived_at": "seen"}, "There is no such column."),
        ("nr,amount,at", {"mapping": {"nr": "card"}}, "--map names a field that the stream does not have."),
        ("a,b,amount,at", {"mapping": {"a": "id", "b": "id"}}, "--map gives one field two columns."),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path, header, options, told):
    with pytest.raises(HeadraceError) as refused:
        read(written(tmp_path, "old.csv", f"{header}\n"), **options)
    assert refused.value.message == told


# JSON lines.


def test_json_lines_stay_as_they_are_written(tmp_path):
    lines = [b'{"id": "p1", "amount": 1.50, "more": [1.10]}', b"{", b"\xff"]
    file = written(tmp_path, "old.jsonl", b"\n".join([lines[0], b"", *lines[1:]]) + b"\r\n")
    assert read(file)[0] == lines


def test_mapped_keys_of_json_lines_are_renamed_and_numbers_keep_their_digits(tmp_path):
    file = written(tmp_path, "old.jsonl", '{"nr": "p1", "amount": 1.1000000000000000000000001}\n{"nr": 1, "nr": 2}\n')
    values, _ = read(file, mapping={"nr": "id"})
    assert values == [b'{"id":"p1","amount":1.1000000000000000000000001}', b'{"nr": 1, "nr": 2}']
    assert decoder(SCHEMA)(values[1]).fault.kind == "malformed"


def test_a_field_that_is_there_under_both_names_is_malformed_rather_than_chosen(tmp_path):
    file = written(tmp_path, "old.jsonl", f'{{"nr": "a", "id": "b", "amount": 1, "at": "{NOON}"}}\n')
    (value,), _ = read(file, mapping={"nr": "id"})
    assert decoder(SCHEMA)(value).fault.kind == "malformed"


def test_arrival_in_whole_numbers_needs_its_unit(tmp_path):
    file = written(tmp_path, "old.jsonl", '{"seen": 1767268800}\n{"seen": "1767268800"}\n{"seen": 1.5}\n{}\n')
    assert read(file, arrived_at="seen:s")[1] == [str(micros(NOON))] * 2 + ["not a moment: 1.5", ""]
    with pytest.raises(DataError, match="whole numbers of an unknown unit") as refused:
        read(file, arrived_at="seen")
    assert refused.value.where == "old.jsonl:1"


def test_an_arrival_column_that_is_a_field_has_the_fields_unit():
    schema = schema_of({"at": hr.Timestamp, "seen": hr.Timestamp("ms")})
    assert parse_columns(schema, {"received": "seen"}, "received").arrival == ArrivalColumn("received", "ms")
    assert parse_columns(schema, {}, "seen:us").arrival == ArrivalColumn("seen", "us")
    assert parse_columns(schema, {}, "other").arrival == ArrivalColumn("other", None)


# Parquet and Delta.


def test_every_type_of_a_parquet_file_is_read_back_exactly(tmp_path):
    schema = schema_of(
        {
            "text": str,
            "flag": bool,
            "whole": int,
            "real": float,
            "money": hr.Decimal(38, 10),
            "at": hr.Timestamp,
            "ms": hr.Timestamp("ms"),
            "tags": list[str],
            "place": {"city": str, "at": hr.Timestamp | None},
            "nothing": str | None,
        }
    )
    moment = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
    row = {
        "text": 'é"\\\n',
        "flag": True,
        "whole": -(2**63),
        "real": 0.1 + 0.2,
        "money": Decimal("1234567890123456789012345678.0000000001"),
        "at": moment,
        "ms": moment,
        "tags": ["a", ""],
        "place": {"city": "Ulm", "at": moment},
        "nothing": None,
    }
    file = tmp_path / "old.parquet"
    pq.write_table(pa.Table.from_pylist([row]), file)
    (value,), _ = read(file, schema=schema)
    found = decoder(schema)(value)
    at = micros(moment)
    assert found.fault is None
    same = {name: row[name] for name in ("text", "flag", "whole", "real", "money", "tags", "nothing")}
    assert found.row == same | {"at": at, "ms": at - at % 1_000, "place": {"city": "Ulm", "at": at}}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back_as_it_was(tmp_path_factory, number):
    folder = tmp_path_factory.mktemp("floats")
    file = table(folder, id=["a"], amount=[number], at=moments("2026-01-01T12:00:00+00:00"))
    (value,), _ = read(file)
    row = decoder(SCHEMA)(value).row
    assert row is not None
    assert row["amount"] == number


def test_a_value_that_has_no_json_form_makes_the_row_malformed_and_is_kept(tmp_path):
    file = table(tmp_path, id=["a"], amount=[float("nan")], at=moments("2026-01-01T12:00:00+00:00"))
    (value,), _ = read(file)
    assert b"NaN" in value
    assert decoder(SCHEMA)(value).fault.kind == "malformed"


def test_a_folder_of_parquet_files_is_read_in_the_order_of_paths_with_its_folders_as_columns(tmp_path):
    at = moments("2026-01-01T12:00:00+00:00")
    folder = tmp_path / "old"
    table(folder, "note=b/1.parquet", id=["3"], amount=[1.0], at=at)
    table(folder, "note=a/2.parquet", id=["2"], amount=[1.0], at=at, more=[1])
    table(folder, "note=a/1.parquet", id=["1"], amount=[1], at=at)
    written(folder, "_SUCCESS", "")
    found = [json.loads(value) for value in read(folder)[0]]
    assert [(row["id"], row["note"]) for row in found] == [("1", "a"), ("2", "a"), ("3", "b")]
    assert read_extent(find_source(str(folder))).size == 3
    assert "more" in read_extent(find_source(str(folder))).columns


def test_a_row_of_a_table_is_named_by_its_file_and_its_number_in_it(tmp_path):
    at = moments(*["2026-01-01T12:00:00+00:00"] * 3)
    for name in ("a", "b"):
        table(tmp_path / "old", f"{name}.parquet", id=["1", "2", "3"], amount=[1.0, float("nan"), 1.0], at=at)
    rows = list(read_rows(find_source(str(tmp_path / "old")), parse_columns(SCHEMA, {}, None)))
    assert [row.place for row in rows] == [f"{name}.parquet, row {n}" for name in "ab" for n in (1, 2, 3)]
    assert [row.fault and row.fault.place for row in rows[:2]] == [None, "a.parquet, row 2"]
    later = read_rows(find_source(str(tmp_path / "old")), parse_columns(SCHEMA, {}, None), 4)
    assert [row.place for row in later] == ["b.parquet, row 2", "b.parquet, row 3"]


def test_parquet_that_came_through_a_pipe_is_read_from_memory(tmp_path):
    file = table(tmp_path, id=["a"], amount=[1.0], at=moments("2026-01-01T12:00:00+00:00"), more=[1])
    others: list[str] = []
    given = Source("stdin", "parquet", content=file.read_bytes(), report=others.append)
    (row,) = read_rows(given, Columns(SCHEMA))
    assert (row.place, json.loads(row.value)["id"], others) == ("stdin, row 1", "a", ["more"])
    assert read_extent(given).size == 1


def test_a_delta_table_is_read_as_its_present_version_and_partition_columns_are_there(tmp_path):
    from deltalake import DeltaTable, write_deltalake

    at = moments(*["2026-01-01T12:00:00+00:00"] * 2)
    place = str(tmp_path / "old")
    write_deltalake(
        place, pa.table({"id": ["1", "2"], "amount": [1.0, 2.0], "note": ["a", "b"], "at": at}), partition_by=["note"]
    )
    DeltaTable(place).delete("id = '1'")
    given = find_source(place)
    assert given.format == "delta"
    assert [json.loads(value) for value in read(place)[0]] == [{"id": "2", "amount": 2.0, "note": "b", "at": NOON}]
    before = given.fingerprint()
    write_deltalake(place, pa.table({"id": ["3"], "amount": [1.0], "note": ["a"], "at": at[:1]}), mode="append")
    assert find_source(place).fingerprint() != before


def test_a_delta_table_with_deletion_vectors_is_refused_rather_than_read_with_its_dead_rows(tmp_path):
    from deltalake import write_deltalake

    place = tmp_path / "old"
    at = moments("2026-01-01T12:00:00+00:00")
    write_deltalake(str(place), pa.table({"id": ["1"], "amount": [1.0], "at": at}))
    log = place / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    log.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(DataError, match="features that Headrace does not read"):
        read(place)


def test_timestamps_without_a_time_zone_are_refused(tmp_path):
    naive = pa.array([datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)], pa.timestamp("us"))
    with pytest.raises(DataError, match="'at' have no time zone"):
        read(table(tmp_path, id=["a"], amount=[1.0], at=naive))
    good = moments("2026-01-01T12:00:00+00:00")
    with pytest.raises(DataError, match="'seen' have no time zone"):
        read(table(tmp_path, id=["a"], amount=[1.0], at=good, seen=naive), arrived_at="seen")


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    with pytest.raises(DataError, match="not Parquet that can be read"):
        read(written(tmp_path, "old.parquet", "PAR1 but no more"))


# Going on from a row, and telling sources apart.


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "folder", "delta"])
def test_reading_from_a_row_on_gives_the_rest_of_the_same_rows(tmp_path, format, monkeypatch):
    from deltalake import write_deltalake

    monkeypatch.setattr("headrace.ingest.files.table_rows.BATCH_ROWS", 7)
    ids = [f"p{n}" for n in range(40)]
    at = pa.array(
        [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(40)], pa.timestamp("us", "UTC")
    )
    held = {"id": ids, "amount": [1.0] * 40, "at": at, "seen": at}
    place = tmp_path / f"old.{format}"
    if format == "csv":
        place.write_text("id,amount,at,seen\n" + "".join(f"{id},1,{NOON},{NOON}\n" for id in ids))
    elif format == "jsonl":
        place.write_text("".join(f'{{"id":"{id}","seen":"{NOON}"}}\n' for id in ids))
    elif format == "parquet":
        pq.write_table(pa.table(held), place, row_group_size=9)
    elif format == "folder":
        for part in range(4):
            table(
                place, f"{part}.parquet", **{name: column[part * 10 : part * 10 + 10] for name, column in held.items()}
            )
    else:
        for part in range(4):
            piece = pa.table({name: column[part * 10 : part * 10 + 10] for name, column in held.items()})
            write_deltalake(str(place), piece, mode="append")
    whole = read(place, arrived_at="seen")
    assert len(whole[0]) == len(whole[1]) == 40
    for start in (0, 1, 7, 10, 25, 39, 40):
        values, arrivals = read(place, arrived_at="seen", start=start)
        assert (values, arrivals) == (whole[0][start:], whole[1][start:])


def test_a_source_is_known_by_its_content_and_not_by_its_name(tmp_path):
    one, two = written(tmp_path, "a.csv", "id\n1\n"), written(tmp_path, "b.csv", "id\n1\n")
    assert find_source(str(one)).fingerprint() == find_source(str(two)).fingerprint()
    two.write_text("id\n2\n")
    assert find_source(str(one)).fingerprint() != find_source(str(two)).fingerprint()
    assert find_source(str(one)).fingerprint() != Source(str(one), "jsonl").fingerprint()


@pytest.mark.parametrize(
    ("name", "format", "told"),
    [
        ("missing.csv", None, "There is no such file or folder."),
        ("empty", None, "The folder is empty."),
        ("empty", "delta", "The folder holds no Delta table."),
        ("data.txt", None, "The format of the file is not known."),
        ("data.txt", "delta", "A Delta table is a folder, and this is a file."),
    ],
)
def test_a_place_that_holds_no_history_is_refused(tmp_path, name, format, told):
    (tmp_path / "empty").mkdir()
    written(tmp_path, "data.txt", "x")
    with pytest.raises((DataError, UsageError)) as refused:
        find_source(str(tmp_path / name), format)
    assert refused.value.message == told
