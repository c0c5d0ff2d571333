"""A stream: what its records look like and how its time works.

A stream is a frozen value. `where` and `with_columns` give new ones; whatever is computed is inlined right away, so
every expression downstream speaks of the record's own fields alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

from headrace.clock import duration
from headrace.codec.formats import FORMATS
from headrace.define.avro_file import avro_text_of
from headrace.define.name import NamedValue, name_of, one_of, text_of
from headrace.errors import DefinitionError, ProjectError, did_you_mean, shown, user_location
from headrace.expression import ColumnType, Expression, both, field, parse, underlined
from headrace.public_calls import check_call
from headrace.types.field_types import NAME, Boolean, Integer, Schema, String, Timestamp, Type, schema_of

LATE_POLICIES = ("update", "side_output", "drop")
TAKEN = frozenset(
    ("_partition", "_offset", "_arrived_at", "_late", "_closed", "_event_id", "_identity", "_payload", "_order", "_day")
)
"""Columns that the lake puts beside a stream's fields."""


@dataclass(frozen=True)
class Arrival:
    """Where a record's arrival time comes from: the log, the producer's clock, a header or a field."""

    source: str
    name: str | None = None

    def __str__(self) -> str:
        return self.source if self.name is None else f"{self.source}:{self.name}"


@dataclass(frozen=True, repr=False)
class Stream(NamedValue):
    """Events of one kind, perhaps filtered and with computed columns. Made by `hr.stream`."""

    name: str
    schema: Schema
    event_time: str
    event_id: str | None
    key: str | None
    arrival: Arrival
    allowed_lateness: int
    max_clock_skew: int
    late: str
    checks: tuple[tuple[str, Expression], ...] = ()
    description: str | None = None
    filter: Expression | None = None
    computed: tuple[tuple[str, Expression], ...] = ()
    format: str = "json"
    avro_schema: str | None = None
    location: str | None = dataclass_field(default=None, compare=False)

    @property
    def columns(self) -> dict[str, ColumnType]:
        """Every column an expression may name: the fields, then what was computed."""
        fields = {field.name: ColumnType(field.type, field.optional) for field in self.schema}
        return fields | {name: ColumnType(made.type, made.nullable) for name, made in self.computed}

    @property
    def base(self) -> Stream:
        """The stream as it was declared, without filters and computed columns."""
        return replace(self, filter=None, computed=())

    def expression(self, text: str) -> Expression:
        """Read an SQL expression over this stream's columns, with computed ones inlined."""
        return parse(text, self.columns).substitute(dict(self.computed))

    def column(self, name: str) -> Expression:
        """One column as an expression over the record's own fields."""
        for made, expression in self.computed:
            if made == name:
                return expression
        column = self.columns.get(name)
        if column is None:
            hint = did_you_mean(name, self.columns)
            message = f"Stream {self.name!r} has no such field."
            raise DefinitionError("unknown-field", message, got=shown(name), hint=hint)
        return field(name, column)

    @check_call
    def where(self, condition: str) -> Stream:
        """Only the events for which the condition is true.

        >>> import headrace as hr
        >>> clicks = hr.stream("clicks", fields={"at": hr.Timestamp, "n": int}, event_time="at")
        >>> clicks.where("n > 0").filter.text
        'n > 0'
        """
        read = self.expression(_text(condition, "`where`"))
        _want(read.type, Boolean, f"The condition of stream {self.name!r}", condition)
        return replace(self, filter=both(self.filter, read))

    @check_call
    def with_columns(self, **columns: str) -> Stream:
        """More columns, each an SQL expression over the fields and the other columns.

        >>> import headrace as hr
        >>> clicks = hr.stream("clicks", fields={"at": hr.Timestamp, "n": int}, event_time="at")
        >>> clicks.with_columns(even="n % 2 = 0").columns["even"].type.name
        'boolean'
        """
        waiting = {name: _text(text, f"Column {name!r}") for name, text in columns.items()}
        grown = self
        for name in waiting:
            self._refuse_taken(name)
        while waiting:
            name, made = _next_column(grown, waiting)
            del waiting[name]
            grown = replace(grown, computed=(*grown.computed, (name, made)))
        return grown

    def _refuse_taken(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise DefinitionError("bad-name", "A column's name cannot be used.", got=shown(name))
        if name.lower() in {taken.lower() for taken in self.columns}:
            message = f"Stream {self.name!r} already has a column of that name."
            raise DefinitionError("duplicate-name", message, got=shown(name), hint="Give the new column its own name.")


def _next_column(stream: Stream, waiting: Mapping[str, str]) -> tuple[str, Expression]:
    """A waiting column that needs no other waiting one; a circle is an error."""
    unready = {shown(name) for name in waiting}
    for name, text in waiting.items():
        try:
            return name, stream.expression(text)
        except DefinitionError as error:
            if error.code != "unknown-field" or error.got not in unready:
                raise error.inside(f"column {name!r}") from None
    circle = ", ".join(sorted(waiting))
    hint = "Write at least one of them in terms of the stream's own fields."
    raise DefinitionError("cycle", "Computed columns need each other in a circle.", got=shown(circle), hint=hint)


@check_call
def stream(  # noqa: PLR0913
    name: str,
    *,
    fields: Mapping[str, Any],
    event_time: str,
    event_id: str | None = None,
    key: str | None = None,
    arrival: str = "log",
    allowed_lateness: Any = "10m",
    max_clock_skew: Any = "1m",
    late: str = "update",
    checks: Mapping[str, str] | None = None,
    description: str | None = None,
    format: str = "json",
    avro_schema: str | None = None,
) -> Stream:
    """Declare a stream of events.

    Parameters
    ----------
    name
        The stream's name, and its topic's.
    fields
        Names to types: `str`, `bool`, `int`, `float`, `hr.Decimal(p, s)`, `hr.Timestamp`, `list[T]`, a nested dict,
        and `T | None` for what may be absent.
    event_time
        The timestamp field that says when it happened.
    event_id
        The field that, with the event time, says which event a record is of: records that agree in both are copies of
        one event. Without it every record is its own event.
    key
        The field producers partition by.
    arrival
        "log" (the log's append time), "producer", "header:NAME" or "field:NAME".
    allowed_lateness, max_clock_skew
        An event that arrives later than the first is late; one dated further ahead than the second is from the future.
    late
        "update" counts late events in their own lane, "side_output" sends them to `<stream>.late`, "drop" keeps them
        in the lake only.
    checks
        Names to SQL conditions; a record for which one is false is invalid.
    description
        What the events are.
    format
        What a record's bytes are: "json", "avro", or either in the Confluent wire format, "confluent-json" and
        "confluent-avro", where a registry keeps the schemas.
    avro_schema
        The Avro schema that producers of an "avro" stream write with, as JSON text or as the path of a file beside the
        definition; derived from the fields when left out.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> clicks.allowed_lateness
    600000000
    """
    schema = schema_of(fields, f"stream {name_of(name, 'a stream')!r}")
    for field_ in schema:
        if field_.name.lower() in TAKEN:
            hint = "The lake has a column of that name beside the fields: choose another."
            raise DefinitionError("bad-name", "A field's name is taken.", got=shown(field_.name), hint=hint)
    declared = Stream(
        name=name,
        schema=schema,
        event_time=_role(schema, event_time, "event_time", Timestamp),
        event_id=None if event_id is None else _role(schema, event_id, "event_id", String, Integer),
        key=None if key is None else _role(schema, key, "key", String, Integer, Boolean),
        arrival=_arrival(schema, arrival),
        allowed_lateness=duration(allowed_lateness, "the allowed lateness", zero=True),
        max_clock_skew=duration(max_clock_skew, "the clock skew", zero=True),
        late=one_of(late, LATE_POLICIES, "The late policy"),
        description=text_of(description, "A description"),
        format=one_of(format, FORMATS, "The format"),
        avro_schema=None if avro_schema is None else avro_text_of(avro_schema, format, schema),
        location=user_location(),
    )
    return replace(declared, checks=tuple(_check(declared, *item) for item in (checks or {}).items()))


def _role(schema: Schema, name: Any, role: str, *kinds: type[Type]) -> str:
    if not isinstance(name, str) or name not in schema:
        hint = did_you_mean(name, [field.name for field in schema])
        raise DefinitionError("unknown-field", f"`{role}` names a field that is not there.", got=shown(name), hint=hint)
    found = schema[name]
    wanted = " or ".join(kind.name for kind in kinds)
    if not isinstance(found.type, kinds) or found.optional:
        message = f"`{role}` needs a field of type {wanted} that is always there."
        raise DefinitionError(
            "wrong-type", message, got=str(found), hint=f"Declare {name!r} as {wanted}, not optional."
        )
    return name


def _arrival(schema: Schema, text: Any) -> Arrival:
    source, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if text in ("log", "producer"):
        return Arrival(text)
    if source == "field" and name:
        return Arrival("field", _role(schema, name, "arrival", Timestamp))
    if source == "header" and name:
        return Arrival("header", name)
    hint = 'Say "log", "producer", "header:NAME" or "field:NAME".'
    raise DefinitionError("bad-argument", "`arrival` is not one of the known sources.", got=shown(text), hint=hint)


def _check(declared: Stream, name: str, text: str) -> tuple[str, Expression]:
    read = declared.expression(_text(text, f"Check {name!r}"))
    _want(read.type, Boolean, f"Check {name_of(name, 'a check')!r}", text)
    return name, read


def _want(found: Type, kind: type[Type], what: str, text: str) -> None:
    if not isinstance(found, kind):
        hint = 'Write a comparison, as "amount > 0".'
        message = f"{what} is of type {found}, not {kind.name}."
        raise DefinitionError("wrong-type", message, got=shown(text), hint=hint, excerpt=underlined(text))


def _text(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    raise DefinitionError("bad-argument", f"{what} takes an SQL expression as text.", got=shown(value))


def find_stream(streams: Iterable[Stream], name: str) -> Stream:
    """The stream of a name; a name that none has is refused with `not-found`."""
    known = {stream.name: stream for stream in streams}
    if name not in known:
        raise ProjectError("not-found", "There is no such stream.", got=shown(name), hint=did_you_mean(name, known))
    return known[name]
