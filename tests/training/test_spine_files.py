"""Parquet and Delta as spines: which columns there are, and whether Spark can read the files itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from headrace.ingest.files.source import find_source
from headrace.training.spine_files import carried, files_of

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = {"card": ["a", "b"], "t": pa.array([MOMENT, MOMENT], pa.timestamp("us", "UTC"))}


def test_a_plain_file_is_left_to_spark(tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "a.parquet")
    found = files_of(find_source(str(tmp_path / "a.parquet")))
    assert found.plain
    assert [place.endswith("a.parquet") for place, _ in found.places] == [True]


def test_nanoseconds_become_microseconds_and_are_not_left_to_spark(tmp_path):
    table = pa.table(ROWS | {"t": pa.array([MOMENT, MOMENT], pa.timestamp("ns", "UTC"))})
    pq.write_table(table, tmp_path / "a.parquet")
    found = files_of(find_source(str(tmp_path / "a.parquet")))
    assert not found.plain
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")


def test_moments_that_spark_wrote_in_its_old_form_are_in_utc_and_left_to_it(tmp_path):
    table = pa.table(ROWS | {"when": pa.array([MOMENT, MOMENT], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    found = files_of(find_source(str(tmp_path / "a.parquet")))
    assert found.plain
    assert found.schema.field("when").type == pa.timestamp("us", "UTC")


def test_a_column_in_the_names_of_folders_is_a_column(tmp_path):
    for label in (0, 1):
        (tmp_path / f"set/label={label}").mkdir(parents=True)
        pq.write_table(pa.table(ROWS), tmp_path / f"set/label={label}/a.parquet")
    found = files_of(find_source(str(tmp_path / "set")))
    assert not found.plain
    assert [cells["label"] for _, cells in found.places] == [0, 1]
    assert "label" in found.schema.names


@pytest.mark.parametrize("by", [[], ["card"]])
def test_a_delta_table_has_its_files_and_what_stands_in_its_log(tmp_path, by):
    write_deltalake(tmp_path / "t", pa.table(ROWS), partition_by=by or None)
    found = files_of(find_source(str(tmp_path / "t")))
    assert found.plain is not bool(by)
    assert sorted(cells.get("card", "-") for _, cells in found.places) == (["a", "b"] if by else ["-"])
    assert all(pq.read_table(place, partitioning=None).num_rows for place, _ in found.places)


def test_types_that_spark_has_no_form_for_are_carried_in_others():
    given = pa.schema(
        [
            ("a", pa.dictionary(pa.int8(), pa.large_string())),
            ("b", pa.uint32()),
            ("c", pa.uint64()),
            ("d", pa.list_(pa.timestamp("s"))),
            ("e", pa.struct([("x", pa.timestamp("ns", "Europe/Berlin"))])),
            ("f", pa.int64()),
        ]
    )
    assert [str(kind) for kind in carried(given).types] == [
        "string",
        "int64",
        "decimal128(20, 0)",
        "list<element: timestamp[us]>",
        "struct<x: timestamp[us, tz=UTC]>",
        "int64",
    ]
