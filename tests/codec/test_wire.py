"""Formats of a stream's records, from the definition to the verdict."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pytest
from msgspec.structs import replace

import headrace as hr
from headrace.clock import SystemClock
from headrace.codec.formats import FORMATS
from headrace.codec.wire import decoder, encoder, framed, own_text, schema_id
from headrace.config.config import Names
from headrace.errors import DefinitionError, SchemaError
from headrace.ingest.send.delivery import SendOptions, send
from headrace.ingest.send.pipe import open_source
from headrace.log import MemoryLog
from headrace.meaning.verdict import judge
from headrace.plan.build import build
from headrace.plan.explain import as_json, text
from headrace.plan.model import Admission
from headrace.serve.event_intake import Intake
from headrace.testing import duplicate, late, logged, poison, record, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS: dict[str, Any] = {"id": str, "card": str, "amount": float, "at": hr.Timestamp, "note": str | None}
ROW = {"id": "p1", "card": "a", "amount": 2.5, "at": "2026-01-01T00:00:00Z"}
THEIRS = json.dumps(
    {
        "type": "record",
        "name": "Payment",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "card", "type": "string"},
            {"name": "id", "type": "string"},
            {"name": "amount", "type": "float"},
        ],
    }
)


def payments(format: str = "json", **more: Any) -> Any:
    return hr.stream("payments", fields=FIELDS, event_id="id", event_time="at", key="card", format=format, **more)


def row_of(stream: Any, data: bytes | None) -> dict[str, Any]:
    row = decoder(stream)(data).row
    assert row is not None
    return row


@pytest.mark.parametrize("format", FORMATS)
def test_a_row_comes_back_in_every_format(format: str):
    data = encoder(payments(format))(ROW)
    assert decoder(payments(format))(data).row == {**ROW, "at": 1767225600000000, "note": None}
    assert data.startswith(b"\0") is format.startswith("confluent")


@pytest.mark.parametrize("format", FORMATS)
def test_users_test_their_features_in_every_format(format: str):
    stream = payments(format)
    cards = hr.view("cards", stream, by="card", features={"spend": hr.sum("amount", over="1h")})
    one = record(stream, **ROW)
    result = run([cards], [one, duplicate(one), late(one), poison(stream)])
    assert {name: count for name, count in result.verdicts.items() if count} == {
        "malformed": 1,
        "late": 1,
        "duplicate": 1,
        "admitted": 1,
    }
    assert result.features(cards, "a", at="2026-01-01T00:30:00Z") == {"spend": 2.5}


def test_the_confluent_format_is_a_zero_byte_a_number_and_the_payload():
    stream = payments("confluent-avro")
    data = encoder(stream)(ROW)
    assert data == framed(schema_id(own_text(stream)), encoder(payments("avro"))(ROW))
    assert data[0] == 0
    assert int.from_bytes(data[1:5], "big") == schema_id(own_text(stream))


@pytest.mark.parametrize("data", [b"\0\0\0\1", b"\1\0\0\0\1{}", b"{}", b'{"id": 1}'])
@pytest.mark.parametrize("format", ["confluent-json", "confluent-avro"])
def test_bytes_without_a_head_are_malformed(format: str, data: bytes):
    fault = decoder(payments(format))(data).fault
    assert fault == ("malformed", "it does not begin with a zero byte and a schema id")


def test_an_unknown_schema_is_a_malformed_record_that_names_its_number():
    assert decoder(payments("confluent-avro"))(framed(7, b"x")).fault == ("malformed", "schema id 7 is not known")


def test_a_json_payload_needs_no_schema():
    data = framed(123456, json.dumps(ROW).encode())
    assert row_of(payments("confluent-json"), data)["card"] == "a"


def test_the_format_is_part_of_what_decides_a_verdict():
    prints = {Admission(payments(format)).fingerprint for format in FORMATS}
    prints.add(Admission(payments("avro", avro_schema=THEIRS)).fingerprint)
    assert len(prints) == 5


def test_a_plan_says_the_format():
    plan = build([payments("confluent-avro")])
    assert "records are confluent-avro" in text(plan)
    assert as_json(plan)["admissions"][0]["format"] == "confluent-avro"
    assert as_json(build([payments()]))["admissions"][0]["format"] == "json"


@pytest.mark.parametrize(("format", "mode"), [("avro", "real-time"), ("confluent-avro", "micro-batch")])
def test_only_records_with_schemas_to_look_up_stay_out_of_real_time_mode(format: str, mode: str):
    cards = hr.view("cards", payments(format), by="card", features={"n": hr.count(over="1h")})
    (tiles,) = build([cards], "real-time").tile_sets
    assert tiles.mode == mode
    assert (tiles.mode_reason is None) is (mode == "real-time")


def test_producers_may_have_an_avro_schema_of_their_own(tmp_path: Path):
    stream = payments("avro", avro_schema=THEIRS)
    data = encoder(stream)(ROW)
    read: Any = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(json.loads(THEIRS)))
    assert (read["at"].isoformat(), read["amount"]) == ("2026-01-01T00:00:00+00:00", 2.5)
    assert row_of(stream, data)["amount"] == 2.5
    file = tmp_path / "payment.avsc"
    file.write_text(json.dumps(json.loads(THEIRS), indent=2))
    assert payments("avro", avro_schema=str(file)) == stream


def test_a_path_starts_at_the_file_that_declares_the_stream(tmp_path: Path):
    (tmp_path / "payment.avsc").write_text(THEIRS)
    code = (
        "import headrace as hr\n"
        "stream = hr.stream('payments', fields=FIELDS, event_time='at', format='avro', avro_schema='payment.avsc')\n"
    )
    file = tmp_path / "features.py"
    file.write_text(code)
    held: dict[str, Any] = {"FIELDS": FIELDS}
    exec(compile(code, str(file), "exec"), held)
    assert json.loads(held["stream"].avro_schema) == json.loads(THEIRS)


@pytest.mark.parametrize(
    ("format", "schema", "told"),
    [
        ("json", THEIRS, "Only a stream of plain Avro"),
        ("confluent-avro", THEIRS, "Only a stream of plain Avro"),
        ("avro", 7, "is given as text"),
        ("avro", "no/such.avsc", "file cannot be read"),
        ("avro", '"string"', "is a record"),
        ("avro", THEIRS.replace('"float"', '"string"'), "`~ amount string -> float`"),
        ("avro", THEIRS.replace("card", "cart"), r"`\+ card string`"),
        ("avro", THEIRS.replace("timestamp-millis", "time-micros"), "`~ at Avro's time-micros -> timestamp`"),
        ("protobuf", None, "The format is not one of the known words"),
    ],
)
def test_a_format_or_schema_that_cannot_be_used_is_refused(format: str, schema: Any, told: str):
    with pytest.raises(DefinitionError, match=told):
        payments(format, avro_schema=schema)


def test_a_date_is_refused_where_the_stream_is_declared():
    date = THEIRS.replace('"long", "logicalType": "timestamp-millis"', '"int", "logicalType": "date"')
    with pytest.raises(SchemaError, match="Avro's date -> timestamp"):
        payments("avro", avro_schema=date)


@pytest.mark.parametrize("format", FORMATS)
def test_rows_of_a_file_are_sent_in_the_streams_format(format: str, tmp_path: Path):
    stream, log = payments(format), MemoryLog()
    log.create_topic("payments")
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROW) + "\n")
    for wish in (SendOptions(), SendOptions(rebase=True), SendOptions(raw=True)):
        send(open_source(str(file)), stream, log, "payments", wish=wish)
    plain, moved, raw = (found.value for found in logged(log, stream))
    assert row_of(stream, plain)["id"] == "p1"
    assert row_of(stream, moved)["at"] > 1767225600000000
    assert raw == file.read_bytes().strip()


@pytest.mark.parametrize("format", FORMATS)
def test_events_over_http_are_kept_in_the_streams_format(format: str):
    stream, log = payments(format), MemoryLog()
    log.create_topic("payments")
    intake = Intake(build([stream]), log, Names("", "shop", Path("data")), SystemClock())
    body = json.dumps(ROW).encode()
    intake.take("payments", [body])
    intake.take("payments", [body], unchecked=True)
    checked, unchecked = logged(log, stream)
    assert row_of(stream, checked.value)["id"] == "p1"
    assert checked.key == b"a"
    assert unchecked.value == body


@pytest.mark.parametrize("format", FORMATS)
def test_a_producer_sends_in_the_streams_format(format: str):
    stream, log = payments(format), MemoryLog()
    with hr.Producer(stream=stream, log=log) as producer:
        producer.send(ROW)
        producer.send(json.dumps(ROW).encode())
    assert [row_of(stream, found.value)["amount"] for found in logged(log, stream)] == [2.5, 2.5]


@pytest.mark.spark
def test_spark_gives_avro_records_the_reference_verdicts(spark: SparkSession):
    from headrace.spark.admission import OFFSET, REASON, VERDICT, judged

    stream = payments("confluent-avro", checks={"positive": "amount > 0"})
    one = record(stream, **ROW)
    given = [
        one,
        late(record(stream, **(ROW | {"id": "p2"}))),
        record(stream, **(ROW | {"amount": -1.0})),
        poison(stream, value=framed(7, b"x")),
        poison(stream, value=b"{}"),
    ]
    records = [replace(found, offset=at) for at, found in enumerate(given)]
    names = "topic string, partition int, offset bigint, arrived_at timestamp, key binary, value binary, "
    rows: list[Any] = [(r.topic, r.partition, r.offset, None, r.key, r.value, []) for r in records]
    frame = spark.createDataFrame(rows, names + "headers array<struct<key: string, value: binary>>")
    arrived = ", ".join(str(r.arrived_at) for r in records)
    timed = frame.selectExpr("* EXCEPT (arrived_at)", f"timestamp_micros(array({arrived})[offset]) AS arrived_at")
    found = {row[OFFSET]: (row[VERDICT], row[REASON]) for row in judged(timed, stream).collect()}
    expected = {each.record.offset: (each.verdict, each.reason) for each in judge(stream, records)}
    assert found == expected
