"""A spine in Spark: cells read by their types, rows chosen whatever the partitioning, columns summed up."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import headrace as hr
from headrace.clock import micros, parse_timestamp
from headrace.errors import DataError
from headrace.training.build import _sample_rows
from headrace.training.feature_columns import FeatureColumns
from headrace.training.request import read_request
from headrace.training.spine_columns import SpineColumn, typed
from headrace.training.spine_facts import facts, projection, questions
from headrace.types.field_types import Boolean, Float, Integer, String, Timestamp, type_of

pytestmark = pytest.mark.spark

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
ASKED = FeatureColumns("users", (users,))
CELLS = [
    "2026-01-01T00:00:00Z",
    "2026-01-01 00:00:00.1234567+05:30",
    "2026-01-01T00:00:00",
    "2026-02-30T00:00:00Z",
    "2026-01-01",
    "0001-01-01T00:00:00+01:00",
    "0",
    "-7",
    "007",
    "+7",
    "9223372036854775807",
    "9223372036854775808",
    "1.50",
    "1.505",
    "-0.5e3",
    "1e400",
    "NaN",
    "Infinity",
    " 1",
    "1\n",
    "true",
    "True",
    "",
]


def meant(kind: Any, cell: str) -> Any:
    """What a cell of text is, as the documentation has it."""
    match kind:
        case String():
            return cell
        case Timestamp():
            found = parse_timestamp(cell)
            return None if found is not None and found < micros("0001-01-01T00:00:00Z") else found
        case Integer():
            return {"0": 0, "-7": -7, "9223372036854775807": 2**63 - 1}.get(cell)
        case Boolean():
            return {"true": True}.get(cell)
        case Float():
            numbers = ("0", "-7", "9223372036854775807", "9223372036854775808", "1.50", "1.505", "-0.5e3")
            return float(cell) if cell in numbers else None
    return {"0": Decimal(0), "-7": Decimal(-7), "1.50": Decimal("1.50")}.get(cell)


def test_text_is_read_as_a_request_or_a_record_would_have_it(spark):
    kinds = [String(), Timestamp(), Integer(), Boolean(), Float(), hr.Decimal(5, 2)]
    frame = spark.createDataFrame([(n, cell) for n, cell in enumerate(CELLS)], "n INT, cell STRING")
    exprs = [typed(SpineColumn("cell", kind, "a key"), "string") for kind in kinds]
    shown = [
        f"unix_micros({text})" if isinstance(kind, Timestamp) else text for kind, text in zip(kinds, exprs, strict=True)
    ]
    found = frame.selectExpr("n", *(f"{text} AS c{at}" for at, text in enumerate(shown))).orderBy("n").collect()
    expected = [tuple(meant(kind, cell) for kind in kinds) for cell in CELLS]
    assert [tuple(row)[1:] for row in found] == expected


def test_other_types_are_taken_where_nothing_is_lost_and_refused_where_something_would_be(spark):
    frame = spark.sql(
        "SELECT 7 AS i, CAST(7 AS DECIMAL(5, 2)) AS d, 1.5D AS f, double('NaN') AS nan, true AS b, "
        "timestamp_micros(5) AS t, array(1L) AS list, NULL AS void"
    )
    kinds = dict(frame.dtypes)

    def cell(name: str, kind: Any) -> Any:
        return frame.selectExpr(typed(SpineColumn(name, type_of(kind), "a key"), kinds[name])).collect()[0][0]

    assert (cell("i", str), cell("i", int), cell("i", float)) == ("7", 7, 7.0)
    assert (cell("i", hr.Decimal(3, 1)), cell("d", hr.Decimal(3, 1)), cell("d", float)) == (Decimal(7), Decimal(7), 7.0)
    assert (cell("f", float), cell("nan", float), cell("b", bool)) == (1.5, None, True)
    assert (cell("list", list[int]), cell("void", int)) == ([1], None)
    assert cell("i", hr.Timestamp("s")).timestamp() == 7.0
    for name, kind in [("f", str), ("f", int), ("b", str), ("i", bool), ("i", hr.Timestamp), ("list", list[str])]:
        with pytest.raises(DataError) as refused:
            cell(name, kind)
        assert (refused.value.code, refused.value.got) == ("bad-spine", kinds[name])


def test_csv_is_read_cell_by_cell_as_its_text(spark, tmp_path):
    from headrace.ingest.files.source import find_source
    from headrace.ingest.files.text_rows import read_header
    from headrace.spark.training.spine import from_csv

    file = tmp_path / "spine.csv"
    file.write_text('\ufeffcard no,note,n\n007,"two\nlines, ""quoted""",1\n\n 8 ,,\n', encoding="utf-8")
    names = read_header(find_source(str(file)))
    found = [tuple(row) for row in from_csv(spark, str(file), names).collect()]
    assert names == ["card no", "note", "n"]
    assert found == [("007", 'two\nlines, "quoted"', "1"), (" 8 ", None, None)]


def looked_at(frame: Any, asked: Any, *, text: bool = False) -> Any:
    from headrace.spark.training.spine import answers

    kinds = dict(frame.dtypes)
    needed = [SpineColumn("t", Timestamp(), "the time"), SpineColumn("user", String(), "a key")]
    said = answers(frame, questions(needed, asked, kinds, text=text))
    return needed, facts(said, needed, asked, kinds, text=text), kinds


