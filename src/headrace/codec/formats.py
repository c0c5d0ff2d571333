"""The formats a record's bytes can have. What they mean is in `codec.wire`; this much costs nothing to import."""

from __future__ import annotations

FORMATS: dict[str, str] = {
    "json": "A JSON object.",
    "avro": "An Avro record, written with the stream's schema.",
    "confluent-json": "A zero byte, the four bytes of a schema id, and a JSON object.",
    "confluent-avro": "A zero byte, the four bytes of a schema id, and an Avro record written with that schema.",
}
