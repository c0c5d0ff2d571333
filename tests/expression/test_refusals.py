"""What is refused, and in which words."""

from __future__ import annotations

import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ExpressionError, HeadraceError
from headrace.expression import ColumnType, grammar, parse
from headrace.types.field_types import Integer
from tests.expression.asking import read, refused
from tests.expression.generated import COLUMNS

FEW = {"amount": ColumnType(Integer()), "country": ColumnType(Integer())}


def error(text: str) -> list[str]:
    """The error's lines but the place in the test file."""
    with pytest.raises(ExpressionError) as caught:
        parse(text, FEW)
    return [line for line in str(caught.value).splitlines() if not line.startswith("  where:")]


def test_an_unknown_column_names_the_closest_one() -> None:
    assert error("amuont > 1") == [
        "There is no column 'amuont'.",
        "  code: unknown-field",
        "  got: 'amuont'",
        "  at: amuont > 1",
        "      ^^^^^^",
        "  hint: Did you mean 'amount'?",
    ]


def test_a_column_in_the_wrong_case_is_unknown() -> None:
    assert error("Amount > 1") == [
        "There is no column 'Amount'.",
        "  code: unknown-field",
        "  got: 'Amount'",
        "  at: Amount > 1",
        "      ^^^^^^",
        "  hint: Did you mean 'amount'? Upper and lower case matter.",
    ]


def test_a_parse_error_shows_where() -> None:
    assert error("(amount + ) * 2") == [
        "Something is missing before `)` at column 11.",
        "  code: bad-expression",
        "  got: '(amount + ) * 2'",
        "  at: (amount + ) * 2",
        "                ^",
    ]
    assert error("amount >\n  1 country") == [
        "Unexpected `country` at line 2, column 5.",
        "  code: bad-expression",
        "  got: 'amount >\\n  1 country'",
        "  at: amount >",
        "        1 country",
        "          ^^^^^^^",
    ]
    assert error("amount >  ") == [
        "Something is missing after `>` at column 9.",
        "  code: bad-expression",
        "  got: 'amount >  '",
        "  at: amount >",
        "              ^",
    ]
    assert error("(amount > 1")[0] == "`)` is expected near `1` at column 11."
    assert error("amount = 'x")[:3] == [
        "The expression cannot be read at column 10.",
        "  code: bad-expression",
        '  got: "amount = \'x"',
    ]


def test_an_aggregate_points_to_features() -> None:
    assert error("sum(amount) > 1") == [
        "There is no function `sum` in expressions.",
        "  code: unsupported-expression",
        "  got: 'sum'",
        "  at: sum(amount) > 1",
        "      ^^^^^^^^^^^",
        "  hint: Aggregates are features of a view, such as hr.sum(...); an expression sees one event.",
    ]


def test_an_unknown_function_names_the_closest_one() -> None:
    assert error("grates(amount, 1)") == [
        "There is no function `grates` in expressions.",
        "  code: unsupported-expression",
        "  got: 'grates'",
        "  at: grates(amount, 1)",
        "      ^^^^^^^^^^^^^^^^^",
        "  hint: Did you mean `greatest`?",
    ]


def test_a_wrong_type_names_both_and_shows_the_operands() -> None:
    assert error("amount = 'DE'") == [
        "`=` cannot take an integer and a string.",
        "  code: mistyped-expression",
        "  got: amount, 'DE'",
        "  at: amount = 'DE'",
        "      ^^^^^^^^^^^^^",
        "  hint: Write a CAST where the types differ.",
    ]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (
            "amount > 0\n  AND amuont < 9\n  AND country = 1",
            ["amount > 0", "  AND amuont < 9", "      ^^^^^^", "  AND country = 1"],
        ),
        ("amount > 0 AND length(amount) > 3", ["amount > 0 AND length(amount) > 3", "               ^^^^^^^^^^^^^^"]),
        ("1 + cast(amount AS DATE)", ["1 + cast(amount AS DATE)", "    ^^^^^^^^^^^^^^^^^^^^"]),
        ("'日本' = '語' AND amuont > 1", ["'日本' = '語' AND amuont > 1", "                  ^^^^^^"]),
        ("amount\t> amuont", ["amount > amuont", "         ^^^^^^"]),
        ("amount > INTERVAL 1 DAY", ["amount > INTERVAL 1 DAY", "^" * 23]),
        ("1 -- one", ["1 -- one", "  ^^^^^^"]),
        ("NULL", ["NULL", "^^^^"]),
    ],
)
def test_carets_stand_below_what_is_wrong(text: str, marked: list[str]) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, FEW)
    assert caught.value.excerpt is not None
    assert caught.value.excerpt.splitlines() == marked
    assert caught.value.as_json()["excerpt"] == caught.value.excerpt


