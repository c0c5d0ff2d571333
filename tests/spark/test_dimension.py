"""A dimension joined in Spark gives every row of a spine what the reference gives, however the join is made."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.define.dimension import value_at
from headrace.errors import DataError
from headrace.lake.dimension_table import DimensionTable, load_rows
from headrace.read.dimension_index import DimensionIndex
from headrace.spark.dimension import FEW, attach_dimension
from headrace.types.field_types import arrow_type

pytestmark = pytest.mark.spark

shops = hr.dimension(
    "shops",
    "shops.parquet",
    by=("name", "number", "open"),
    fields={
        "name": str,
        "number": int,
        "open": bool,
        "risk": float | None,
        "fee": hr.Decimal(8, 2),
        "opened": hr.Timestamp | None,
        "tags": list[str] | None,
        "left_out": str | None,
    },
    valid_from="since",
    valid_to="until",
)
COLUMNS = {
    ("shops", "risk"): "shops.risk",
    ("shops", "fee"): "fee",
    ("shops", "opened"): "shop opened",
    ("shops", "tags"): "tags",
    ("others", "risk"): "other",
}


def table_of(rows: list[dict[str, Any]]) -> DimensionTable:
    kinds = {field.name: arrow_type(field.type) for field in shops.schema}
    arrays = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    return load_rows(shops, [pa.table(arrays)], "1")


def some_rows(chance: random.Random, versions: int) -> list[dict[str, Any]]:
    rows = []
    for name in ("", "a", "é"):
        for number, is_open in ((-1, True), (7, True), (7, False)):
            for since in chance.sample(range(versions * 2), versions):
                until = chance.choice([None, None, since + chance.randint(-2, 4)])
                rows.append(
                    {
                        "name": name,
                        "number": number,
                        "open": is_open,
                        "risk": chance.choice([None, chance.random()]),
                        "fee": Decimal(chance.randint(0, 999)) / 100,
                        "opened": chance.choice([None, chance.randint(0, 10**9)]),
                        "tags": chance.choice([None, [], ["x", "y"]]),
                        "left_out": None,
                        "since": since,
                        "until": until,
                    }
                )
    return rows


def some_spine(chance: random.Random, last: int) -> list[tuple[Any, ...]]:
    """Rows with their number, their key and time; some keys nobody has, and some are null."""
    return [
        (
            at,
            chance.choice(["", "a", "é", "nobody", None]),
            chance.choice([-1, 7, 8, None]),
            chance.choice([True, False, None]),
            chance.choice([None, *range(-1, last)]),
        )
        for at in range(400)
    ]


@pytest.mark.parametrize(("versions", "few"), [(4, FEW), (40, 8)], ids=["by validity", "in order"])
def test_every_row_of_a_spine_has_what_the_reference_and_serving_have(spark, versions, few):
    chance = random.Random(versions)
    rows = some_rows(chance, versions)
    table = table_of(rows)
    given = some_spine(chance, versions * 2 + 5)
    spine = spark.createDataFrame(given, "row INT, name STRING, number INT, open BOOLEAN, t BIGINT")
    spine = spine.selectExpr("row", "name", "number", "open", "timestamp_micros(t) AS `the time`", "1 AS `a.b`")
    made = attach_dimension(spark, spine, shops, COLUMNS, time="the time", table=table, few=few)
    assert made.columns == [*spine.columns, "shops.risk", "fee", "shop opened", "tags"]
    assert dict(made.dtypes)["shop opened"] == "timestamp"
    plan = made._jdf.queryExecution().optimizedPlan().toString()
    assert ("Window" in plan) is (few < versions)
    found = {
        row[0]: row[1:]
        for row in made.selectExpr("row", "`shops.risk`", "fee", "unix_micros(`shop opened`)", "tags").collect()
    }
    index, hits = DimensionIndex(table), 0
    for at, name, number, is_open, t in given:
        key = (name, number, is_open)
        expected = None if t is None else value_at(shops, rows, key, t)
        hits += expected is not None
        wanted = expected or shops.nothing
        assert found[at] == (wanted["risk"], wanted["fee"], wanted["opened"], wanted["tags"]), (key, t)
        if None not in (*key, t):
            assert index.value_at(key, t) == expected
    assert (len(found), hits > 20) == (400, True)


def test_a_spine_that_does_not_fit_is_refused(spark):
    table = table_of(some_rows(random.Random(1), 1))
    spine = spark.createDataFrame([("a", 7, True)], "name STRING, number INT, open BOOLEAN")
    spine = spine.selectExpr("*", "timestamp_micros(1) AS t")
    assert attach_dimension(spark, spine, shops, {("others", "risk"): "x"}, time="t", table=table) is spine
    refused = {
        "no column 'number'": spine.drop("number"),
        "not of type integer": spine.withColumn("number", spine.number.cast("string")),
        "the name of another column": spine.withColumnRenamed("t", "FEE"),
    }
    for said, other in refused.items():
        with pytest.raises(DataError) as caught:
            attach_dimension(spark, other, shops, COLUMNS, time="t", table=table)
        assert said in caught.value.message
