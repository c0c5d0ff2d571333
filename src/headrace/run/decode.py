"""Applies `schema.json_sql` to a DataFrame: a BINARY column in, a typed row or a fault out.

It decides nothing about lateness or duplicates; the verdict of a whole record is made by the stages that come after.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.errors import ConfigError, shown
from headrace.schema.json_sql import JsonSql, json_sql
from headrace.schema.types import Struct

STRICT: dict[str, str] = {
    "spark.sql.variant.allowDuplicateKeys": "false",
    "spark.sql.variant.validateUnicodeInJsonParsing": "true",
}
"""Spark's own defaults, on which the strictness rests."""


def decode(records: DataFrame, schema: Struct, *, value: str = "value") -> DataFrame:
    """Add to `records` a `row` (a struct of the schema's fields) and a `fault` (a struct of `kind` and `reason`).

    One of the two is null. A fault's kind is `malformed` or `invalid`.

    Parameters
    ----------
    records
        A batch or streaming DataFrame.
    schema
        The fields to read.
    value
        The BINARY column that holds the JSON.
    """
    _refuse_lax(records)
    sql = json_sql(schema, value)
    fault = (
        f"CASE WHEN {sql.malformed} THEN named_struct('kind', 'malformed', 'reason', 'it is not JSON') "
        f"WHEN {sql.invalid} IS NOT NULL THEN named_struct('kind', 'invalid', 'reason', {sql.invalid}) END"
    )
    # A struct that may be null with a field that may not is more than Arrow's cast can take.
    fault = f"CAST({fault} AS STRUCT<kind: STRING, reason: STRING>)"
    row = ", ".join(f"'{name}', {text}" for name, text in sql.columns)
    row = f"CASE WHEN NOT {sql.malformed} AND {sql.invalid} IS NULL THEN named_struct({row}) END"
    added = staging(records, sql).withColumns({"row": F.expr(row), "fault": F.expr(fault)})
    return added.drop(*sql.scratch)


def staging(records: DataFrame, sql: JsonSql) -> DataFrame:
    """Add the stages' columns, one stage after the other."""
    for stage in sql.stages:
        records = records.withColumns({name: F.expr(text) for name, text in stage})
    return records


def _refuse_lax(records: DataFrame) -> None:
    for setting, needed in STRICT.items():
        got = records.sparkSession.conf.get(setting)
        if got != needed:
            message = f"The Spark setting {setting} must be {needed}, or two readers of one record could disagree."
            raise ConfigError("bad-setting", message, got=shown(got))