def test_a_long_line_is_cut_around_the_place() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("amount + " * 90 + "amuont" + " + amount" * 5, FEW)
    assert caught.value.excerpt is not None
    line, carets = caught.value.excerpt.splitlines()
    assert line[carets.index("^") : len(carets)] == "amuont"
    assert len(line) < 110


def test_the_error_names_the_users_own_line() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("nope", FEW)
    assert caught.value.where is not None
    assert "test_refusals.py:" in caught.value.where


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        # not an expression
        ("", "bad-expression", "The expression is empty."),
        ("  \n", "bad-expression", "The expression is empty."),
        ("i; j", "bad-expression", "The expression ends at column 2."),
        ("i, j", "bad-expression", "Unexpected `,` at column 2."),
        ("i AS x", "bad-expression", "Unexpected `AS` at column 3."),
        ("SELECT 1", "bad-expression", "Unexpected `SELECT` at column 1."),
        ("i -- why", "unsupported-expression", "An expression has no comments."),
        ("i /* why */ + 1", "unsupported-expression", "An expression has no comments."),
        ("/*+ BROADCAST(x) */ i", "unsupported-expression", "An expression has no comments."),
        ("'a' 'b'", "bad-expression", "Two strings stand side by side at column 5."),
        ("'a'\"b\"", "bad-expression", "Two strings stand side by side at column 4."),
        (r"'\d'", "bad-expression", "A string has an unknown escape at column 2."),
        (r"'\ud800'", "bad-expression", "A string has an unknown escape at column 2."),
        ("'\ud800'", "bad-expression", "The expression has half a character in it."),
        ("NULL", "mistyped-expression", "The expression is NULL of no type."),
        # constructs
        ("(SELECT 1)", "unsupported-expression", "A subquery is not part of expressions."),
        ("EXISTS(SELECT 1)", "unsupported-expression", "A subquery is not part of expressions."),
        ("i IN (SELECT 1)", "unsupported-expression", "A subquery is not part of expressions."),
        ("sum(i) OVER (ORDER BY j)", "unsupported-expression", "A window function is not part of expressions."),
        ("count(*)", "unsupported-expression", "There is no function `count` in expressions."),
        ("now()", "unsupported-expression", "There is no function `now` in expressions."),
        ("current_timestamp", "unsupported-expression", "`current_timestamp` is not part of expressions."),
        ("rand()", "unsupported-expression", "There is no function `rand` in expressions."),
        ("ln(f)", "unsupported-expression", "There is no function `ln` in expressions."),
        ("i & 1", "unsupported-expression", "BITWISE AND is not part of expressions."),
        ("i DIV 2", "unsupported-expression", "DIV is not part of expressions."),
        ("s RLIKE 'a'", "unsupported-expression", "RLIKE is not part of expressions."),
        ("s ILIKE 'a'", "unsupported-expression", "ILIKE is not part of expressions."),
        ("s LIKE 'a' ESCAPE '!'", "unsupported-expression", "LIKE ... ESCAPE is not part of expressions."),
        ("s LIKE t", "unsupported-expression", "LIKE takes a constant pattern."),
        (r"s LIKE 'a\\b'", "bad-expression", "The LIKE pattern has a bad escape."),
        (r"s LIKE 'a\\'", "bad-expression", "The LIKE pattern has a bad escape."),
        ("i IN (j)", "unsupported-expression", "IN takes constants."),
        ("INTERVAL 1 DAY", "unsupported-expression", "An interval is not part of expressions."),
        ("*", "unsupported-expression", "* is not part of expressions."),
        ("place.*", "unsupported-expression", "* is not part of expressions."),
        ("${x}", "unsupported-expression", "A parameter is not part of expressions."),
        (":x", "unsupported-expression", "A parameter is not part of expressions."),
        ("X'1F'", "unsupported-expression", "A binary constant is not part of expressions."),
        ("(i, j)", "unsupported-expression", "A list in parentheses is not part of expressions."),
        ("coalesce(x -> x)", "unsupported-expression", "LAMBDA is not part of expressions."),
        ("CAST(s AS DATE)", "unsupported-expression", "There is no cast to DATE."),
        ("CAST(i AS SMALLINT)", "unsupported-expression", "There is no cast to SMALLINT."),
        ("CAST(s AS DECIMAL)", "unsupported-expression", "There is no cast to DECIMAL."),
        ("CAST(s AS BIGINT FORMAT '9')", "unsupported-expression", "TRYCAST ... FORMAT is not part of expressions."),
        ("CAST(s AS nonsense)", "bad-expression", "`nonsense` is no type at column 11."),
        ("array_contains(counts, i)", "unsupported-expression", "`array_contains` looks for a constant."),
        ("db.upper(s)", "unsupported-expression", "DOT is not part of expressions."),
        # constants
        ("TIMESTAMP '2026-01-01T00:00:00'", "naive-timestamp", "A timestamp needs a UTC offset."),
        ("TIMESTAMP '2026-01-01'", "naive-timestamp", "A timestamp needs a UTC offset."),
        ("CAST('2026-01-01 12:00' AS TIMESTAMP)", "naive-timestamp", "A timestamp needs a UTC offset."),
        ("TIMESTAMP 'yesterday'", "bad-expression", "A timestamp cannot be read."),
        ("TIMESTAMP '0001-01-01T00:00:00+01:00'", "bad-expression", "A timestamp is outside the years 1 to 9999."),
        ("1e999", "bad-expression", "A number is too large for a float."),
        ("1" * 39, "mistyped-expression", "A number has more than 38 digits."),
        ("CAST(s AS DECIMAL(39,0))", "mistyped-expression", "A decimal's digits do not fit."),
        ("CAST(s AS DECIMAL(2,3))", "mistyped-expression", "A decimal's digits do not fit."),
        # types
        ("s + 1", "mistyped-expression", "`+` takes numbers, not a string."),
        ("at - 1", "mistyped-expression", "`-` takes numbers, not a timestamp."),
        ("yes * 2", "mistyped-expression", "`*` takes numbers, not a boolean."),
        ("NULL + NULL", "mistyped-expression", "`+` has only NULL to work on."),
        ("h * h", "mistyped-expression", "`*` would need more than 38 digits."),
        ("h + 1", "mistyped-expression", "`+` would need more than 38 digits."),
        ("coalesce(h, round(h, 5))", "mistyped-expression", "`coalesce` would need more than 38 digits."),
        ("-h", "mistyped-expression", "`-` takes decimals of at most 34 digits: Spark rounds longer ones."),
        ("h = CAST(s AS DECIMAL(38,0))", "mistyped-expression", "`=` would need more than 38 digits."),
        ("NOT i", "mistyped-expression", "NOT takes conditions, not an integer."),
        ("yes AND s", "mistyped-expression", "AND takes conditions, not a string."),
        ("CASE WHEN i THEN 1 END", "mistyped-expression", "WHEN takes conditions, not an integer."),
        ("CASE WHEN yes THEN 1 ELSE 'a' END", "mistyped-expression", "CASE cannot take an integer and a string."),
        ("coalesce(s, 1)", "mistyped-expression", "`coalesce` cannot take a string and an integer."),
        ("coalesce(NULL, NULL)", "mistyped-expression", "`coalesce` has only NULL to work on."),
        ("i LIKE 'a'", "mistyped-expression", "LIKE cannot take an integer and a string."),
        ("tags = tags", "mistyped-expression", "`=` cannot compare a list of string."),
        ("upper(i)", "mistyped-expression", "`upper` takes strings, not an integer."),
        ("s || i", "mistyped-expression", "`concat` takes strings, not an integer."),
        ("hour(s)", "mistyped-expression", "`hour` takes a timestamp, not a string."),
        ("size(s)", "mistyped-expression", "`size` takes a list, not a string."),
        ("substring(s, 1.5)", "mistyped-expression", "`substring` takes whole numbers, not a float."),
        ("round(f)", "mistyped-expression", "`round` takes integers and decimals, not a float."),
        ("round(d, i)", "mistyped-expression", "The places of `round` must be a whole number from 0 to 38."),
        ("upper(s, s)", "mistyped-expression", "`upper` takes 1 argument."),
        ("substring(s)", "mistyped-expression", "`substring` takes 2 to 3 arguments."),
        ("greatest(i)", "mistyped-expression", "`greatest` takes 2 or more arguments."),
        ("if(yes, 1)", "mistyped-expression", "`if` takes 3 arguments."),
        ("CAST(f AS STRING)", "mistyped-expression", "There is no cast from a float to a string."),
        ("CAST(f AS DECIMAL(9,2))", "mistyped-expression", "There is no cast from a float to a decimal(9,2)."),
        ("CAST(at AS STRING)", "mistyped-expression", "There is no cast from a timestamp to a string."),
        ("CAST(at AS BIGINT)", "mistyped-expression", "There is no cast from a timestamp to an integer."),
        ("CAST(i AS TIMESTAMP)", "mistyped-expression", "There is no cast from an integer to a timestamp."),
        ("CAST(tags AS STRING)", "mistyped-expression", "There is no cast from a list of string to a string."),
        ("i.x", "mistyped-expression", "Only a struct has members, not an integer."),
        ("place.zon", "unknown-field", "place has no such member."),
        ("place['zone']", "mistyped-expression", "`[]` takes a list and a whole number, not a struct."[:46]),
        ("array_contains(counts, 'a')", "mistyped-expression", "`array_contains` cannot take a string and an integer."),
        ("array_contains(counts, 1.5)", "mistyped-expression", "A list of integer holds no float."),
    ],
)
def test_what_cannot_mean_the_same_on_both_sides_is_refused(text: str, code: str, message: str) -> None:
    found = refused(text)

    assert found.code == code
    assert found.message.startswith(message)


