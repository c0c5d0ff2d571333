"""Evaluate expressions in Spark, many to a query, and say where Python differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.expression import ColumnType, Expression
from headrace.types.field_types import Float, Timestamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PER_QUERY = 50


def frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, ColumnType]) -> DataFrame:
    """The rows as a DataFrame; timestamps travel as microseconds, which hold every year."""
    moments = [name for name, column in columns.items() if isinstance(column.type, Timestamp)]
    ddl = ", ".join(f"`{name}` {'BIGINT' if name in moments else c.type.ddl}" for name, c in columns.items())
    data = spark.createDataFrame([tuple(row.get(name) for name in columns) for row in rows], ddl)
    return data.select(*(_column(name, name in moments) for name in columns)).repartition(1)


def _column(name: str, moment: bool) -> Any:
    from pyspark.sql import functions as sql

    return sql.expr(f"timestamp_micros(`{name}`) AS `{name}`" if moment else f"`{name}`")


def in_spark(data: DataFrame, expressions: Sequence[Expression]) -> list[list[Any]]:
    """The value of every expression in every row, in the frame's order of rows."""
    from pyspark.sql import functions as sql

    results: list[list[Any]] = [[] for _ in expressions]
    for start in range(0, len(expressions), PER_QUERY):
        chosen = [sql.expr(_shown(e)).alias(f"x{n}") for n, e in enumerate(expressions[start : start + PER_QUERY])]
        for row in data.select(*chosen).collect():
            for n, value in enumerate(row):
                results[start + n].append(value)
    return results


def _shown(expression: Expression) -> str:
    text = expression.spark()
    return f"unix_micros({text})" if isinstance(expression.type, Timestamp) else text


def differences(
    spark: SparkSession,
    expressions: Sequence[Expression],
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, ColumnType],
) -> list[str]:
    """Every place where the two sides differ, or where a value is null that was said not to be."""
    numbered = {**columns, "row_number": ColumnType(Float())}
    data = frame(spark, [{**row, "row_number": float(n)} for n, row in enumerate(rows)], numbered).cache()
    order = [int(row[0]) for row in data.select("row_number").collect()]
    found = []
    for expression, values in zip(expressions, in_spark(data, expressions), strict=True):
        run = expression.python()
        for n, spark_value in zip(order, values, strict=True):
            value = run(rows[n])
            if not same(value, spark_value) or (value is None and not expression.nullable):
                used = {name: rows[n][name] for name in sorted(expression.fields)}
                found.append(f"{expression.text}\n  of {used}\n  Python {value!r}, Spark {spark_value!r}")
    data.unpersist()
    return found


def same(left: Any, right: Any) -> bool:
    """Equal in value and in type; a struct is a dict here and a row there."""
    if left is None or right is None:
        return left is right
    if isinstance(left, dict):
        return all(same(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)
