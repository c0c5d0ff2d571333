"""Rows of CSV and of JSON lines.

A cell of CSV is read strictly by its field's type and becomes JSON text: text as a string, numbers as they are written,
nested values as JSON. An empty cell is null, except in a text field that is required, where it is empty text. A cell
that cannot be its field's type stays text, which no such field takes. A JSON line stays as it is written, except that
mapped keys get their field's name.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec

from headrace.codec.json import rules
from headrace.codec.json.text import NotJsonError, parser
from headrace.errors import DataError, shown
from headrace.ingest.files.columns import Columns
from headrace.ingest.files.rows import RowFault, Rows, SourceRow
from headrace.ingest.files.source import Source
from headrace.plural import show_count
from headrace.types.field_types import Boolean, Decimal, Field, Float, Integer, List, String, Struct, Timestamp, Type

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_parse = parser()

Cell = Callable[[str], str | None]
"""From a cell to its JSON text; None when it cannot be one."""


def read_header(source: Source) -> list[str]:
    """The names in the first line of a CSV file."""
    with _open_csv(source) as (_, reader):
        names: list[str] = next(reader, [])
        return names


def read_csv(source: Source, columns: Columns, start: int) -> Rows:
    """The rows under the header; empty lines are none."""
    with _open_csv(source) as (file, reader):
        names: list[str] = next(reader, [])
        columns.report_others(names, source.report)
        read = _row_reader(names, columns.match(names, f"{source.name}:1"), columns)
        line, number = reader.line_num + 1, 0
        for cells in reader:
            if cells:
                number += 1
                if number > start:
                    yield read(cells, f"{source.name}:{line}", file.tell())
            line = reader.line_num + 1


@contextmanager
def _open_csv(source: Source) -> Iterator[tuple[BinaryIO, Any]]:
    """The file, to tell how far it is read, and its rows; what is no CSV is an error that says where."""
    with source.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            yield file, reader
        except csv.Error as error:
            where = f"{source.name}:{reader.line_num}"
            hint = "Mend the line that is named; a cell with a comma, a quote or a line break stands in double quotes."
            raise DataError("bad-file", f"The file is not CSV: {error}.", where=where, hint=hint) from error
        except UnicodeDecodeError as error:
            message, hint = "The file is not UTF-8.", "Write it again in UTF-8, as `iconv -f latin1 -t utf-8` does."
            raise DataError("bad-file", message, where=source.name, got=shown(str(error)), hint=hint) from error


def _row_reader(
    names: list[str], fields: dict[str, str], columns: Columns
) -> Callable[[list[str], str, int], SourceRow]:
    declared = [(at, name, columns.schema[fields[name]]) for at, name in enumerate(names) if name in fields]
    members = [(at, name, json.dumps(field.name), *cell_reader(field)) for at, name, field in declared]
    arrival = columns.arrival
    arrived_at = len(names) if arrival is None else names.index(arrival.name)

    def read(row: list[str], place: str, done: int) -> SourceRow:
        arrived = None
        if arrival is not None:
            arrived = arrival.micros(row[arrived_at] if arrived_at < len(row) else None, place)
        if len(row) != len(names):
            fault = RowFault(place, f"it has {show_count(len(row), 'cell')} and the header {len(names)}", shown(row))
            # A list is no record, whatever is in it.
            return SourceRow(place, json.dumps(row, ensure_ascii=False).encode(), fault, done, arrived)
        parts, wrong = [], None
        for at, name, member, cell, reason in members:
            value = cell(row[at])
            if value is None:
                wrong = wrong or RowFault(f"{place}, column {name!r}", reason, shown(row[at]))
                value = json.dumps(row[at], ensure_ascii=False)
            parts.append(f"{member}:{value}")
        return SourceRow(place, f"{{{','.join(parts)}}}".encode(), wrong, done, arrived)

    return read


def cell_reader(field: Field) -> tuple[Cell, str]:
    """How a field's cells are read, and what is said of one that cannot be.

    >>> read, reason = cell_reader(Field("n", Integer()))
    >>> read("7"), read("7.0"), reason
    ('7', None, 'n must be a whole number of 64 bits')
    """
    read = _cell(field.type)
    empty = '""' if isinstance(field.type, String) and not field.optional else "null"
    return lambda text: read(text) if text else empty, rules.wrong(field.name, field.type)


def _cell(kind: Type) -> Cell:
    match kind:
        case Boolean():
            return lambda text: text.lower() if text.lower() in ("true", "false") else None
        case Integer() | Timestamp("s" | "ms" | "us"):
            return lambda text: text if _WHOLE.fullmatch(text) else None
        case Float() | Decimal():
            return lambda text: text if _NUMBER.fullmatch(text) else None
        case List() | Struct():
            return _nested
    return lambda text: json.dumps(text, ensure_ascii=False)


def _nested(text: str) -> str | None:
    try:
        _parse(text)
    except NotJsonError:
        return None
    return text


def read_lines(source: Source, columns: Columns, start: int) -> Rows:
    """The lines that have something in them."""
    arrival, done, number = columns.arrival, 0, 0
    with source.open() as file:
        for at, line in enumerate(file, 1):
            done += len(line)
            value = line.rstrip(b"\r\n")
            if not value.strip():
                continue
            number += 1
            if number > start:
                place = f"{source.name}:{at}"
                arrived = None if arrival is None else arrival.micros(_member(value, arrival.name), place)
                yield SourceRow(place, _renamed(value, columns) if columns.mapping else value, None, done, arrived)


def _member(line: bytes, name: str) -> Any:
    """One value of a line; None when it is not there or the line cannot be read."""
    try:
        held = _members.decode(line).get(name)
        return None if held is None else msgspec.json.decode(held)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _renamed(line: bytes, columns: Columns) -> bytes:
    """A line with its mapped keys renamed, every value as it is written; a line that cannot be read stays."""
    try:
        # A key that appears twice must not vanish here: such a line is malformed.
        _parse(line.decode())
        members = _members.decode(line)
    except (NotJsonError, UnicodeDecodeError, msgspec.DecodeError):
        return line
    kept = ((columns.mapping.get(name, name), value) for name, value in members.items())
    return b"{" + b",".join(json.dumps(name).encode() + b":" + bytes(value) for name, value in kept) + b"}"