@pytest.mark.parametrize("text", [None, 5, b"i", ["i"]])
def test_an_expression_that_is_not_text_is_refused(text: object) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, COLUMNS)
    assert caught.value.message == "An expression must be text."


def test_a_text_of_more_than_ten_thousand_characters_is_refused() -> None:
    assert refused("i" + " " * 10_000).message == "The expression is too long."
    assert read("i" + " " * 9_999).text == "i"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 101 + "i" + ")" * 101,
        "(" * 4_000 + "i" + ")" * 4_000,
        "NOT " * 200 + "yes",
        "- " * 2_000 + "i",
        "i" + " + 1" * 2_000,
        "abs(" * 101 + "i" + ")" * 101,
        "CASE WHEN yes THEN " * 101 + "i" + " END" * 101,
    ],
)
def test_nesting_beyond_a_hundred_levels_is_refused(text: str) -> None:
    assert refused(text).message == "The expression is nested too deeply."


def test_a_hundred_brackets_and_a_thousand_conditions_are_fine() -> None:
    assert read("(" * 100 + "i" + ")" * 100).text == "i"
    assert read("abs(" * 98 + "i" + ")" * 98).python()({"i": -3}) == 3
    assert read(" OR ".join(f"i={n}" for n in range(1_000))).python()({"i": 999}) is True


