"""The rows of a source from a row number on, each as JSON text with its place, in bounded memory.

No row is left out. One that does not fit its columns has a fault: `headrace send` refuses it with the fault's words,
`headrace import` takes its text, which admission refuses and counts.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from headrace.ingest.files.columns import Columns
from headrace.ingest.files.source import CSV, JSONL, Source


class RowFault(NamedTuple):
    """Why a row does not fit: its place, the reason, and what stood there."""

    place: str
    reason: str
    got: str


class SourceRow(NamedTuple):
    """One row.

    Parameters
    ----------
    place
        The file with the number of the line or row.
    value
        The row's JSON text; text that admission refuses where it has a fault.
    fault
        Why the row does not fit.
    done
        How much has been read with it: bytes of text, rows of a table.
    arrival
        When it arrived in microseconds, if a column says so; empty when that cell is, None without a column.
    """

    place: str
    value: bytes
    fault: RowFault | None
    done: int
    arrival: str | None = None


Rows = Generator[SourceRow, None, None]
"""Rows as they are read; closing it closes the file."""


class Extent(NamedTuple):
    """How much there is to read, in the unit that rows count in, and the columns; JSON lines and pipes name none."""

    size: int | None
    columns: list[str]


def read_rows(source: Source, columns: Columns, start: int = 0) -> Rows:
    """The rows from number `start` on, numbered from 0; reading the same file twice gives the same."""
    if source.format in (JSONL, CSV):
        from headrace.ingest.files import text_rows

        read = text_rows.read_csv if source.format == CSV else text_rows.read_lines
        return read(source, columns, start)
    from headrace.ingest.files import table_rows

    return table_rows.read_table(source, columns, start)


def read_extent(source: Source) -> Extent:
    """How much there is, and in which columns."""
    if source.pipe is not None:
        return Extent(None, [])
    if source.format in (JSONL, CSV):
        from headrace.ingest.files import text_rows

        return Extent(source.size, text_rows.read_header(source) if source.format == CSV else [])
    from headrace.ingest.files import table_rows

    return table_rows.read_extent(source)
