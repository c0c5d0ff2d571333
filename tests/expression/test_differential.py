"""Random expressions over random rows: Python and Spark agree to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import reject

from headrace.errors import ExpressionError
from headrace.expression import Expression
from headrace.spark.session import settings
from tests.budget import count_cases, run_seed
from tests.draws import draw_cases
from tests.expression.asking import read
from tests.expression.both_sides import differences
from tests.expression.generated import COLUMNS, expressions, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What Headrace's meaning must not depend on.
OTHER_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's own, which the tests' session does not have."""


SHARE = 2
"""Spark compiles an expression once for all rows, so that more of them are affordable."""


pytestmark = [pytest.mark.spark, pytest.mark.generated]


def generated(count: int, depth: int) -> list[Expression]:
    """Different expressions, which the seed of the run decides."""
    found: dict[str, Expression] = {}

    def collect(text: str) -> None:
        try:
            expression = read(text)
        except ExpressionError as error:
            if "digits" not in error.message:
                raise
            reject()
        found[expression.text] = expression

    draw_cases(expressions(depth), 3 * count, run_seed(), collect)
    return list(found.values())[:count]


def test_python_and_spark_agree_on_random_expressions(spark: SparkSession) -> None:
    chosen = generated(count_cases(SHARE), depth=2)

    assert len(chosen) == count_cases(SHARE)
    with settings(spark, COMPILED):
        assert not differences(spark, chosen, rows(200, seed=run_seed()), COLUMNS)


def test_the_meaning_does_not_depend_on_spark_settings(spark: SparkSession) -> None:
    chosen = generated(count_cases(SHARE), depth=3)
    with settings(spark, OTHER_SETTINGS):
        assert not differences(spark, chosen, rows(200, seed=run_seed() + 1), COLUMNS)