def test_one_pass_says_what_a_spine_is_known_by_whatever_the_order_of_its_rows(spark):
    rows = [(f"u{n}", datetime(2026, 1, 1, 0, n, tzinfo=UTC), n if n else None) for n in range(30)]
    schema = "user STRING, t TIMESTAMP, label INT"
    frame = spark.createDataFrame(rows, schema)
    _, found, _ = looked_at(frame, read_request("users"))
    assert (found.rows, found.first, found.last) == (30, micros(rows[0][1]), micros(rows[-1][1]))
    again = [
        looked_at(other, read_request("users"))[1].fingerprint
        for other in (
            spark.createDataFrame(rows[::-1], schema).repartition(5),
            spark.createDataFrame([*rows[:-1], (*rows[-1][:2], 77)], schema),
            spark.createDataFrame(rows[:-1], schema),
            frame.withColumnRenamed("label", "target"),
        )
    ]
    assert [each == found.fingerprint for each in again] == [True, False, False, False]


def test_columns_of_text_get_the_type_that_all_their_cells_have_the_shape_of(spark):
    rows = [
        ("1", "007", "0.5", "true", None, "1e3", "12345678901234567890", "a"),
        ("-2", "8", "12", "False", None, "2", "1", None),
    ]
    names = ["whole", "padded", "share", "flag", "nothing", "power", "long", "text"]
    schema = ", ".join(f"{name} STRING" for name in ["user", "t", *names])
    frame = spark.createDataFrame([("u", "2026-01-01T00:00:00Z", *row) for row in rows], schema)
    needed, found, kinds = looked_at(frame, read_request("users", downsample_by="flag=false:0.5"), text=True)
    made = frame.selectExpr(*projection(needed, found, kinds))
    assert dict(made.dtypes) == {
        "user": "string",
        "t": "timestamp",
        "whole": "bigint",
        "padded": "string",
        "share": "double",
        "flag": "boolean",
        "nothing": "string",
        "power": "double",
        "long": "string",
        "text": "string",
    }
    assert [row.flag for row in made.collect()] == [True, False]


def test_rows_are_chosen_by_what_they_are_however_they_are_spread(spark):
    frame = spark.range(20_000).selectExpr(
        "concat('u', id % 4000) AS user", "timestamp_micros(id * 1000000) AS t", "id % 10 = 0 AS label"
    )
    asked = read_request("users", sample=0.5, downsample_by="label=false:0.2", split_by="0.6,0.4", seed=3)
    _, found, _ = looked_at(frame, asked)

    def chosen(given: Any, how: Any = asked) -> list[Any]:
        return sorted(_sample_rows(given, ASKED, how, found).collect())

    rows = chosen(frame.repartition(1))
    assert rows == chosen(frame.repartition(7, "label"))
    assert rows != chosen(
        frame, read_request("users", sample=0.5, downsample_by="label=false:0.2", split_by="0.6,0.4", seed=4)
    )
    positive, negative = ([row for row in rows if row.label is which] for which in (True, False))
    assert 900 < len(positive) < 1_100
    assert 1_600 < len(negative) < 2_000
    assert {row.weight for row in positive} == {1.0}
    assert {row.weight for row in negative} == {5.0}
    train, test = ([row.t for row in rows if row.split == part] for part in ("train", "test"))
    assert max(train) < min(test)
    assert len(train) == len(rows) * 6 // 10


def test_what_columns_look_like_is_told(spark):
    from headrace.spark.training.column_summary import summary

    frame = spark.sql(
        "SELECT IF(id = 0, NULL, CAST(id AS DOUBLE)) AS number, 7L AS one, IF(id < 30, 'a', concat('b', id)) AS word, "
        "id % 4 = 0 AS flag, timestamp_micros(id) AS moment, array(id) AS list, CAST(NULL AS BIGINT) AS nothing "
        "FROM range(101)"
    )
    found = summary(frame, frame.columns)
    number = found["number"]
    assert (number["nulls"], round(number["null_rate"], 4), number["min"], number["max"]) == (1, 0.0099, 1.0, 100.0)
    assert (number["mean"], 85 <= number["distinct"] <= 115) == (50.5, True)
    assert number["histogram"]["edges"][::20] == [1.0, 100.0]
    assert (len(number["histogram"]["edges"]), sum(number["histogram"]["counts"])) == (21, 100)
    assert number["histogram"]["counts"] == [5] * 20
    assert found["one"]["histogram"]["counts"] == [101, *[0] * 19]
    assert found["word"]["top"][:2] == [{"value": "a", "rows": 30}, {"value": "b100", "rows": 1}]
    assert len(found["word"]["top"]) == 20
    assert found["flag"]["top"] == [{"value": False, "rows": 75}, {"value": True, "rows": 26}]
    assert (found["moment"]["max"], found["list"].keys() & {"top", "histogram"}) == (
        "1970-01-01T00:00:00.000100Z",
        set(),
    )
    assert (found["nothing"]["null_rate"], found["nothing"]["min"]) == (1.0, None)
