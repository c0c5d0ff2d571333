"""Spark and Python read every Avro record alike."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from headrace.codec.json.read import Decoded, RecordFault
from headrace.codec.wire import Laid, OwnSchema, RecordLayout, Written, decoder, encoder, framed
from headrace.codec.writers import Writers, writers_of
from headrace.errors import ConfigError
from headrace.types.field_types import schema_of
from tests.codec.avro_cases import MARK, Maker
from tests.codec.generate import EVERYTHING
from tests.codec.test_json_sql import exact, with_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = Laid("everything", EVERYTHING, "confluent-avro")


@dataclass(frozen=True)
class Listed:
    """A registry in memory; `told` are the numbers that a query is planned with."""

    schemas: dict[int, str]
    told: tuple[int, ...] = ()
    kinds: dict[int, str] = field(default_factory=dict)

    def schema_by_id(self, number: int) -> Written | None:
        text = self.schemas.get(number)
        return None if text is None else Written(text, self.kinds.get(number, "AVRO"))

    def ids(self, subject: str) -> tuple[int, ...]:
        return self.told

    def writer(self, subject: str, layout: RecordLayout) -> tuple[int, str]:
        raise NotImplementedError


@dataclass(frozen=True)
class Unreachable(Listed):
    def schema_by_id(self, number: int) -> Written | None:
        raise ConnectionError("the registry cannot be reached")


def by_spark(
    spark: SparkSession, stream: RecordLayout, values: list[bytes | None], writers: Writers | None = None
) -> list[Decoded]:
    """Decode with `spark.decode`, in the order given."""
    import pyarrow as pa

    from headrace.spark.decode import decode_stream

    held = pa.table({"i": pa.array(range(len(values)), pa.int32()), "value": pa.array(values, pa.binary())})
    records = spark.createDataFrame(held).repartition(2)
    decoded = decode_stream(records, stream, writers).drop("value")
    assert decoded.columns == ["i", "row", "fault"]
    table = decoded.toArrow()
    rows = table["row"].cast(with_micros(table["row"].type)).to_pylist()
    found = dict(zip(table["i"].to_pylist(), zip(rows, table["fault"].to_pylist(), strict=True), strict=True))
    assert sorted(found) == list(range(len(values)))
    return [
        Decoded(row, RecordFault(**fault) if fault else None) for row, fault in (found[i] for i in range(len(values)))
    ]


def cases(maker: Maker, writers: dict[int, dict[str, Any]], count: int) -> list[bytes]:
    values = []
    for at in range(count):
        number = maker.rng.choice(list(writers))
        data = maker.good(writers[number])
        values.append(framed(number, data if at % 2 else maker.damaged(data)))
    return values


def disagreements(values: list[bytes], python: list[Decoded], spark: list[Decoded]) -> list[str]:
    triples = zip(values, map(exact, python), map(exact, spark), strict=True)
    return [f"{value[:200]!r}\n python {py!s:.600}\n spark {sp!s:.600}" for value, py, sp in triples if py != sp]


@pytest.mark.spark
def test_spark_and_python_agree_on_records_of_six_writers(spark: SparkSession):
    maker = Maker(20260131)
    forms = {number: maker.writer(EVERYTHING) for number in range(1, 7)}
    ids = Listed({number: json.dumps(form) for number, form in forms.items()}, tuple(range(1, 7)))
    values = cases(maker, forms, 3_000)
    decode = decoder(EVERY, ids)
    python = [decode(value) for value in values]
    found = by_spark(spark, EVERY, list(values), writers_of(EVERY, ids))
    assert disagreements(values, python, found) == []
    verdicts = Counter(one.fault.kind if one.fault else "ok" for one in found)
    assert min(verdicts.values()) > 200, verdicts
    reasons = {one.fault.reason for one in found if one.fault}
    assert len(reasons) > 12, reasons


@pytest.mark.spark
def test_a_schema_that_appears_while_a_query_runs_is_read_by_its_records(spark: SparkSession):
    maker = Maker(7)
    forms = {number: maker.writer(EVERYTHING) for number in (1, 2, 3)}
    texts = {number: json.dumps(form) for number, form in forms.items()}
    texts[8], texts[9] = '"long"', json.dumps(forms[1])
    ids = Listed(texts, (1, 8, 9), {9: "PROTO' OR \\\\1"})
    values = [*cases(maker, forms, 300), framed(2**31, b"x"), framed(4_000_000_000, b""), framed(8, b"\0"), b"\0\0\0\1"]
    values += [framed(9, b"x"), b"\0" * 5, b"", b"{}"]
    writers = writers_of(EVERY, ids)
    assert set(writers.known) == {1, 8, 9}
    decode = decoder(EVERY, ids)
    found = by_spark(spark, EVERY, [*values, None], writers)
    python = [decode(value) for value in (*values, None)]
    assert disagreements([*values, b""], python, found) == []
    told = {one.fault.reason for one in found if one.fault}
    assert {
        "schema id 2147483648 is not known",
        "schema id 8 cannot be read: A stream's Avro schema is a record.",
        "schema id 9 is of type PROTO' OR \\\\1, not AVRO",
    } <= told


@pytest.mark.spark
def test_a_registry_that_cannot_be_reached_fails_the_query_and_makes_no_dead_letter(spark: SparkSession):
    from headrace.spark.decode import decode_stream

    records = spark.createDataFrame([(bytearray(framed(5, b"x")),)], "value binary")
    decoded = decode_stream(records, EVERY, Writers(Unreachable({})))
    with pytest.raises(Exception, match="the registry cannot be reached"):
        decoded.collect()


@pytest.mark.spark
def test_no_avro_poison_kills_a_query(spark: SparkSession):
    fields = schema_of({"id": str, "tags": list[str] | None, "grid": list[list[float]] | None})
    stream = Laid("poison", fields, "avro")
    good = encoder(stream)({"id": "a", "tags": ["x"], "grid": [[1.0]]})
    claims = [b"\xfe\xff\xff\xff\x0f", b"\xf0\xff\xff\xff\x0f", b"\x80\x80\x80\x08", b"\xff" * 9 + b"\x01", b"\x01\x01"]
    poison: list[bytes | None] = [
        None,
        *(claim + b"a" * 50 for claim in claims),
        *(b"\x02a\x02" + claim + b"\0" * 50 for claim in claims),
        *(b"\x02a\x00\x02\x02" + claim + b"\0" * 50 for claim in claims),
        good + MARK,
        MARK + good,
        good + b"x" * 5_000_000,
        b"\x80" * 5_000_000,
        b"\x02" * 5_000_000,
        encoder(stream)({"id": "a" * 5_000_000, "tags": ["x"] * 500_000}),
        encoder(stream)({"id": MARK.decode("latin-1")}),
        encoder(stream)({"id": MARK.decode("latin-1")}) + MARK,
        b"\x80\x80\x80\x09" + b"a" * (9 * 1024 * 1024),
    ]
    decode = decoder(stream)
    python = [decode(value) for value in poison]
    assert [exact(one) for one in by_spark(spark, stream, poison)] == [exact(one) for one in python]
    assert sum(one.row is not None for one in python) == 2


@pytest.mark.spark
def test_a_session_without_avros_limits_is_refused(spark: SparkSession):
    from headrace.spark import avro

    system = spark.sparkContext._jvm.java.lang.System
    held = system.getProperty(avro.LIMITS[0])
    system.clearProperty(avro.LIMITS[0])
    try:
        with pytest.raises(ConfigError, match="one bad record can end the process"):
            avro.need_avro(spark)
    finally:
        system.setProperty(avro.LIMITS[0], held)
    avro.need_avro(spark)


@pytest.mark.spark
def test_json_in_the_confluent_wire_format_is_read_like_json(spark: SparkSession):
    from tests.codec.generate import cases as json_cases

    stream = Laid("everything", EVERYTHING, "confluent-json")
    values = [framed(at, value) for at, value in enumerate(json_cases(400))]
    values += [b"", b"{}", b"\0\0\0\0", b"\0\0\0\0\0", b"\1\0\0\0\0{}"]
    decode = decoder(stream)
    assert disagreements(values, [decode(value) for value in values], by_spark(spark, stream, list(values))) == []


def test_the_streams_own_schema_is_known_without_a_registry():
    assert set(writers_of(EVERY).known) == set(OwnSchema(EVERY).ids(""))
