"""The expression as the rest of Headrace holds it: built, combined, substituted, hashed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from decimal import Decimal as Exact

import pytest

from headrace.errors import ExpressionError
from headrace.expression import ColumnType, Expression, both, either, field, literal, parse, when
from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Timestamp
from tests.expression.asking import read

PAID = field("paid", ColumnType(Boolean(), nullable=True))


def test_importing_expressions_loads_no_parser() -> None:
    check = "import sys, headrace.expression; sys.exit('sqlglot' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_equal_expressions_hash_alike_and_different_ones_differ() -> None:
    assert len({read("i+1"), read("i + 1"), read("i + 2"), read("i - 1")}) == 3


def test_an_integer_constant_is_not_the_boolean_it_equals_in_python() -> None:
    assert literal(1) != literal(True)


def test_the_compiled_function_is_compiled_once() -> None:
    expression = read("i + 1")

    assert expression.python() is expression.python()


def test_a_compiled_expression_travels_to_another_process() -> None:
    expression = read("i + 1")
    expression.python()

    again = pickle.loads(pickle.dumps(expression))

    assert again == expression
    assert again.python()({"i": 1}) == 2


def test_fields_are_the_root_columns() -> None:
    assert read("place.zone + counts[i] + 1").fields == {"place", "counts", "i"}


def test_columns_are_quoted_and_structs_cannot_be_taken_for_tables() -> None:
    assert read("place.site.name").spark() == "((`place`).`site`).`name`"


def test_text_that_spark_would_substitute_travels_as_bytes() -> None:
    assert literal("${x}").spark() == "CAST(X'247b787d' AS STRING)"
    assert literal("x y").spark() == "'x y'"


def test_an_absent_field_is_null() -> None:
    assert read("j IS NULL").python()({}) is True


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("it's", String(), "'it''s'"),
        (True, Boolean(), "TRUE"),
        (-5, Integer(), "-5"),
        (0.1, Float(), "0.1"),
        (-0.0, Float(), "0.0"),
        (Exact("-1.50"), Decimal(3, 2), "CAST(-1.50 AS DECIMAL(3,2))"),
    ],
)
def test_a_python_value_becomes_a_typed_constant(value: object, kind: object, text: str) -> None:
    constant = literal(value)

    assert (constant.type, constant.text, constant.nullable) == (kind, text, False)
    assert constant.python()({}) == value


def test_a_decimal_constant_has_the_digits_it_needs() -> None:
    assert literal(Exact("1E+2")).type == Decimal(3, 0)
    assert literal(Exact("0.05")).type == Decimal(2, 2)
    assert literal(Exact("0")).type == Decimal(1, 0)
    assert literal(Exact("-0.0")).text == "CAST(0.0 AS DECIMAL(1,1))"
    assert literal(Exact("1.5"), Decimal(5, 2)).text == "CAST(1.50 AS DECIMAL(5,2))"


def test_a_constant_of_a_named_type_may_be_null_or_a_moment() -> None:
    assert literal(None, Integer()).spark() == "CAST(NULL AS BIGINT)"
    assert literal(1_000_000, Timestamp("s")).text == "TIMESTAMP '1970-01-01T00:00:01Z'"


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), 2**63, object(), [1]])
def test_a_value_that_is_no_constant_is_refused(value: object) -> None:
    with pytest.raises(ExpressionError) as caught:
        literal(value)
    assert caught.value.code == "bad-argument"


def test_both_joins_conditions_and_passes_over_none() -> None:
    assert both(PAID, literal(True)).text == "paid AND TRUE"
    assert both(PAID, None) is PAID
    assert both(None, PAID) is PAID
    assert both(None, None) is None


def test_either_joins_conditions_and_no_condition_lets_everything_through() -> None:
    assert either(PAID, literal(False)).text == "paid OR FALSE"
    assert either(PAID, None) is None


def test_conditions_must_be_boolean() -> None:
    with pytest.raises(ExpressionError) as caught:
        both(PAID, literal(1))
    assert caught.value.code == "mistyped-expression"


def test_when_gives_the_value_only_where_the_condition_is_true() -> None:
    guarded = when(PAID, field("amount", ColumnType(Float())))

    run = guarded.python()
    assert [run({"paid": paid, "amount": 2.5}) for paid in (True, False, None)] == [2.5, None, None]
    assert guarded.nullable
    assert when(None, PAID) is PAID


def test_a_computed_column_is_written_out_where_it_is_used() -> None:
    outer = parse("total > 10", {"total": ColumnType(Integer(), nullable=True)})

    inlined = outer.substitute({"total": read("i * 2")})

    assert inlined.text == "(i * 2) > 10"
    assert inlined.fields == {"i"}
    assert inlined.python()({"i": 6}) is True


def test_an_overflowing_computed_float_is_null_where_it_is_used() -> None:
    outer = parse("coalesce(big, -1.0)", {"big": ColumnType(Float(), nullable=True)})

    inlined = outer.substitute({"big": read("f * 10")})

    assert inlined.text == "coalesce(finite(f * 10.0), -1.0)"
    assert inlined.python()({"f": 1e308}) == -1.0
    assert read(inlined.text) == inlined


def test_substitution_reaches_structs_and_folds_as_reading_does() -> None:
    outer = read("CAST(s AS BIGINT) + 1 > 0 AND yes AND place.zone = 1")

    inlined = outer.substitute({"s": literal("41"), "yes": read("i = 1 AND j = 2"), "place": read("coalesce(place)")})

    assert inlined.text == "((41 + 1) > 0) AND (i = 1) AND (j = 2) AND ((coalesce(place)).zone = 1)"
    assert read(inlined.text) == inlined


def test_substitution_works_out_anew_what_may_be_null() -> None:
    outer = read("j = 1")

    assert outer.nullable
    assert not outer.substitute({"j": literal(1)}).nullable


def test_an_expression_of_another_type_cannot_stand_for_a_column() -> None:
    with pytest.raises(ExpressionError) as caught:
        read("i + 1").substitute({"i": literal("x")})
    assert caught.value.message == "Column 'i' is an integer, its expression a string."


def test_substitution_that_doubles_forever_is_refused_before_it_fills_the_memory() -> None:
    step = read("i + i")
    grown: Expression = step
    for _ in range(11):
        grown = step.substitute({"i": grown})

    with pytest.raises(ExpressionError) as caught:
        step.substitute({"i": grown})
    assert caught.value.message == "The expression is too long."


def test_substitution_that_nests_forever_is_refused() -> None:
    step = read("i + 1")
    grown: Expression = step
    for _ in range(98):
        grown = step.substitute({"i": grown})

    with pytest.raises(ExpressionError) as caught:
        step.substitute({"i": grown})
    assert caught.value.message == "The expression is nested too deeply."


def test_the_spark_text_of_chained_floats_grows_by_addition_not_by_doubling() -> None:
    step = parse("x * 2", {"x": ColumnType(Float(), nullable=True)})
    grown = step
    for _ in range(20):
        grown = step.substitute({"x": grown})

    assert len(grown.spark()) < 21 * len(step.spark())


def test_a_root_that_cannot_overflow_is_left_bare() -> None:
    assert read("f").spark() == "`f`"
    assert read("coalesce(g, 0)").spark() == "coalesce(`g`, 0.0D)"
    assert read("f + 1").spark().startswith("nanvl(")
