"""SQL expressions that mean exactly the same in Spark and in Python.

`parse` turns text into an `Expression`, which is then read three ways: `.python()` for the reference interpreter and
serving, `.spark()` for the engine, `.text` for fingerprints and people. A failing operation (division by zero, a bad
cast, overflow) is null everywhere. Importing this loads no parser; the first `parse` does.
"""

from headrace.expression.column import ColumnType
from headrace.expression.excerpt import underlined
from headrace.expression.expression import Expression, both, either, field, literal, parse, when

__all__ = ["ColumnType", "Expression", "both", "either", "field", "literal", "parse", "underlined", "when"]
