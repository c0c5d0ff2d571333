"""CSV as rows: a header that names fields, and cells that are read strictly by their field's type.

A cell becomes JSON text: text as a string, numbers as they are written, nested values as JSON. An empty cell is null,
except in a text field that is required, where it is empty text. Columns that name no field are left out.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable

from headrace.codec.json import rules
from headrace.codec.json.text import NotJsonError, parser
from headrace.errors import DataError, did_you_mean, shown
from headrace.ingest.send.source import Fault, Row, Rows, Source
from headrace.plural import show_count
from headrace.types.field_types import Boolean, Decimal, Field, Float, Integer, List, String, Struct, Timestamp, Type

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def rows(given: Source, schema: Struct) -> Rows:
    """The rows under the header, each as JSON text or with the column that is wrong."""
    with given.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, [])
            for name in header:
                if name not in schema:
                    given.report(name)
            cells = [cell_reader(schema[name]) if name in schema else None for name in _checked(given, header, schema)]
            line = reader.line_num + 1
            for row in reader:
                if row:
                    yield _row(f"{given.name}:{line}", header, cells, row, file.tell())
                line = reader.line_num + 1
        except csv.Error as error:
            message = f"The file is not CSV: {error}."
            raise DataError("bad-file", message, where=f"{given.name}:{reader.line_num}") from error
        except UnicodeDecodeError as error:
            raise DataError("bad-file", "The file is not UTF-8.", where=given.name, got=shown(str(error))) from error


def _checked(given: Source, header: list[str], schema: Struct) -> list[str]:
    """The header, if it names every required field and nothing twice."""
    where = f"{given.name}:1"
    for name in header:
        if header.count(name) > 1:
            raise DataError("bad-file", "Two columns have one name.", where=where, got=shown(name))
    for field in schema:
        if field.name not in header and not field.optional:
            hint = did_you_mean(field.name, header) or "The first line must name the columns."
            message = f"There is no column for the required field {field.name!r}."
            raise DataError("bad-file", message, where=where, got=shown(header), hint=hint)
    return header


Cell = Callable[[str], str | None]
"""From a cell to its JSON text; None when it cannot be one."""


def _row(place: str, header: list[str], cells: list[tuple[Cell, str] | None], row: list[str], done: int) -> Row:
    if len(row) != len(header):
        reason = f"it has {show_count(len(row), 'cell')} and the header {len(header)}"
        return Row(place, b"", Fault(place, reason, shown(row)), done)
    parts = []
    for name, found, text in zip(header, cells, row, strict=True):
        if found is None:
            continue
        cell, reason = found
        value = cell(text)
        if value is None:
            return Row(place, b"", Fault(f"{place}, column {name!r}", reason, shown(text)), done)
        parts.append(f"{json.dumps(name)}:{value}")
    return Row(place, f"{{{','.join(parts)}}}".encode(), None, done)


def cell_reader(field: Field) -> tuple[Cell, str]:
    """How a field's cells are read, and what is said of one that cannot be.

    >>> read, reason = cell_reader(Field("n", Integer()))
    >>> read("7"), read("7.0"), reason
    ('7', None, 'n must be a whole number of 64 bits')
    """
    read = _reader(field.type)
    empty = '""' if isinstance(field.type, String) and not field.optional else "null"

    def cell(text: str) -> str | None:
        return read(text) if text else empty

    return cell, rules.wrong(field.name, field.type)


def _reader(kind: Type) -> Cell:
    match kind:
        case Boolean():
            return lambda text: text.lower() if text.lower() in ("true", "false") else None
        case Integer() | Timestamp("s" | "ms" | "us"):
            return lambda text: text if _WHOLE.fullmatch(text) else None
        case Float() | Decimal():
            return lambda text: text if _NUMBER.fullmatch(text) else None
        case List() | Struct():
            return _nested()
    return lambda text: json.dumps(text, ensure_ascii=False)


def _nested() -> Cell:
    parse = parser()

    def nested(text: str) -> str | None:
        try:
            parse(text)
        except NotJsonError:
            return None
        return text

    return nested
