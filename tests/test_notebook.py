"""`hr.preview`: a table in, a readable table out."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import DataError, DefinitionError

clicks = hr.stream(
    "clicks",
    fields={"id": str, "user": str, "cost": hr.Decimal(10, 2) | None, "at": hr.Timestamp},
    event_time="at",
    event_id="id",
    allowed_lateness="2m",
)
users = hr.view("users", clicks, by="user", features={"clicks": hr.count(over="1h"), "cost": hr.sum("cost", over="1h")})

table = pd.DataFrame(
    {
        "id": ["a", "b", "b", "c"],
        "user": ["ann", "ann", "ann", "bob"],
        "at": pd.to_datetime(["2026-01-01T00:00:00Z"] * 3 + ["2026-01-01T00:10:00Z"]),
        "ignored": [1, 2, 3, 4],
    }
)


def test_one_row_per_key_at_the_end():
    shown = hr.preview(users, table)
    assert shown[["user", "clicks"]].to_dict("records") == [{"user": "ann", "clicks": 2}, {"user": "bob", "clicks": 1}]


def test_one_row_per_event_with_its_verdict_and_the_value_right_after_it():
    shown = hr.preview(users, table, each="event")
    assert list(shown["verdict"]) == ["admitted", "admitted", "duplicate", "admitted"]
    assert list(shown["clicks"]) == [1, 2, 2, 1]


def test_an_arrival_column_makes_events_late():
    arrived = table.assign(arrived_at=pd.to_datetime(["2026-01-01T01:00:00Z"] * 4))
    assert set(hr.preview(users, arrived, each="event")["verdict"]) == {"late"}


def test_an_arrow_table_does_as_well_and_decimals_stay_exact():
    rows = pa.table(
        {
            "id": ["a"],
            "user": ["ann"],
            "cost": pa.array([None], pa.decimal128(10, 2)),
            "at": pa.array([0], pa.timestamp("us", tz="UTC")),
        }
    )
    assert hr.preview(users, rows)["clicks"].tolist() == [1]


def test_a_moment_can_be_chosen_and_must_have_an_offset():
    assert hr.preview(users, table, at="2026-01-01T00:05:00Z")["clicks"].tolist() == [2, 0]
    with pytest.raises(DefinitionError) as caught:
        hr.preview(users, table, at="2026-01-01T00:05:00")
    assert caught.value.code == "naive-timestamp"


def test_naive_times_in_the_table_are_refused():
    with pytest.raises(DefinitionError) as caught:
        hr.preview(users, table.assign(at=pd.to_datetime(["2026-01-01"] * 4)))
    assert caught.value.code == "naive-timestamp"


def test_a_missing_column_is_named():
    with pytest.raises(DataError) as caught:
        hr.preview(users, table.drop(columns="user"))
    assert caught.value.got == "['user']"


def test_what_is_no_table_is_refused():
    with pytest.raises(DataError):
        hr.preview(users, [1, 2, 3])
