"""The schemas that records of a stream may be written with, as a query that is being planned knows them.

Spark's `from_avro` must have its schema when a query is planned, but a producer may come with a new one while it runs.
So a query reads natively what is known when it starts, and hands records of any other number to Python, which asks the
registry then and there (`translator`). After the next start these too are read natively: a new schema costs speed, and
neither a restart nor a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.codec.avro.node import Node
from headrace.codec.avro.schema import avro_schema, record
from headrace.codec.avro.write import row_encoder
from headrace.codec.json.read import RecordFault
from headrace.codec.wire import OwnSchema, RecordLayout, SchemaIds, decoder, readable, subject_of
from headrace.types.field_types import Field, List, Struct, Timestamp, Type


@dataclass(frozen=True)
class Writers:
    """Known schemas by number, and whom to ask about others.

    Parameters
    ----------
    known
        Numbers to trees, or to the reason why records under a number cannot be read.
    ids
        Where other numbers are looked up while the query runs; it travels to Spark's workers.
    """

    ids: SchemaIds
    known: Mapping[int, Node | str] = field(default_factory=dict)


def writers_of(stream: RecordLayout, ids: SchemaIds | None = None, topic: str | None = None) -> Writers:
    """What is known of a stream's writers now.

    Parameters
    ----------
    stream
        The stream; only one in the format confluent-avro has writers to look up.
    ids
        The registry; without it only the stream's own schema is known.
    topic
        The topic that is read, which names the registry's subject; the stream's name when left out.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"at": hr.Timestamp}, event_time="at", format="confluent-avro")
    >>> len(writers_of(clicks).known)
    1
    """
    source = ids or OwnSchema(stream)
    if stream.format != "confluent-avro":
        return Writers(source)
    numbers = source.ids(subject_of(topic or stream.name))
    return Writers(source, {number: readable(number, source.schema_by_id(number)) for number in numbers})


def carrier(schema: Struct) -> Node:
    """The Avro schema that every row of a stream fits, to the microsecond whatever the units of its timestamps."""
    return record(avro_schema(_finest(schema), "carrier"))


def _finest(schema: Struct) -> Struct:
    return Struct(tuple(Field(field.name, _finest_type(field.type), field.optional) for field in schema))


def _finest_type(kind: Type) -> Type:
    match kind:
        case Timestamp():
            return Timestamp()
        case Struct():
            return _finest(kind)
        case List(element):
            return List(_finest_type(element), kind.optional)
    return kind


def translator(
    stream: RecordLayout, ids: SchemaIds
) -> Callable[[bytes | None], tuple[bytes | None, RecordFault | None]]:
    """A function from a record in the Confluent wire format to the same record in the schema of its `carrier`.

    What cannot be read gives its fault instead; the registry not being reachable is an error.
    """
    decode, encode = decoder(stream, ids), row_encoder(_finest(stream.schema), carrier(stream.schema))

    def translate(data: bytes | None) -> tuple[bytes | None, RecordFault | None]:
        row, fault = decode(data)
        return (None, fault) if row is None else (encode(row), None)

    return translate
