"""What type an expression has, and whether it may be null."""

from __future__ import annotations

import pytest

from headrace.expression import ColumnType, parse
from headrace.types.field_types import Integer, List, Timestamp
from tests.expression.asking import read


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + 1", "integer"),
        ("i + f", "float"),
        ("i / 2", "float"),
        ("d / 2", "float"),
        ("i % 2", "integer"),
        ("d + f", "float"),
        ("i + 1.5", "float"),
        ("d + 1.5", "decimal(11,2)"),
        ("d + 1", "decimal(11,2)"),
        ("d + i", "decimal(23,2)"),
        ("d + e", "decimal(19,6)"),
        ("d - e", "decimal(19,6)"),
        ("d * e", "decimal(29,8)"),
        ("d * 100", "decimal(14,2)"),
        ("d % e", "decimal(14,6)"),
        ("d * 1e2", "float"),
        ("-d", "decimal(10,2)"),
        ("floor(d)", "decimal(9,0)"),
        ("ceil(f)", "integer"),
        ("floor(i)", "integer"),
        ("round(d)", "decimal(9,0)"),
        ("round(d, 5)", "decimal(10,2)"),
        ("round(i, 2)", "integer"),
        ("sqrt(i)", "float"),
        ("coalesce(d, 0)", "decimal(10,2)"),
        ("coalesce(d, 0.005)", "decimal(11,3)"),
        ("greatest(i, f)", "float"),
        ("if(yes, i, NULL)", "integer"),
        ("CASE WHEN yes THEN 1 ELSE 2.5 END", "float"),
        ("nullif(i, f)", "integer"),
        ("s || t", "string"),
        ("i > 1", "boolean"),
        ("tags", "list of string"),
        ("tags[0]", "string"),
        ("place.site", "struct(name string)"),
        ("CAST(s AS INT)", "integer"),
        ("CAST(s AS FLOAT)", "float"),
        ("CAST(s AS DECIMAL(5))", "decimal(5,0)"),
        ("unix_micros(at)", "integer"),
        ("9223372036854775808", "decimal(19,0)"),
        ("-9223372036854775808", "integer"),
        ("CAST(NULL AS TIMESTAMP)", "timestamp"),
    ],
)
def test_the_type_follows_from_the_operands(text: str, kind: str) -> None:
    assert str(read(text).type) == kind


@pytest.mark.parametrize(
    "text",
    [
        "i = 1",
        "f > 1",
        "j IS NULL",
        "j <=> i",
        "maybe IS TRUE",
        "coalesce(j, 0)",
        "coalesce(j, i)",
        "greatest(j, i)",
        "i IN (1, 2)",
        "CASE WHEN maybe THEN 1 ELSE 2 END",
        "d + 1",
        "d * d",
        "CAST(d AS DECIMAL(12,2))",
        "CAST(d AS DECIMAL(10,1))",
        "CAST(i AS DOUBLE)",
        "CAST(i AS DECIMAL(19,0))",
        "CAST(d AS BIGINT)",
        "CAST(CAST(d AS DECIMAL(18,0)) AS BIGINT)",
        "CAST(i AS STRING)",
        "-f",
        "abs(f)",
        "length(s)",
        "s LIKE 'a%'",
        "hour(at)",
        "round(d, 1)",
        "floor(d)",
        "s || 'x'",
        "array_contains(rates, 1)",
        "f * 2 > 1",
    ],
)
def test_what_cannot_fail_on_non_null_input_is_not_nullable(text: str) -> None:
    assert not read(text).nullable


@pytest.mark.parametrize(
    "text",
    [
        "i + 1",
        "-i",
        "abs(i)",
        "f + 1",
        "f / 2",
        "i % 2",
        "d % 2",
        "j = 1",
        "s = t",
        "i IN (1, NULL)",
        "coalesce(j, NULL)",
        "CASE WHEN yes THEN 1 END",
        "nullif(i, 0)",
        "CAST(s AS BIGINT)",
        "CAST(f AS BIGINT)",
        "CAST(i AS DECIMAL(18,0))",
        "CAST(h AS BIGINT)",
        "CAST(CAST(i AS DECIMAL(19,0)) AS BIGINT)",
        "CAST(d AS DECIMAL(9,2))",
        "CAST(d AS DECIMAL(9,1))",
        "floor(f)",
        "sqrt(f)",
        "place.zone",
        "place.site.name",
        "tags[0]",
        "array_contains(tags, 'a')",
        "substring(s, 1)",
    ],
)
def test_what_can_fail_or_has_nullable_input_is_nullable(text: str) -> None:
    assert read(text).nullable


def test_a_member_is_nullable_only_through_its_struct_or_itself() -> None:
    place = read("place").type

    assert not parse("place.site.name", {"place": ColumnType(place)}).nullable
    assert parse("place.zone", {"place": ColumnType(place)}).nullable


def test_how_a_timestamp_was_written_does_not_keep_two_from_meeting() -> None:
    columns = {"a": ColumnType(Timestamp("ms")), "b": ColumnType(Timestamp()), "c": ColumnType(List(Timestamp("s")))}

    assert parse("coalesce(a, b, c[0])", columns).type == Timestamp()


def test_a_bare_null_takes_its_neighbours_type() -> None:
    assert read("coalesce(NULL, i)").type == Integer()
    assert read("NULL + i").type == Integer()
    assert str(read("NULL + d").type) == "decimal(11,2)"
