"""Training sets from Python: whatever the spine is, its rows get what the reference says; wrong ones are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import headrace as hr
from headrace import project
from headrace.errors import DataError, DefinitionError, HeadraceError, ProjectError
from headrace.training.manifest import read_manifest
from headrace.training.reproduce import make_again, refuse_changed
from tests.training.shop import EVENTS, FEATURES, MERCHANTS, SPINE, bring_in, expected, make_shop, write_merchants

pytestmark = pytest.mark.spark

NAMES = ["payments_1h", "spend_1d", "last_shop", "first_id", "crowd"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory, spark):
    return make_shop(tmp_path_factory.mktemp("training") / "shop", spark)


def frame(rows: Any = SPINE) -> pd.DataFrame:
    return pd.DataFrame(rows)


def arrow(rows: Any = SPINE) -> pa.Table:
    """As pandas writes it to Parquet, with moments in nanoseconds."""
    table = pa.Table.from_pandas(frame(rows), preserve_index=False)
    at = table.schema.get_field_index("t")
    return table.cast(table.schema.set(at, pa.field("t", pa.timestamp("ns", "UTC"))))


def in_micros(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("t")
    return table.cast(table.schema.set(at, pa.field("t", pa.timestamp("us", "UTC"))))


def values(rows: Any) -> list[dict[str, Any]]:
    """The features of rows, by time, as plain Python."""
    ordered = sorted(rows, key=lambda row: row["t"])
    return [{name: row[name] for name in NAMES} for row in ordered]


def of_spark(found: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in found.collect()]


def of_pandas(found: pd.DataFrame) -> list[dict[str, Any]]:
    rows = found.to_dict("records")
    return [{str(name): None if pd.isna(value) else value for name, value in row.items()} for row in rows]


def refused(spine: Any, features: Any = "fraud", kind: Any = DataError, **asked: Any) -> HeadraceError:
    with pytest.raises(kind) as found:
        hr.training_set(spine, features, **asked)
    error: HeadraceError = found.value
    return error


def test_pandas_comes_back_as_pandas_in_its_order_with_its_index(shop, spark):
    given = frame().sample(frac=1, random_state=1)
    given = given.set_index(pd.Index([f"r{n % 7}" for n in range(len(given))]))
    found = hr.training_set(given, "fraud", project=shop, spark=spark)
    pd.testing.assert_frame_equal(found[list(given.columns)], given)
    assert list(found.columns) == [*given.columns, *NAMES]
    assert values(of_pandas(found)) == expected(shop, "fraud")
    assert expected(shop, "fraud") != expected(shop, "fraud", "as_happened")


def test_a_row_asks_for_what_had_happened_when_told_to(shop, spark):
    found = hr.training_set(frame(), "fraud", mode="as_happened", project=shop, spark=spark)
    assert values(of_pandas(found)) == expected(shop, "fraud", "as_happened")


def test_every_kind_of_spine_gets_the_same_values(shop, spark, tmp_path):
    pq.write_table(arrow(), tmp_path / "spine.parquet")
    write_deltalake(tmp_path / "delta", in_micros(arrow()), partition_by=["shop"])
    text = frame()
    text["t"] = [moment.isoformat() for moment in text["t"]]
    text.to_csv(tmp_path / "spine.csv", index=False)
    rows = " UNION ALL ".join(
        f"SELECT '{row['card']}' AS card, {row['shop']} AS shop, TIMESTAMP'{row['t'].isoformat()}' AS t, "
        f"{row['amount']}D AS amount"
        for row in SPINE
    )
    spines = {
        "spark": spark.createDataFrame(in_micros(arrow())),
        "parquet": tmp_path / "spine.parquet",
        "delta": str(tmp_path / "delta"),
        "csv": str(tmp_path / "spine.csv"),
        "sql": f"WITH asked AS ({rows}) SELECT DISTINCT asked.* FROM asked CROSS JOIN silver",
    }
    wanted = expected(shop, "fraud")
    for kind, spine in spines.items():
        found = of_spark(hr.training_set(spine, ["fraud"], project=shop, spark=spark))
        assert values(found) == wanted, kind
        assert [row["amount"] for row in sorted(found, key=lambda row: row["t"])] == [row["amount"] for row in SPINE]


def test_an_event_counts_itself_when_it_is_included(shop, spark):
    sql = "SELECT id, card, shop, amount, _arrived_at AS t, _arrived_at, _partition, _offset FROM payments_silver"
    plain, own = (
        {row["id"]: row for row in of_spark(hr.training_set(sql, "cards", project=shop, spark=spark, **asked))}
        for asked in ({}, {"include_event": "payments"})
    )
    late = {event["id"] for event in EVENTS if event["received"] - event["at"] > timedelta(hours=1)}
    assert len(plain) == len(EVENTS)
    for key, row in own.items():
        assert row["payments_1h"] - plain[key]["payments_1h"] == (0 if key in late else 1)


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        (lambda rows: rows.drop(columns="t"), "bad-spine", "The spine has no column 't', which is the time."),
        (lambda rows: rows.drop(columns="card"), "bad-spine", "no column 'card', which is a key"),
        (lambda rows: rows.drop(columns="amount"), "bad-spine", "which is a request value of crowd"),
        (lambda rows: rows.assign(card=[None, *rows.card[1:]]), "bad-spine", "is null in some rows"),
        (lambda rows: rows.assign(t=rows.t.dt.tz_localize(None)), "bad-spine", "cannot be of type timestamp"),
        (lambda rows: rows.assign(shop=rows.shop + 0.5), "bad-spine", "cannot be of type integer"),
        (lambda rows: rows.assign(shop="07"), "bad-spine", "cannot be read in some rows"),
        (lambda rows: rows.assign(crowd=1), "duplicate-name", "has the name of another"),
        (lambda rows: rows.assign(Amount=1), "bad-spine", "Two columns of the spine have one name"),
        (lambda rows: rows[:0], "bad-spine", "The spine has no rows"),
        (lambda rows: rows.assign(t=pd.Timestamp("2126-01-01", tz="UTC")), "bad-spine", "yet to come"),
        (lambda rows: rows.rename(columns={"label": 3}), "bad-spine", "need names"),
        (lambda rows: rows.assign(label=[1, *"a" * 19]), "bad-spine", "cells of several types"),
    ],
)
def test_a_spine_that_cannot_be_used_is_refused_with_why(shop, spark, change, code, told):
    error = refused(change(frame()), project=shop, spark=spark)
    assert (error.code, told in error.message) == (code, True), error


def test_times_that_cannot_be_read_are_counted_and_one_is_shown(shop, spark):
    rows = frame().assign(t=["2025-01-05T12:00:00Z", "2025-01-05T12:00:00", "soon", *["2025-01-05T12:00:00Z"] * 17])
    error = refused(rows, project=shop, spark=spark)
    assert error.got == "2 of 20 rows, such as '2025-01-05T12:00:00'"
    assert "RFC 3339" in str(error.hint)


def test_what_is_asked_for_and_is_not_there_is_refused(shop, spark, tmp_path):
    asked = {"project": shop, "spark": spark}
    assert refused(frame(), "frauds", ProjectError, **asked).hint == "Did you mean 'fraud'?"
    assert refused(frame(), "cards", ProjectError, include_event="payment", **asked).code == "not-found"
    assert refused(frame(), downsample="lable=0:0.1", **asked).hint == "Did you mean 'label'?"
    assert "to downsample" in refused(frame(), downsample="label=7:0.1", **asked).message
    assert refused("SELECT card, at AS t FROM payments_gold", "cards", **asked).code == "bad-query"
    assert refused("SELECT nothing FROM silver", "cards", **asked).code == "bad-query"
    assert refused(str(tmp_path / "none.csv"), **asked).code == "bad-file"
    (tmp_path / "bad.csv").write_text("card,t\nc1,2025-01-05T12:00:00Z\nc2,2025-01-05T12:00:00Z,more\n")
    assert refused(str(tmp_path / "bad.csv"), "cards", **asked).code == "bad-file"
    assert refused(frame(), 7, HeadraceError, **asked).code == "bad-usage"
    assert refused([1], "cards", HeadraceError, **asked).code == "bad-usage"


def test_an_on_demand_function_that_raises_stops_it_with_the_feature_and_the_row(shop, spark):
    error = refused(frame(), "failing", HeadraceError, project=shop, spark=spark)
    assert (error.code, error.message) == ("on-demand-failed", "On-demand feature 'fails' failed.")
    assert str(error.where).startswith("card='c")
    assert "ZeroDivisionError" in str(error.got)


def test_an_on_demand_function_must_say_what_it_returns(shop, spark, tmp_path):
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "rates.py").write_text("RATE = 1\n")
    (tmp_path / "features.py").write_text(FEATURES + '\nlast = hr.feature_set("last", [untyped])\n')
    error = refused(frame(), "last", DefinitionError, project=tmp_path, spark=spark)
    assert (error.code, error.got) == ("bad-type", "nothing")
    assert "features.py:" in str(error.where)


def test_a_lake_without_the_stream_is_refused(spark, tmp_path):
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "rates.py").write_text("RATE = 1\n")
    (tmp_path / "features.py").write_text(FEATURES)
    assert refused(frame(), "cards", project=tmp_path, spark=spark).code == "lake-empty"


def test_a_set_in_a_folder_says_what_it_is_and_can_be_made_again(shop, spark, tmp_path):
    pq.write_table(arrow(), tmp_path / "spine.parquet")
    asked = {"split": "0.5,0.25,0.25", "downsample": "label=0:0.7", "seed": 5, "project": shop, "spark": spark}
    found = hr.training_set(tmp_path / "spine.parquet", "fraud", out=tmp_path / "one", **asked)
    rows = sorted(found.collect())
    told = read_manifest(tmp_path / "one")
    assert told["spine"]["rows"] == 20
    assert told["rows"] == len(rows) == sum(told["splits"].values()) < 20
    assert told["asked"]["downsample"] == "label=0:0.7"
    assert list(told["columns"]) == NAMES == list(told["features"])
    assert told["columns"]["last_shop"]["nulls"] == sum(row.last_shop is None for row in rows)
    assert told["lake"] == {"payments": {"silver": told["lake"]["payments"]["silver"]}}
    assert told["plan"] == shop.plan().fingerprint

    again = make_again(shop, told, tmp_path / "two", session=spark, format="delta")
    assert sorted(spark.read.parquet(*DeltaTable(tmp_path / "two/data").file_uris()).collect()) == rows
    same = {"spine", "features", "lake", "rows", "splits", "weight", "columns"}
    assert {name: again[name] for name in same} == {name: told[name] for name in same}

    pq.write_table(arrow(SPINE[:-1]), tmp_path / "spine.parquet")
    with pytest.raises(DataError) as other:
        make_again(shop, told, tmp_path / "three", session=spark)
    assert (other.value.code, "not the one" in other.value.message) == ("changed-since", True)
    assert not (tmp_path / "three").exists()


def test_a_set_from_sql_is_the_same_again_though_more_has_arrived_since(spark, tmp_path):
    loaded = make_shop(tmp_path / "shop", spark)
    asked = {"include_event": "payments", "project": loaded, "spark": spark}
    sql = "SELECT id, card, _arrived_at AS t, _arrived_at, _partition, _offset FROM silver WHERE amount > 3 -- ever"
    rows = sorted(hr.training_set(sql, "cards", out=tmp_path / "one", **asked).collect())
    bring_in(loaded, [EVENTS[0] | {"id": "new", "amount": 77.0}], spark)
    now = sorted(hr.training_set(sql, "cards", **asked).collect())
    make_again(loaded, read_manifest(tmp_path / "one"), tmp_path / "two", session=spark)
    again = sorted(spark.read.parquet(str(tmp_path / "two/data")).collect())
    assert again == rows
    assert len(now) == len(rows) + 1


def test_a_set_of_other_definitions_is_not_made_again(shop, spark, tmp_path):
    hr.training_set(frame(), "fraud", out=tmp_path / "one", project=shop, spark=spark)
    told = json.loads((tmp_path / "one/manifest.json").read_text())
    refuse_changed(shop.plan(), told)
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "rates.py").write_text("RATE = 1\n")
    changed = FEATURES.replace('hr.sum("amount", over="1d")', 'hr.sum("amount", over="2d")')
    (tmp_path / "features.py").write_text(changed.replace("payments_1h * amount", "payments_1h + amount"))
    with pytest.raises(DataError) as other:
        refuse_changed(project.load(tmp_path).plan(), told)
    assert (other.value.code, other.value.got) == ("changed-since", "['spend_1d', 'crowd']")
    with pytest.raises(DataError, match="pandas DataFrame, which is not kept"):
        make_again(shop, told, tmp_path / "two", session=spark)


def test_pandas_in_a_folder_has_the_types_that_spark_would_write(shop, spark, tmp_path):
    found = hr.training_set(frame(), "fraud", out=tmp_path / "one", project=shop, spark=spark)
    kept = pq.read_table(tmp_path / "one/data").sort_by("t")
    assert values(kept.to_pylist()) == values(of_pandas(found)) == expected(shop, "fraud")
    assert [str(kept.schema.field(name).type) for name in ("t", "last_shop")] == ["timestamp[us, tz=UTC]", "int64"]


def test_a_folder_with_something_in_it_is_left_alone_and_one_that_failed_is_taken_away(shop, spark, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("mine")
    error = refused(frame(), out=tmp_path / "there", project=shop, spark=spark)
    assert error.code == "training-set-there"
    assert (tmp_path / "there/file").read_text() == "mine"
    refused(frame(), "failing", HeadraceError, out=tmp_path / "new", project=shop, spark=spark)
    assert not (tmp_path / "new").exists()
    refused(spark.createDataFrame(in_micros(arrow())), "failing", HeadraceError, out=tmp_path / "new", project=shop)
    assert not (tmp_path / "new").exists()


def test_the_moment_of_now_needs_all_that_the_log_has(shop, spark):
    from headrace.topics import open_log

    with open_log(shop.config) as log:
        log.create_topic("payments", partitions=1)
        log.append("payments", b"{}")
    rows = frame().assign(t=datetime.now(UTC))
    with pytest.raises(HeadraceError) as behind:
        hr.training_set(rows, "cards", project=shop, spark=spark)
    assert behind.value.code == "lake-behind"
    assert len(hr.training_set(frame(), "cards", project=shop, spark=spark)) == 20, "of then nothing waits"


def test_dimensions_are_as_of_each_row_and_on_demand_functions_take_them(shop, spark):
    found = of_pandas(hr.training_set(frame(), "places", project=shop, spark=spark))
    wanted = expected(shop, "places")
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted
    assert {row["category"] for row in found} == {"food", "wine", "toys", None}
    alone = of_pandas(hr.training_set(frame(), "merchants", project=shop, spark=spark))
    assert [row["risk"] for row in alone] == [row["risk"] for row in found]


def test_a_set_is_not_made_again_with_another_table_of_a_dimension(spark, tmp_path):
    shop = make_shop(tmp_path / "shop", spark)
    pq.write_table(arrow(), tmp_path / "spine.parquet")
    hr.training_set(str(tmp_path / "spine.parquet"), "places", out=tmp_path / "set", project=shop, spark=spark)
    told = read_manifest(tmp_path / "set")
    assert list(told["dimensions"]) == ["merchants"]
    again = make_again(shop, told, tmp_path / "again", session=spark)
    assert again["columns"] == told["columns"]
    write_merchants(tmp_path / "shop", MERCHANTS[:2])
    with pytest.raises(DataError) as refusal:
        make_again(shop, told, tmp_path / "third", session=spark)
    assert refusal.value.code == "bad-dimension"
    assert not (tmp_path / "third").exists()
