"""The canonical text: one for all spellings, and readable back to the same tree."""

from __future__ import annotations

import pytest
from hypothesis import given

from headrace.errors import ExpressionError
from headrace.expression import ColumnType, parse
from headrace.types.field_types import Integer
from tests.expression.asking import read
from tests.expression.generated import expressions


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("i+1", "i + 1"),
        ("  I  "[2:3].lower() + "\n +\t1", "i + 1"),
        ("(((i)))", "i"),
        ("i+j*2", "i + (j * 2)"),
        ("(i+j)*2", "(i + j) * 2"),
        ("yes and (maybe AND i=1)", "yes AND maybe AND (i = 1)"),
        ("yes or maybe and i=1", "yes OR (maybe AND (i = 1))"),
        ("not yes", "NOT yes"),
        ("!yes", "NOT yes"),
        ("i != 1", "i <> 1"),
        ("i == 1", "i = 1"),
        ("j is not null", "NOT (j IS NULL)"),
        ("i between 1 and 2", "(i >= 1) AND (i <= 2)"),
        ("i not in (1,2)", "NOT (i IN (1, 2))"),
        ("s not like 'a'", "NOT (s LIKE 'a')"),
        ("if(yes,1,2)", "CASE WHEN yes THEN 1 ELSE 2 END"),
        ("case i when 1 then 'a' else 'b' end", "CASE WHEN i = 1 THEN 'a' ELSE 'b' END"),
        ("CASE WHEN yes THEN 1 ELSE NULL END", "CASE WHEN yes THEN 1 END"),
        ("TRY_CAST(s AS LONG)", "CAST(s AS BIGINT)"),
        ("s::double", "CAST(s AS DOUBLE)"),
        ("i * 1.5", "CAST(i AS DOUBLE) * 1.5"),
        ("f > 1", "f > 1.0"),
        ("d > 1", "d > CAST(1.00 AS DECIMAL(10,2))"),
        ("i + 2L", "i + 2"),
        ("- 5", "-5"),
        ("-0.0 + f", "0.0 + f"),
        ("CAST('-0' AS DOUBLE) + f", "0.0 + f"),
        ("-(i)", "-i"),
        ("i - -5", "i - -5"),
        ("1E3 + f", "1000.0 + f"),
        ("NVL(j, 0)", "coalesce(j, 0)"),
        ("SUBSTR(s, 2)", "substring(s, 2)"),
        ("s||'x'||t", "concat(s, 'x', t)"),
        ("'it''s'", "'it''s'"),
        (r"'it\'s'", "'it''s'"),
        ('"it\'s"', "'it''s'"),
        (r"'a\tb\u0001'", r"'a\tb\u0001'"),
        ("`i` + 1", "i + 1"),
        ("Place.zone"[0].lower() + "lace.zone", "place.zone"),
        ("coalesce(place, NULL).site.name", "(coalesce(place, NULL)).site.name"),
        ("TIMESTAMP '2026-01-01T01:00:00+01:00' < at", "TIMESTAMP '2026-01-01T00:00:00Z' < at"),
        ("CAST('7' AS BIGINT) + i", "7 + i"),
        ("finite(f * 2)", "f * 2.0"),
        ("finite(f)", "f"),
    ],
)
def test_spellings_of_one_meaning_have_one_text(text: str, canonical: str) -> None:
    assert read(text).text == canonical
    assert read(canonical) == read(text)


def test_a_column_named_like_a_keyword_is_quoted() -> None:
    columns = {"case": ColumnType(Integer()), "Select": ColumnType(Integer()), "at": ColumnType(Integer())}

    expression = parse("`case` + `Select` + at", columns)

    assert expression.text == "(`case` + `Select`) + at"
    assert parse(expression.text, columns) == expression


@given(expressions(3))
def test_the_text_of_any_expression_reads_back_to_it(text: str) -> None:
    try:
        expression = read(text)
    except ExpressionError as error:
        if "digits" not in error.message:
            raise
        return

    again = read(expression.text)
    assert again == expression
    assert again.text == expression.text
    assert (again.nullable, again.spark()) == (expression.nullable, expression.spark())
