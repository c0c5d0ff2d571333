"""Answers as a table: no number changes because another is missing, and no column hides another."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from headrace.client import FeatureAnswer
from headrace.client.dataframe import frame_of
from headrace.errors import DataError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def answers(*values: Any, key: str = "user", name: str = "x", as_of: datetime | None = NOW) -> list[FeatureAnswer]:
    fresh = None if as_of is None else 0.0
    return [
        FeatureAnswer(
            "users", {key: f"u{number}"}, {name: value}, NOW, as_of, as_of, fresh, False, as_of is None, "micro-batch"
        )
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int64"),
        ([2**53 + 1, None], "Int64"),
        ([2**70, None], "object"),
        ([True, None], "boolean"),
        ([True, False], "bool"),
        ([Decimal("1.10"), None], "object"),
        ([[1, 2], [3]], "object"),
        ([None, None], "object"),
    ],
)
def test_a_column_holds_its_values_exactly(values, dtype):
    column = frame_of("users", answers(*values))["x"]
    assert str(column.dtype) == dtype
    assert [None if value is None or str(value) == "<NA>" else value for value in column.tolist()] == values


def test_a_missing_float_is_nan():
    column = frame_of("users", answers(1.5, None))["x"]
    assert (str(column.dtype), column.isna().tolist()) == ("float64", [False, True])


def test_freshness_that_is_not_known_is_missing_and_stale():
    frame = frame_of("users", answers(1, as_of=None))
    assert (str(frame["as_of"].dtype), frame["as_of"].isna().tolist()) == ("datetime64[us, UTC]", [True])
    assert (frame["freshness_ms"].isna().tolist(), frame["stale"].tolist()) == ([True], [True])


@pytest.mark.parametrize("names", [{"name": "stale"}, {"key": "x"}, {"key": "as_of"}])
def test_two_columns_of_one_name_are_refused(names):
    with pytest.raises(DataError) as refused:
        frame_of("users", answers(1, **names))
    assert refused.value.code == "duplicate-name"
