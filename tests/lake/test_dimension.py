"""A dimension's table is read whole and as its definition says, or not at all."""

from __future__ import annotations

import dataclasses
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction

import headrace as hr
from headrace.errors import DataError
from headrace.lake import dimension as module
from headrace.lake.dimension import DimensionLocation, compute_digest, read
from headrace.lake.dimension_table import ENDLESS, load_rows
from headrace.lake.files import filesystem
from tests.lake.bucket import bucket
from tests.lake.dimensions import MOMENT, merchants, table, written

A, B = ("a", "food", 0.5, 10), ("b", "travel", None, 20)


def refusal(place_or_table, dimension=merchants):
    given, is_place = place_or_table, isinstance(place_or_table, DimensionLocation)
    with pytest.raises(DataError) as caught:
        _ = read(given) if is_place else load_rows(dimension, [given], "1")
    assert caught.value.code == "bad-dimension"
    return caught.value


def merchants_of(made):
    return made.rows.column("merchant").to_pylist()


def test_rows_come_in_the_order_of_their_keys_each_valid_until_the_next(tmp_path):
    place = written(tmp_path, ("b", "x", 1.0, 5, 9), ("a", "x", 1.0, 20), ("b", "x", 1.0, 7), ("a", "x", 1.0, 10, 12))
    found = read(place)
    assert merchants_of(found) == ["a", "a", "b", "b"]
    assert found.begins.tolist() == [10, 20, 5, 7]
    assert found.ends.tolist() == [12, ENDLESS, 7, ENDLESS]
    assert (found.keys, found.most) == (2, 2)


def test_a_table_without_rows_is_a_table(tmp_path):
    found = read(written(tmp_path))
    assert (found.rows.num_rows, found.keys, found.most) == (0, 0, 0)


def test_all_files_of_a_folder_are_one_table(tmp_path):
    (tmp_path / "2026").mkdir()
    pq.write_table(table(A), tmp_path / "one.parquet")
    pq.write_table(table(B), tmp_path / "2026" / "two.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".one.parquet.crc").write_text("x")
    assert merchants_of(read(DimensionLocation(merchants, str(tmp_path)))) == ["a", "b"]


def test_a_delta_table_is_read_in_its_newest_version_or_an_earlier_one(tmp_path):
    place = DimensionLocation(merchants, str(tmp_path))
    write_deltalake(place.address, table(A))
    seen, first = compute_digest(place), read(place).version
    assert compute_digest(place) == seen
    write_deltalake(place.address, table(B), mode="append")
    assert compute_digest(place) != seen
    assert merchants_of(read(place)) == ["a", "b"]
    assert read(place).version != first
    assert merchants_of(read(place, first)) == ["a"]


def test_a_partitioned_delta_table_has_its_columns_too(tmp_path):
    write_deltalake(str(tmp_path), table(A, B), partition_by=["category"])
    assert read(DimensionLocation(merchants, str(tmp_path))).rows.column("category").to_pylist() == ["food", "travel"]


def test_files_that_are_no_longer_what_they_were_cannot_be_read_as_they_were(tmp_path):
    place = written(tmp_path, A)
    first = read(place).version
    assert read(place, first).version == first
    written(tmp_path, A, B)
    with pytest.raises(DataError, match="no longer what it was"):
        read(place, first)


def test_a_version_changes_with_the_files_and_with_nothing_else(tmp_path):
    place = written(tmp_path, A)
    first = compute_digest(place)
    assert compute_digest(place) == first
    written(tmp_path, A)
    assert compute_digest(place) != first, "another file of the same size"


def test_a_table_in_object_storage_is_reached_with_the_lakes_options():
    with bucket() as options:
        write_deltalake("s3://lake/delta", table(A, B), storage_options=options)
        files, path = filesystem("s3://lake/plain", options)
        with files.open_output_stream(f"{path}/one.parquet") as out:
            pq.write_table(table(A), out)
        found = {}
        for address in ("delta", "plain", "plain/one.parquet"):
            place = DimensionLocation(merchants, f"s3://lake/{address}", options)
            found[address] = merchants_of(read(place))
            assert compute_digest(place) == compute_digest(place)
        assert found == {"delta": ["a", "b"], "plain": ["a"], "plain/one.parquet": ["a"]}
        assert "no table" in refusal(DimensionLocation(merchants, "s3://lake/nothing", options)).message


def test_timestamps_as_spark_used_to_write_them_are_utc_to_the_end_of_time(tmp_path):
    last = 253_402_300_799_000_000
    file = tmp_path / "merchants.parquet"
    pq.write_table(table(("a", "food", 0.5, 10, last)), file, use_deprecated_int96_timestamps=True)
    found = read(DimensionLocation(merchants, str(file)))
    assert (found.begins.tolist(), found.ends.tolist()) == ([10], [last])


def test_they_are_in_a_delta_table_too(tmp_path):
    last, file = 253_402_300_799_000_000, tmp_path / "one.parquet"
    rows = table(("a", "food", 0.5, 10, last))
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    delta = DeltaTable.create(str(tmp_path), rows.schema)
    added = AddAction(file.name, file.stat().st_size, {}, 0, True, "{}")
    delta.create_write_transaction([added], "append", delta.schema(), [])
    found = read(DimensionLocation(merchants, str(tmp_path)))
    assert (found.begins.tolist(), found.ends.tolist()) == ([10], [last])


def test_a_delta_table_whose_commits_were_all_folded_is_one_all_the_same(tmp_path):
    write_deltalake(str(tmp_path), table(A))
    write_deltalake(str(tmp_path), table(B), mode="overwrite")
    DeltaTable(str(tmp_path)).create_checkpoint()
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        commit.unlink()
    place = DimensionLocation(merchants, str(tmp_path))
    assert merchants_of(read(place)) == ["b"], "not the file of the version before"
    assert compute_digest(place) == compute_digest(place)


@pytest.mark.parametrize(
    "types",
    [
        {"merchant": pa.large_string(), "category": pa.dictionary(pa.int32(), pa.string())},
        {"risk": pa.float32(), "since": pa.timestamp("ns", tz="Europe/Berlin")},
        {"merchant": pa.string_view(), "until": pa.null()},
    ],
)
def test_other_forms_of_the_same_types_are_taken(types):
    found = load_rows(merchants, [table(("a", "food", 0.5, 10_000), **types)], "1")
    assert found.begins.tolist() == [10 if "since" in types else 10_000]
    assert found.rows.to_pylist()[0]["risk"] == 0.5


EVERY = {
    "shop": int,
    "open": bool,
    "price": hr.Decimal(10, 2),
    "opened": hr.Timestamp | None,
    "tags": list[str],
    "vector": list[float] | None,
}


def test_every_type_of_a_feature_comes_through():
    shops = hr.dimension("shops", "shops", by=("shop", "open"), fields=EVERY, valid_from="since")
    given = pa.table(
        {
            "shop": pa.array([7, 7], pa.int32()),
            "open": [True, False],
            "price": pa.array([decimal.Decimal("1.5"), decimal.Decimal("2.25")], pa.decimal128(12, 2)),
            "opened": pa.array([None, 5], pa.timestamp("ms", tz="UTC")),
            "tags": pa.array([["a", "b"], []], pa.large_list(pa.string())),
            "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
            "since": pa.array([1, 1], MOMENT),
        }
    )
    found = load_rows(shops, [given], "1").rows
    assert found.column("open").to_pylist() == [False, True]
    assert found.column("price").to_pylist() == [decimal.Decimal("2.25"), decimal.Decimal("1.50")]
    assert found.column("opened").cast("int64").to_pylist() == [5_000, None]
    assert found.column("tags").to_pylist() == [[], ["a", "b"]]
    assert found.column("vector").to_pylist() == [None, [1.0, 2.0]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (table(A, (None, "food", 0.5, 11)), "1 of 2 rows has no value in column 'merchant'."),
        (table(A, ("b", "food", 0.5, None), ("c", "food", 0.5, None)), "2 of 3 rows have no value in column 'since'."),
        (table(("a", None, 0.5, 1)), "1 of 1 row has no value in column 'category'."),
        (table(("a", "food", float("nan"), 1)), "1 of 1 value has NaN or infinity in column 'risk'."),
        (table(A, A, A), "Two rows of dimension 'merchants' have one key and one 'since'."),
        (table(A, since=pa.timestamp("us")), "The timestamps of column 'since' have no time zone."),
        (table(A, since=pa.int64()), "Column 'since' is not of type timestamp."),
        (table(("a", "food", 1, 1), risk=pa.int64()), "Column 'risk' is not of type float."),
        (table(("a", 5, 0.5, 1), category=pa.int64()), "Column 'category' is not of type string."),
        (table(("a", "food", 0.5, 2**62)), "1 of 1 value has no such moment in 'since'."),
    ],
)
def test_a_table_that_gives_no_one_answer_is_refused(given, said):
    error = refusal(given)
    assert error.message == said
    assert error.got
    assert error.where.startswith("merchants.parquet")


