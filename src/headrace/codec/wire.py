"""How a stream's records are laid out in bytes: JSON or Avro, plain or in the Confluent wire format.

In that format a record begins with a zero byte and the four bytes of a schema's number, and the payload follows. The
number names the schema an Avro record was written with, so it is looked up (`SchemaIds`); a JSON payload says itself
what it is, so its number is not. Here bytes become rows and rows bytes, in Python; `spark.decode` does the first
natively in Spark. Who keeps the schemas: `schema.registry` in the project, `codec.registry.client` on a server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.codec.avro.node import Node
from headrace.codec.avro.read import avro_decoder
from headrace.codec.avro.schema import avro_text, record
from headrace.codec.avro.write import row_encoder
from headrace.codec.json import write as json_encode
from headrace.codec.json.read import Decoded, RecordFault
from headrace.codec.json.read import decoder as json_decoder
from headrace.errors import SchemaError
from headrace.types.field_types import Struct

MAGIC = b"\x00"
Row = Mapping[str, Any]
UNFRAMED = "it does not begin with a zero byte and a schema id"


class RecordLayout(Protocol):
    """What of a stream decides its bytes; `hr.stream` makes one."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> Struct: ...
    @property
    def format(self) -> str: ...
    @property
    def avro_schema(self) -> str | None: ...


@dataclass(frozen=True)
class Laid:
    """A layout and nothing else of its stream: what travels to Spark's workers."""

    name: str
    schema: Struct
    format: str
    avro_schema: str | None = None


@dataclass(frozen=True)
class Written:
    """A schema that records are written with, as a registry keeps it."""

    text: str
    kind: str = "AVRO"


class SchemaIds(Protocol):
    """Where schemas are kept under numbers; a number never changes its schema."""

    def schema_by_id(self, number: int) -> Written | None:
        """The schema of a number; None if there is none. Not being able to ask is an error, never None."""

    def ids(self, subject: str) -> tuple[int, ...]:
        """The numbers of a subject's schemas, as far as they are known now."""

    def writer(self, subject: str, layout: RecordLayout) -> tuple[int, str]:
        """The number and text of the schema that rows of a stream are to be written with."""


@dataclass(frozen=True)
class OwnSchema:
    """A registry that knows a stream's own schema and nothing else: for tests and previews.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"at": hr.Timestamp}, event_time="at", format="confluent-avro")
    >>> OwnSchema(clicks).ids("clicks-value") == (schema_id(own_text(clicks)),)
    True
    """

    layout: RecordLayout

    def schema_by_id(self, number: int) -> Written | None:
        """The stream's own schema under its own number."""
        text = own_text(self.layout)
        return Written(text) if number == schema_id(text) else None

    def ids(self, subject: str) -> tuple[int, ...]:  # noqa: ARG002 - every subject is the stream's own
        """One number."""
        return (schema_id(own_text(self.layout)),)

    def writer(self, subject: str, layout: RecordLayout) -> tuple[int, str]:  # noqa: ARG002
        """The stream's own schema."""
        return schema_id(own_text(layout)), own_text(layout)


def own_text(layout: RecordLayout) -> str:
    """The Avro schema of a stream as text: its producers' own if it names one, else derived from its fields."""
    return layout.avro_schema or avro_text(layout.schema, layout.name)


def schema_id(text: str) -> int:
    """The number of a schema in the project's own registry: made from its text, so that branches and machines agree.

    >>> schema_id("{}")
    1142124451
    """
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) & 0x7FFFFFFF


def subject_of(topic: str) -> str:
    """The registry's name for the values of a topic.

    >>> subject_of("payments")
    'payments-value'
    """
    return f"{topic}-value"


def framed(number: int, payload: bytes) -> bytes:
    """A payload in the Confluent wire format.

    >>> framed(7, b"{}")
    b'\\x00\\x00\\x00\\x00\\x07{}'
    """
    return MAGIC + number.to_bytes(4, "big") + payload


