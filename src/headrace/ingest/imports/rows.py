"""The rows of a source from a row number on, as JSON with their arrival, in chunks that fit into memory.

No row is left out: one that has no JSON form of its own comes as text that admission refuses, and is counted there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.ingest.imports.columns import Columns
from headrace.ingest.imports.source import History

MOST = 10_000
"""Rows in a chunk."""


class Chunk(NamedTuple):
    """Some rows in order: their JSON, when each arrived if a column says so, and how much of the source that is."""

    values: list[bytes]
    arrivals: list[str] | None
    done: int


Chunks = Iterator[Chunk]


class Extent(NamedTuple):
    """How much there is to read, in the unit that chunks count in, and the columns; none are known of JSON lines."""

    size: int
    columns: list[str]


def extent(given: History) -> Extent:
    """How much there is, and in which columns."""
    if given.format in ("jsonl", "csv"):
        from headrace.ingest.imports import text_rows

        names = text_rows.header(given) if given.format == "csv" else []
        return Extent(given.path.stat().st_size, names)
    from headrace.ingest.imports import table_rows

    return table_rows.extent(given)


def chunks(given: History, columns: Columns, start: int = 0) -> Chunks:
    """The rows from number `start` on, numbered from 0; reading the same source twice gives the same."""
    if given.format == "csv":
        from headrace.ingest.imports import text_rows

        return text_rows.csv_chunks(given, columns, start)
    if given.format == "jsonl":
        from headrace.ingest.imports import text_rows

        return text_rows.json_chunks(given, columns, start)
    from headrace.ingest.imports import table_rows

    return table_rows.chunks(given, columns, start)
