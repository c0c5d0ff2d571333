"""Spark and Python read every record alike."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from headrace.schema.json import Decoded, Fault, decoder
from headrace.schema.json_sql import json_sql
from headrace.schema.types import List, Struct, Timestamp, Type, schema_of
from tests.schema.generate import EVERYTHING, cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def with_micros(kind: Any) -> Any:
    """An Arrow type with every timestamp as a number: year 1 has no Python datetime in some time zones."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(with_micros(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(kind.field(i).name, with_micros(kind.field(i).type)) for i in range(kind.num_fields)])
    return kind


def by_spark(spark: SparkSession, schema: Struct, values: list[bytes | None]) -> list[Decoded]:
    """Decode with `run.decode`, in the order given."""
    from headrace.run.decode import decode

    records = spark.createDataFrame(list(enumerate(values)), "i int, value binary").repartition(2)
    table = decode(records, schema).drop("value").toArrow()
    rows = table["row"].cast(with_micros(table["row"].type)).to_pylist()
    found = dict(zip(table["i"].to_pylist(), zip(rows, table["fault"].to_pylist(), strict=True), strict=True))
    assert sorted(found) == list(range(len(values)))
    return [Decoded(row, Fault(**fault) if fault else None) for row, fault in (found[i] for i in range(len(values)))]


def exact(decoded: Decoded) -> Any:
    """Verdict, reason and values in a form that tells 1 from 1.0 and -0.0 from 0.0."""
    if decoded.fault is None:
        return repr(decoded.row)
    kind, reason = decoded.fault
    return (kind, reason if kind == "invalid" else None)