def test_two_rows_of_one_moment_are_named_by_their_key():
    error = refusal(table(B, A, ("a", "travel", 0.1, 10), B))
    assert error.got == "{'merchant': 'a'} from 1970-01-01T00:00:00.000010Z, and 1 more"


def test_a_number_that_does_not_fit_is_refused_and_not_cut():
    shops = hr.dimension("shops", "s", by="shop", fields={"shop": int, "price": hr.Decimal(3, 1)}, valid_from="since")
    given = {"shop": pa.array([2**63], pa.uint64()), "price": [decimal.Decimal("1.5")], "since": pa.array([1], MOMENT)}
    assert "'shop' does not fit" in refusal(pa.table(given), shops).message
    given |= {"shop": [1], "price": [decimal.Decimal("1.25")]}
    assert "'price' does not fit" in refusal(pa.table(given), shops).message


def test_a_missing_column_is_named_with_the_nearest(tmp_path):
    other = hr.dimension("merchants", "m", by="merchant", fields={"merchant": str, "rsik": float}, valid_from="since")
    error = refusal(dataclasses.replace(written(tmp_path, A), dimension=other))
    assert error.message == "The table of dimension 'merchants' has no column 'rsik'."
    assert error.hint == "Did you mean 'risk'?"


@pytest.mark.parametrize("kind", ["nothing", "an empty folder", "no parquet", "half a file"])
def test_what_is_no_table_is_said_to_be_none(tmp_path, kind):
    place = DimensionLocation(merchants, str(tmp_path / "merchants.parquet"))
    if kind == "an empty folder":
        (tmp_path / "merchants.parquet").mkdir()
    elif kind == "no parquet":
        (tmp_path / "merchants.parquet").write_text("merchant,category\n")
    elif kind == "half a file":
        written(tmp_path, A)
        whole = (tmp_path / "merchants.parquet").read_bytes()
        (tmp_path / "merchants.parquet").write_bytes(whole[: len(whole) // 2])
    error = refusal(place)
    assert "merchants" in error.message
    assert error.hint


def test_files_that_change_while_they_are_read_are_refused(tmp_path, monkeypatch):
    place = written(tmp_path, A)
    original = module._read_file

    def read_and_replace(place, path):
        found = original(place, path)
        written(tmp_path, A, B)
        return found

    monkeypatch.setattr(module, "_read_file", read_and_replace)
    assert "changed while it was read" in refusal(place).message
