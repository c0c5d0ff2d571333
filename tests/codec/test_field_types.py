"""Types: what users may write, and the forms they take in Spark, Arrow and JSON."""

from __future__ import annotations

import decimal
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from headrace.errors import SchemaError
from headrace.types.field_types import (
    Boolean,
    Decimal,
    Field,
    Float,
    Integer,
    List,
    Maybe,
    String,
    Struct,
    Timestamp,
    arrow_type,
    field_of,
    from_form,
    optional,
    schema_of,
    type_of,
)
from tests.codec.generate import EVERYTHING
from tests.codec.strategies import types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (str, Field("f", String())),
        (bool, Field("f", Boolean())),
        (int | None, Field("f", Integer(), optional=True)),
        (float, Field("f", Float())),
        (datetime, Field("f", Timestamp())),
        (Timestamp, Field("f", Timestamp())),
        (Timestamp | None, Field("f", Timestamp(), optional=True)),
        (Timestamp("ms") | None, Field("f", Timestamp("ms"), optional=True)),
        (None | Decimal(5, 2), Field("f", Decimal(5, 2), optional=True)),
        (list[int], Field("f", List(Integer()))),
        (list[int | None], Field("f", List(Integer(), optional=True))),
        (List(Decimal(5)) | None, Field("f", List(Decimal(5)), optional=True)),
        ({"x": str}, Field("f", Struct((Field("x", String()),)))),
        (optional({"x": str | None}), Field("f", Struct((Field("x", String(), optional=True),)), optional=True)),
        (optional(str | None), Field("f", String(), optional=True)),
    ],
)
def test_a_field_is_read_as_users_write_it(written: Any, read: Field):
    assert field_of("f", written) == read


@given(types)
def test_a_type_comes_back_from_its_form(kind: Any):
    assert from_form(json.loads(json.dumps(kind.form))) == kind


@pytest.mark.parametrize(
    "written", [complex, "str", None, 3, list, dict, tuple[int], int | str, bytes, {1: 2}[1], object()]
)
def test_an_unknown_type_is_refused(written: Any):
    with pytest.raises(SchemaError) as error:
        type_of(written, "f")
    assert error.value.code == "bad-type"


@pytest.mark.parametrize("written", [decimal.Decimal, Decimal])
def test_a_decimal_without_digits_is_told_how_to_say_them(written: Any):
    with pytest.raises(SchemaError) as error:
        type_of(written)
    assert error.value.hint == "Say how many digits: hr.Decimal(10, 2)."


@pytest.mark.parametrize("digits", [(0, 0), (39, 0), (5, 6), (5, -1), ("5", 2), (5, None)])
def test_a_decimal_whose_digits_do_not_fit_is_refused(digits: Any):
    with pytest.raises(SchemaError) as error:
        Decimal(*digits)
    assert error.value.code == "bad-type"


def test_a_timestamp_of_an_unknown_unit_is_refused():
    with pytest.raises(SchemaError) as error:
        Timestamp("minutes")
    assert error.value.code == "bad-type"
    assert error.value.got == "'minutes'"


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "é", "a" * 101, "x" * 10_000_000, 5, None, "a\n", "`"])
def test_a_bad_field_name_is_refused_and_shown_short(name: Any):
    with pytest.raises(SchemaError) as error:
        schema_of({name: str})
    assert error.value.code == "bad-name"
    assert len(str(error.value)) < 400


def test_names_that_differ_only_in_case_are_refused():
    with pytest.raises(SchemaError) as error:
        schema_of({"card": str, "CARD": int})
    assert error.value.code == "duplicate-name"


def test_names_that_differ_only_in_case_are_refused_in_a_nested_struct():
    with pytest.raises(SchemaError) as error:
        schema_of({"place": {"x": str, "X": int}})
    assert error.value.code == "duplicate-name"


@pytest.mark.parametrize("fields", [{}, [], None, "id", {"place": {}}])
def test_fields_must_be_a_dict_with_something_in_it(fields: Any):
    with pytest.raises(SchemaError) as error:
        schema_of(fields)
    assert error.value.code == "bad-argument"


def test_a_field_that_is_not_there_names_the_closest_one():
    with pytest.raises(SchemaError) as error:
        schema_of({"amount": float})["amuont"]
    assert (error.value.code, error.value.hint) == ("unknown-field", "Did you mean 'amount'?")


@pytest.mark.parametrize(
    "form",
    [
        "text",
        None,
        5,
        {},
        {"decimal": [5]},
        {"decimal": ["5", 2]},
        {"decimal": [99, 2]},
        {"timestamp": "min"},
        {"list": None},
        {"struct": {}},
        {"struct": [None]},
        {"struct": [{"name": "a"}]},
        {"struct": [{"name": "a b", "type": "string"}]},
        {"struct": [{"name": 1, "type": "string"}]},
    ],
)
def test_a_broken_form_is_refused(form: Any):
    with pytest.raises(SchemaError) as error:
        from_form(form)
    assert error.value.code == "bad-type"


def test_a_type_or_something_else_than_none_is_not_a_type():
    with pytest.raises(TypeError):
        Decimal(5) | 5  # type: ignore[operator]
    assert Maybe(Decimal(5)) == Decimal(5) | None


def test_arrow_keeps_digits_microseconds_and_what_may_be_null():
    import pyarrow as pa

    schema = schema_of(
        {"d": Decimal(7, 3), "t": Timestamp("s"), "l": list[int | None], "s": {"x": str | None, "y": float}}
    )
    assert arrow_type(schema) == pa.struct(
        [
            pa.field("d", pa.decimal128(7, 3), nullable=False),
            pa.field("t", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=True)), nullable=False),
            pa.field(
                "s",
                pa.struct([pa.field("x", pa.string()), pa.field("y", pa.float64(), nullable=False)]),
                nullable=False,
            ),
        ]
    )
    assert arrow_type(Boolean()) == pa.bool_()


@pytest.mark.spark
def test_spark_reads_the_ddl_of_every_type(spark: SparkSession):
    reserved = schema_of({"select": int, "from": {"order": list[str], "by": Decimal(38, 38)}})
    for schema in (EVERYTHING, reserved):
        cast: Any = spark.sql(f"SELECT CAST(NULL AS {schema.ddl}) AS row").schema["row"].dataType
        assert [field.name for field in cast] == [field.name for field in schema]
        kinds = [field.dataType.simpleString() for field in cast if field.name in ("price", "at", "by")]
        assert kinds == (["decimal(10,2)", "timestamp"] if schema is EVERYTHING else [])