VOCABULARY = """
i j f s t d yes at tags place . , ( ) [ ] + - * / % = <> < <= <=> ! AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN
ELSE END CAST AS BIGINT DECIMAL TIMESTAMP TRUE 1 1.5 1e5 'a' 'it''s' `i` " ' ; : :: ? @ # $ ${ { } -> => | || & ^ ~ \\
SELECT FROM WITH VALUES EXISTS OVER INTERVAL DAY DATE upper( coalesce( sum( hour( SHOW SET DESCRIBE CREATE DROP /* */ --
ESCAPE ANY ALL DISTINCT FILTER LATERAL ROW STRUCT ARRAY MAP COLLATE AT TIME ZONE x' r' b'
"""
WORDS = st.sampled_from(VOCABULARY.split())


@given(st.one_of(st.lists(WORDS, max_size=12).map(" ".join), st.text(max_size=30), st.lists(WORDS).map("".join)))
def test_any_text_is_read_or_refused_with_an_error_of_ours_and_in_silence(text: str) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        read(text)
    except HeadraceError as found:
        lines += [] if found.message.endswith(".") else [found.message]
    finally:
        logging.getLogger().removeHandler(handler)
    assert not lines


def test_whatever_the_parser_trips_over_and_says_stays_inside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dialect, known = grammar._grammar()

    class Clumsy(known):  # type: ignore[misc, valid-type]
        def parse_into(self, *_: object) -> object:
            logging.getLogger("sqlglot").error("what now?")
            raise AttributeError("no such thing")

    monkeypatch.setattr(grammar, "_grammar", lambda: (dialect, Clumsy))

    assert refused("i + 1").message == "The expression cannot be parsed at column 1."
    assert not caplog.records
    assert not logging.getLogger("sqlglot").disabled


def test_the_recursion_limit_is_as_it_was_after_reading() -> None:
    before = sys.getrecursionlimit()
    refused("(" * 90)
    assert sys.getrecursionlimit() == before
