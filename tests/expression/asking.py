"""Ask for the value of an expression in one row, or for the error it is refused with."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import ExpressionError
from headrace.expression import Expression, parse
from tests.expression.generated import COLUMNS


def read(text: str) -> Expression:
    """The expression over the test columns."""
    return parse(text, COLUMNS)


def value(text: str, **row: Any) -> Any:
    """The value of an expression in a row."""
    return read(text).python()(row)


def refused(text: str) -> ExpressionError:
    """The error an expression is refused with."""
    with pytest.raises(ExpressionError) as caught:
        read(text)
    return caught.value
