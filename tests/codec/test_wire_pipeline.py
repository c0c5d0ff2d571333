"""The live pipeline over records in the Confluent wire format, with a registry that learns while it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace import project
from headrace.codec.avro.node import parse
from headrace.codec.avro.write import avro_encoder
from headrace.codec.registry import client as registry_client
from headrace.codec.wire import encoder, framed
from headrace.testing import FakeClock
from tests.codec.registry_server import RegistryServer, serving
from tests.spark.both import Both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEATURES = """
import headrace as hr
payments = hr.stream("payments", fields={"id": str, "card": str, "amount": float, "at": hr.Timestamp},
    event_id="id", event_time="at", format="confluent-avro")
cards = hr.view("cards", payments, by="card", features={"spend": hr.sum("amount", over="1h")})
"""
NEWER = """{"type": "record", "name": "P", "fields": [
    {"name": "amount", "type": "int"}, {"name": "id", "type": "string"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "card", "type": "string"}]}"""


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    registry_client._memory.clear()
    with serving(RegistryServer()) as made:
        yield made


def told(both: Both, read: int) -> dict[str, int]:
    """The verdicts, once so many records are counted."""
    return {verdict: count for verdict, count in both.settled("payments", read).verdicts.items() if count}


@pytest.mark.spark
def test_a_schema_registered_while_the_pipeline_runs_is_read_and_an_unknown_one_is_a_dead_letter(
    spark: SparkSession, server: RegistryServer, tmp_path: Path
):
    (tmp_path / "features.py").write_text(FEATURES)
    (tmp_path / "headrace.toml").write_text(
        f'[project]\nname = "shop"\n[schema]\nregistry = "{server.address}"\n[log]\npartitions = 1\n'
    )
    shop = project.load(tmp_path)
    stream = shop.streams[0]
    row = {"id": "p1", "card": "a", "amount": 2.5, "at": "2026-01-01T11:59:59Z"}
    both = Both(shop, spark, FakeClock("2026-01-01T12:00:00Z"))
    pipeline = both.pipeline
    try:
        pipeline.log.append("payments", encoder(stream, pipeline.ids)(row))
        pipeline.log.append("payments", framed(77, b"x"))
        assert told(both, 2) == {"malformed": 1, "admitted": 1}
        newer = server.register("payments-value", NEWER)
        later = {"id": "p2", "card": "a", "amount": 7, "at": "2026-01-01T11:59:59Z"}
        written = avro_encoder(stream.schema, parse(NEWER))(later)
        pipeline.log.append("payments", framed(newer, written))
        assert told(both, 3) == {"malformed": 1, "admitted": 2}
        (letter,) = pipeline.log.read("payments.dead", 0, 0)
        assert dict(letter.headers)["reason"] == b"schema id 77 is not known"
        tiles = pipeline.log.read("changelog.payments.by_card", 0, 0, limit=1_000)
        versions = [json.loads(tile.value).get("version") for tile in tiles]
        assert max(version for version in versions if version) == 2
    finally:
        both.stop()
