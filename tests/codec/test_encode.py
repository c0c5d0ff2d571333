"""Rows written as canonical JSON are read back equal."""

from __future__ import annotations

import decimal
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from headrace.codec.json.read import decoder
from headrace.codec.json.write import coerce, encode
from headrace.errors import DataError, HeadraceError
from headrace.types.field_types import Decimal, List, Struct, Timestamp, optional, schema_of
from tests.codec.strategies import schemas_with_rows


@given(schemas_with_rows)
def test_a_row_is_read_back_equal(pair: tuple[Struct, dict[str, Any]]):
    schema, row = pair
    read = decoder(schema)(encode(schema, row))
    assert read.fault is None
    assert read.row == row
    assert coerce(schema, row) == row


@given(schemas_with_rows)
def test_the_bytes_do_not_depend_on_the_order_of_the_row(pair: tuple[Struct, dict[str, Any]]):
    schema, row = pair
    assert encode(schema, dict(reversed(row.items()))) == encode(schema, row)


def test_the_form_is_canonical():
    schema = schema_of(
        {
            "at": Timestamp,
            "ms": Timestamp("ms"),
            "price": Decimal(10, 2),
            "x": float,
            "note": str | None,
            "tags": list[str | None],
            "place": optional({"city": str}),
        }
    )
    row = {
        "place": {"city": "Zürich"},
        "tags": ["a", None],
        "note": None,
        "x": 1,
        "price": decimal.Decimal("1E+2"),
        "ms": 1_500_000,
        "at": 1_767_225_600_500_000,
    }
    assert encode(schema, row).decode() == (
        '{"at":"2026-01-01T00:00:00.500000Z","ms":1500,"price":100,"x":1.0,"tags":["a",null],"place":{"city":"Zürich"}}'
    )


@pytest.mark.parametrize(
    ("annotation", "given_value", "value"),
    [
        (Timestamp, datetime(2026, 1, 1, tzinfo=UTC), 1_767_225_600_000_000),
        (Timestamp, "2026-01-01T01:00:00+01:00", 1_767_225_600_000_000),
        (Timestamp("s"), datetime(2026, 1, 1, tzinfo=UTC), 1_767_225_600_000_000),
        (float, 3, 3.0),
        (int, 3.0, 3),
        (Decimal(5, 2), 3, decimal.Decimal("3.00")),
        (Decimal(5, 2), "3.5", decimal.Decimal("3.50")),
        (Decimal(5, 2), 9.99, decimal.Decimal("9.99")),
        (float | None, float("nan"), None),
        (list[float | None], [float("nan"), 1], [None, 1.0]),
    ],
)
def test_friendly_input_is_taken_where_nothing_is_lost(annotation: Any, given_value: Any, value: Any):
    found = coerce(schema_of({"f": annotation}), {"f": given_value})["f"]
    assert (found, type(found)) == (value, type(value))


def test_a_row_of_a_pandas_table_is_taken():
    import pandas as pd

    table = pd.DataFrame(
        {
            "n": [1, 2],
            "x": [1.5, None],
            "at": pd.to_datetime(pd.Series(["2026-01-01T00:00:00Z", None])),
            "s": ["a", pd.NA],
        }
    )
    schema = schema_of({"n": int, "x": float | None, "at": Timestamp | None, "s": str | None})
    assert [coerce(schema, dict(row)) for _, row in table.iterrows()] == [
        {"n": 1, "x": 1.5, "at": 1_767_225_600_000_000, "s": "a"},
        {"n": 2, "x": None, "at": None, "s": None},
    ]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, None),
        (str, 5),
        (str, "\ud800"),
        (int, 2**63),
        (int, 1.5),
        (int, True),
        (bool, 1),
        (float, float("inf")),
        (float, 10**400),
        (float, True),
        (float, "1"),
        (Decimal(5, 2), decimal.Decimal("0.001")),
        (Decimal(5, 2), decimal.Decimal("NaN")),
        (Decimal(5, 2), 1e-7),
        (Decimal(5, 2), True),
        (Timestamp("s"), 1),
        (Timestamp, 10**18),
        (Timestamp, datetime(2026, 1, 1)),  # noqa: DTZ001
        (Timestamp, "yesterday"),
        (list[int], "12"),
        (list[int], [None]),
        (list[int], {1: 2}),
        ({"x": int}, 5),
        (str, object()),
    ],
)
def test_what_would_not_be_read_back_is_refused(annotation: Any, value: Any):
    with pytest.raises(HeadraceError) as error:
        encode(schema_of({"f": annotation}), {"f": value})
    assert error.value.code in ("bad-record", "naive-timestamp")


def test_a_refusal_names_the_field():
    schema = schema_of({"items": List(schema_of({"price": Decimal(5, 2)}))})
    with pytest.raises(DataError, match=r"items\[\]\.price must be a plain number that fits decimal\(5,2\)"):
        encode(schema, {"items": [{"price": decimal.Decimal("1000")}]})


def test_fields_the_schema_does_not_have_are_left_out():
    assert json.loads(encode(schema_of({"a": int}), {"a": 1, "b": object()})) == {"a": 1}
