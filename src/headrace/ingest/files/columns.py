"""Which column of a source is which field of the stream, and which says when a row arrived.

A column has the field of its own name unless it is mapped to another. Columns that are no field are left out. What
values mean is not decided here: a row that does not fit gets its verdict like any record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from headrace.clock import micros, parse_timestamp
from headrace.errors import DataError, UsageError, did_you_mean, shown
from headrace.types.field_types import Struct, Timestamp

_WHOLE = re.compile(r"-?[0-9]{1,18}")
LONGEST_SHOWN = 100
NAMING = "A column has the name of its field; in CSV the first line names the columns."


@dataclass(frozen=True)
class ArrivalColumn:
    """The column that says when a row arrived; `unit` is that of whole numbers, None when nobody said one."""

    name: str
    unit: str | None = None

    def micros(self, value: Any, where: str) -> str:
        """A cell as the header of a record has it: microseconds; what cannot be read stays as it is, and is invalid."""
        if value is None or value == "":
            return ""
        if isinstance(value, datetime) and value.tzinfo is not None:
            return str(micros(value))
        text = str(value)
        if _WHOLE.fullmatch(text) and not isinstance(value, bool):
            if self.unit is None:
                message = f"Column {self.name!r} says when rows arrived in whole numbers of an unknown unit."
                hint = f"Say which: --arrived-at {self.name}:s, {self.name}:ms or {self.name}:us."
                raise DataError("bad-file", message, got=shown(value), hint=hint, where=where)
            return str(int(text) * Timestamp.units[self.unit])
        moment = parse_timestamp(text)
        return f"not a moment: {text}"[:LONGEST_SHOWN] if moment is None else str(moment)


@dataclass(frozen=True)
class Columns:
    """How the columns of a source are read.

    Parameters
    ----------
    schema
        The stream's fields.
    mapping
        Columns to the fields they are, where the names differ.
    arrival
        The column that says when a row arrived; None when that is assumed.
    can_map
        Whether the user can map columns, for hints.
    """

    schema: Struct
    mapping: Mapping[str, str] = field(default_factory=dict)
    arrival: ArrivalColumn | None = None
    can_map: bool = False

    def field_of(self, column: str) -> str | None:
        """The field a column is, or None.

        >>> from headrace.types.field_types import schema_of
        >>> columns = Columns(schema_of({"card": str, "amount": float}), {"card_no": "card"})
        >>> [columns.field_of(name) for name in ("card_no", "amount", "card", "note")]
        ['card', 'amount', None, None]
        """
        if column in self.mapping:
            return self.mapping[column]
        return column if column in self.schema and column not in self.mapping.values() else None

    def match(self, found: Sequence[str], where: str) -> dict[str, str]:
        """The source's columns that are fields, once it has every column that is needed and none twice."""
        for name in found:
            if found.count(name) > 1:
                own = "Give each column a name of its own."
                raise DataError("bad-file", "Two columns have one name.", where=where, got=shown(name), hint=own)
        wanted = [*self.mapping, *([self.arrival.name] if self.arrival else [])]
        for name in wanted:
            if name not in found:
                hint = did_you_mean(name, found)
                raise DataError("bad-file", "There is no such column.", where=where, got=shown(name), hint=hint)
        fields = {name: known for name in found if (known := self.field_of(name)) is not None}
        for each in self.schema:
            if each.name not in fields.values() and not each.optional:
                message = f"There is no column for the required field {each.name!r}."
                mapped = f"Name it with --map COLUMN={each.name}." if self.can_map else None
                hint = mapped or did_you_mean(each.name, found) or NAMING
                raise DataError("bad-file", message, where=where, got=shown(list(found), 200), hint=hint)
        return fields

    def report_others(self, found: Sequence[str], report: Callable[[str], None]) -> None:
        """Report the columns that are no field and do not say when a row arrived."""
        taken = None if self.arrival is None else self.arrival.name
        for name in found:
            if self.field_of(name) is None and name != taken:
                report(name)


def parse_columns(schema: Struct, mapping: Mapping[str, str], arrived_at: str | None) -> Columns:
    """What the command line says of columns: `arrived_at` is COLUMN or COLUMN:UNIT.

    >>> from headrace.types.field_types import schema_of
    >>> parse_columns(schema_of({"at": Timestamp}), {}, "seen:ms").arrival
    ArrivalColumn(name='seen', unit='ms')
    """
    for name in mapping.values():
        if name not in schema:
            hint = did_you_mean(name, [each.name for each in schema])
            message = "--map names a field that the stream does not have."
            raise UsageError("bad-usage", message, got=shown(name), hint=hint)
        if list(mapping.values()).count(name) > 1:
            hint = "Name each field once, and leave the other column out."
            raise UsageError("bad-usage", "--map gives one field two columns.", got=shown(name), hint=hint)
    made = Columns(schema, dict(mapping), can_map=True)
    if arrived_at is None:
        return made
    name, _, unit = arrived_at.rpartition(":")
    if not name or unit not in Timestamp.units:
        name, unit = arrived_at, ""
    known = made.field_of(name)
    kind = schema[known].type if known is not None else None
    if not unit and isinstance(kind, Timestamp) and kind.unit in Timestamp.units:
        unit = kind.unit
    return replace(made, arrival=ArrivalColumn(name, unit or None))
