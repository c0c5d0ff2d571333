"""Spark and Python read every record alike."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from headrace.codec.json import rules
from headrace.codec.json.read import Decoded, RecordFault, decoder
from headrace.codec.json.sql import json_sql
from headrace.types.field_types import Struct, Timestamp, schema_of
from tests.codec.generate import EVERYTHING, cases

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
    """Decode with `spark.decode`, in the order given."""
    import pyarrow as pa

    from headrace.spark.decode import decode

    held = pa.table({"i": pa.array(range(len(values)), pa.int32()), "value": pa.array(values, pa.binary())})
    records = spark.createDataFrame(held).repartition(2)
    table = decode(records, schema).drop("value").toArrow()
    rows = table["row"].cast(with_micros(table["row"].type)).to_pylist()
    found = dict(zip(table["i"].to_pylist(), zip(rows, table["fault"].to_pylist(), strict=True), strict=True))
    assert sorted(found) == list(range(len(values)))
    return [
        Decoded(row, RecordFault(**fault) if fault else None) for row, fault in (found[i] for i in range(len(values)))
    ]


def exact(decoded: Decoded) -> Any:
    """Verdict, reason and values in a form that tells 1 from 1.0 and -0.0 from 0.0."""
    if decoded.fault is None:
        return repr(decoded.row)
    kind, reason = decoded.fault
    return (kind, reason if kind == "invalid" else None)


def disagreements(values: list[bytes], spark: list[Decoded]) -> list[str]:
    decode = decoder(EVERYTHING)
    pairs = ((value, exact(decode(value)), exact(found)) for value, found in zip(values, spark, strict=True))
    return [f"{value[:300]!r}\n python {py!s:.500}\n spark {sp!s:.500}" for value, py, sp in pairs if py != sp]


@pytest.mark.spark
def test_spark_and_python_agree_on_ten_thousand_records(spark: SparkSession):
    values = cases(10_000)
    found = by_spark(spark, EVERYTHING, list(values))
    assert disagreements(values, found) == []
    # The agreement means something only if all three verdicts are common.
    verdicts = Counter(one.fault.kind if one.fault else "ok" for one in found)
    assert min(verdicts.values()) > 2_000, verdicts
    reasons = {one.fault.reason for one in found if one.fault and one.fault.kind == "invalid"}
    assert len(reasons) > 40, reasons


@pytest.mark.spark
def test_no_poison_kills_a_query(spark: SparkSession):
    schema = schema_of({"id": str | None, "n": int | None, "tags": list[str] | None})
    million = 1_000_000
    poison: list[bytes | None] = [
        None,
        b"[" * 5 * million,
        b'{"a":' * million,
        b'{"id":"' + b"a" * 5 * million + b'"}',
        b'{"id":"' + b"\\u0041" * million + b'"}',
        b'{"n":' + b"9" * 5 * million + b"}",
        b'{"n":"' + b"9" * 5 * million + b'"}',
        b'{"tags":[' + b'"",' * million + b'""]}',
        b'{"n":[' + b",".join(b'{"k%d":1}' % i for i in range(300_000)) + b"]}",
        b'{"id":{' + b",".join(b'"k%d":1' % i for i in range(300_000)) + b"}}",
        b'{"x":[' + b"1e0," * 2 * million + b"1]}",
        b'{"x":' + b"[" * 998 + b"1," * 100_000 + b"1" + b"]" * 998 + b"}",
        b'{"id":"' + b"a" * 9 * million + b'"}',
        b'{"x":"' + b"1" * 999 + b"x1" * million + b'"}',
        b"\xff" * 5 * million,
        b"\\" * 3 * million,
        b'"' * 3 * million,
    ]
    decode = decoder(schema)
    assert [exact(one) for one in by_spark(spark, schema, poison)] == [exact(decode(value)) for value in poison]


@pytest.mark.spark
def test_a_wide_schema_is_read(spark: SparkSession):
    kinds: list[Any] = [str, int, float | None, Timestamp("ms") | None, bool]
    schema = schema_of({f"f{i}": kinds[i % 5] for i in range(150)})
    values: list[Any] = ["x", 1, 1.5, None, True]
    row = {f"f{i}": values[i % 5] for i in range(150)}
    good, bad = json.dumps(row).encode(), json.dumps(row | {"f149": 1}).encode()
    found = by_spark(spark, schema, [good, bad])
    assert found[0].row == row
    assert found[1].fault == ("invalid", "f149 must be true or false")


@pytest.mark.spark
def test_a_record_is_parsed_once_however_many_fields_it_has(spark: SparkSession):
    from headrace.spark.decode import decode

    records = spark.createDataFrame([(b"{}",)], "value binary")
    rows = decode(records, EVERYTHING).where("fault IS NULL").select("row.*").where("n > 3 AND price > 1")
    plan = rows._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("parseJson") == 1


@pytest.mark.spark
def test_a_field_may_have_the_name_of_anything_in_the_query(spark: SparkSession):
    schema = schema_of({"value": int, "row": str, "fault": str, "__e": list[int], "__r": int | None})
    record = b'{"value":1,"row":"r","fault":"f","__e":[1,2]}'
    assert by_spark(spark, schema, [record])[0] == decoder(schema)(record)


@pytest.mark.spark
def test_a_session_that_allows_duplicate_keys_is_refused(spark: SparkSession):
    from headrace.errors import ConfigError
    from headrace.spark.decode import decode

    setting = "spark.sql.variant.allowDuplicateKeys"
    spark.conf.set(setting, "true")
    try:
        with pytest.raises(ConfigError, match="allowDuplicateKeys must be false"):
            decode(spark.createDataFrame([(b"{}",)], "value binary"), EVERYTHING)
    finally:
        spark.conf.unset(setting)


@pytest.mark.spark
def test_the_limits_are_those_of_the_parser_inside_spark(spark: SparkSession):
    jvm: Any = spark._jvm
    limits = jvm.com.fasterxml.jackson.core.StreamReadConstraints.defaults()
    assert limits.getMaxNestingDepth() - 1 == rules.DEEPEST
    assert limits.getMaxNumberLength() == rules.LONGEST_NUMBER
    assert limits.getMaxNameLength() == rules.LONGEST_NAME
    assert limits.getMaxStringLength() > rules.LARGEST_VALUE


def test_a_stage_uses_only_columns_of_earlier_stages():
    sql = json_sql(EVERYTHING)
    seen = {"value"}
    for stage in sql.stages:
        for _, text in stage:
            used = {name for name in sql.scratch if f"`{name}`" in text}
            assert used <= seen
        seen |= {name for name, _ in stage}
    assert [name for name, _ in sql.columns] == [field.name for field in EVERYTHING]