def readable(number: int, written: Written | None) -> Node | str:
    """The tree of a schema, or why records under its number cannot be read."""
    if written is None:
        return f"schema id {number} is not known"
    if written.kind != "AVRO":
        return f"schema id {number} is of type {written.kind}, not AVRO"
    try:
        return record(written.text)
    except SchemaError as error:
        return f"schema id {number} cannot be read: {error.message}"


def decoder(layout: RecordLayout, ids: SchemaIds | None = None) -> Callable[[bytes | None], Decoded]:
    """A function from a record's bytes to its row or fault.

    Parameters
    ----------
    layout
        The stream.
    ids
        Where schemas are looked up; without it only the stream's own is known.

    Examples
    --------
    >>> import headrace as hr
    >>> fields = {"user": str, "at": hr.Timestamp("s")}
    >>> clicks = hr.stream("clicks", fields=fields, event_time="at", format="confluent-json")
    >>> decoder(clicks)(framed(1, b'{"user": "ann", "at": 0}')).row
    {'user': 'ann', 'at': 0}
    """
    match layout.format:
        case "avro":
            return avro_decoder(layout.schema, record(own_text(layout)))
        case "confluent-json":
            read = json_decoder(layout.schema)
            return lambda data: read(data[5:]) if _is_framed(data) and data else _unframed(data)
        case "confluent-avro":
            return _by_id(layout, ids or OwnSchema(layout))
    return json_decoder(layout.schema)


def _is_framed(data: bytes | None) -> bool:
    return bool(data) and len(data or b"") >= 5 and (data or b"")[:1] == MAGIC


def _unframed(data: bytes | None) -> Decoded:
    return Decoded(None, RecordFault("malformed", UNFRAMED if data else "there is nothing in it"))


def _by_id(layout: RecordLayout, ids: SchemaIds) -> Callable[[bytes | None], Decoded]:
    readers: dict[int, Callable[[bytes | None], Decoded]] = {}

    def decode(data: bytes | None) -> Decoded:
        if not data or not _is_framed(data):
            return _unframed(data)
        number = int.from_bytes(data[1:5], "big")
        read = readers.get(number)
        if read is None:
            written = ids.schema_by_id(number)
            node = readable(number, written)
            if isinstance(node, str):
                # An unknown number is not remembered: it may be registered later.
                return Decoded(None, RecordFault("malformed", node))
            read = readers[number] = avro_decoder(layout.schema, node)
        return read(data[5:])

    return decode


def encoder(layout: RecordLayout, ids: SchemaIds | None = None, topic: str | None = None) -> Callable[[Row], bytes]:
    """A function from a row to a record's bytes; what would not be read back equal is refused.

    Parameters
    ----------
    layout
        The stream.
    ids
        Where schemas are kept; without it the stream's own is taken.
    topic
        The topic that is written to, which names the registry's subject; the stream's name when left out.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"at": hr.Timestamp("s")}, event_time="at", format="avro")
    >>> encoder(clicks)({"at": "1970-01-01T00:00:01Z"})
    b'\\x02'
    """
    if layout.format == "json":
        return lambda row: json_encode.encode(layout.schema, row)
    write = row_writer(layout, ids, topic)
    return lambda row: write(json_encode.coerce(layout.schema, row))


def row_writer(layout: RecordLayout, ids: SchemaIds | None = None, topic: str | None = None) -> Callable[[Row], bytes]:
    """As `encoder`, for rows that are in Headrace's own types already, as a decoder gives them."""
    if layout.format == "json":
        return lambda row: json_encode.encode(layout.schema, row)
    if layout.format == "avro":
        return row_encoder(layout.schema, record(own_text(layout)))
    number, text = (ids or OwnSchema(layout)).writer(subject_of(topic or layout.name), layout)
    if layout.format == "confluent-avro":
        write = row_encoder(layout.schema, record(text))
        return lambda row: framed(number, write(row))
    return lambda row: framed(number, json_encode.encode(layout.schema, row))
