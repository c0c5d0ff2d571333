"""Rows of CSV and of JSON lines.

CSV cells are read as `headrace send` reads them; one that cannot be its field's type stays text, which no such field
takes. A JSON line stays as it is written, except that mapped keys get their field's name.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import msgspec

from headrace.codec.json.text import NotJsonError, parser
from headrace.errors import DataError, shown
from headrace.ingest.imports.columns import Columns
from headrace.ingest.imports.rows import MOST, Chunk, Chunks
from headrace.ingest.imports.source import History
from headrace.ingest.send.csv_rows import Cell, cell_reader

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def header(given: History) -> list[str]:
    """The names in the first line of a CSV file."""
    with _opened(given) as (_, reader):
        names: list[str] = next(reader, [])
        return names


def csv_chunks(given: History, columns: Columns, start: int) -> Chunks:
    """The rows under the header; empty lines are none."""
    with _opened(given) as (file, reader):
        names: list[str] = next(reader, [])
        fields = columns.held_to(names, f"{given.name}:1")
        read = _row_reader(names, fields, columns)
        arrival = columns.arrival
        at = None if arrival is None else names.index(arrival.name)
        rows = islice((row for row in reader if row), start, None)
        while batch := list(islice(rows, MOST)):
            arrivals = None
            if arrival is not None and at is not None:
                where = f"{given.name}, before line {reader.line_num + 1}"
                arrivals = [arrival.micros(row[at] if at < len(row) else None, where) for row in batch]
            yield Chunk([read(row) for row in batch], arrivals, file.tell())


@contextmanager
def _opened(given: History) -> Iterator[tuple[Any, Any]]:
    """The file, to tell how far it is read, and its rows; what is no CSV is an error that says where."""
    try:
        file = given.path.open("rb")
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        raise DataError("bad-file", message, got=shown(given.place)) from error
    with file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            yield file, reader
        except csv.Error as error:
            where = f"{given.name}:{reader.line_num}"
            raise DataError("bad-file", f"The file is not CSV: {error}.", where=where) from error
        except UnicodeDecodeError as error:
            raise DataError("bad-file", "The file is not UTF-8.", where=given.name, got=shown(str(error))) from error


def _row_reader(names: list[str], fields: dict[str, str], columns: Columns) -> Callable[[list[str]], bytes]:
    cells: list[tuple[int, str, Cell]] = []
    for at, name in enumerate(names):
        if name in fields:
            declared = columns.schema[fields[name]]
            cells.append((at, json.dumps(declared.name), cell_reader(declared)[0]))

    def read(row: list[str]) -> bytes:
        if len(row) != len(names):
            # A list is no record, whatever is in it.
            return json.dumps(row, ensure_ascii=False).encode()
        parts = []
        for at, name, cell in cells:
            value = cell(row[at])
            parts.append(f"{name}:{json.dumps(row[at], ensure_ascii=False) if value is None else value}")
        return f"{{{','.join(parts)}}}".encode()

    return read


def json_chunks(given: History, columns: Columns, start: int) -> Chunks:
    """The lines that have something in them."""
    arrival = columns.arrival
    try:
        file = given.path.open("rb")
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        raise DataError("bad-file", message, got=shown(given.place)) from error
    with file:
        lines = islice(((line, at) for at, line in enumerate(file, 1) if line.strip()), start, None)
        while batch := list(islice(lines, MOST)):
            values = [line.rstrip(b"\r\n") for line, _ in batch]
            arrivals = None
            if arrival is not None:
                places = (f"{given.name}:{at}" for _, at in batch)
                told = (_member(value, arrival.name) for value in values)
                arrivals = [arrival.micros(value, where) for value, where in zip(told, places, strict=True)]
            renamed = [_renamed(value, columns) for value in values] if columns.mapping else values
            yield Chunk(renamed, arrivals, file.tell())


def _member(line: bytes, name: str) -> Any:
    """One value of a line; None when it is not there or the line cannot be read."""
    try:
        held = _members.decode(line).get(name)
        return None if held is None else msgspec.json.decode(held)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


_parse = parser()


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
