"""Questions to the lake in SQL, answered by DataFusion inside `deltalake`: no Spark, no server, nothing written.

Tables are called `<stream>_bronze` and `<stream>_silver`, with an underscore for a dot; with one stream also `bronze`
and `silver`. How an answer is printed is the command line's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError, did_you_mean, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.lake.table import LakeTable

_DESCRIBE = re.compile(r"\s*(?:describe|desc)\s+[\w.\"]+\s*", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*explain(?:\s+(?:analyze|verbose))*\s", re.IGNORECASE)
_MISSING = re.compile(r"table '(?:[^']*\.)?([^'.]+)' not found")


def names(tables: Mapping[str, Mapping[str, LakeTable]]) -> dict[str, LakeTable]:
    """What each table is called in a query, from tables by stream and by name."""
    # A dot would be taken for that between a schema and a table.
    called = {
        f"{stream}_{name}".replace(".", "_"): table for stream, held in tables.items() for name, table in held.items()
    }
    if len(tables) == 1:
        called |= next(iter(tables.values()))
    return called


def ask(tables: Mapping[str, LakeTable], sql: str, limit: int | None = None) -> tuple[pa.Table, bool]:
    """The first rows of an answer, and whether there are more.

    Parameters
    ----------
    tables
        Tables by what they are called, see `names`.
    sql
        One query: SELECT, WITH, VALUES, EXPLAIN or DESCRIBE. Everything else is refused before it runs.
    limit
        The most rows to give; None for all.
    """
    import pyarrow as pa

    asked = sql.strip().rstrip(";").rstrip()
    with _explained(tables):
        reader = _run(tables, asked)
        taken, rows, more = [], 0, False
        for batch in _batches(reader):
            room = batch.num_rows if limit is None else limit - rows
            more = batch.num_rows > room
            taken.append(batch.slice(0, room))
            rows += taken[-1].num_rows
            if more:
                break
        return pa.Table.from_batches(taken, schema=reader.schema), more


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    return (batch for batch in reader if batch.num_rows)


def _run(tables: Mapping[str, LakeTable], sql: str) -> pa.RecordBatchReader:
    import pyarrow as pa
    from deltalake import QueryBuilder

    builder = QueryBuilder()
    for name, table in tables.items():
        builder.register(name, table.delta)

    def run(text: str) -> Any:
        return pa.RecordBatchReader.from_stream(builder.execute(text))

    if not _DESCRIBE.fullmatch(sql):
        _refuse_what_is_no_query(run, _EXPLAIN.sub("", sql, count=1) if _EXPLAIN.match(sql) else sql)
    return run(sql)


def _refuse_what_is_no_query(run: Any, sql: str) -> None:
    """DataFusion would also COPY to files and CREATE tables: what cannot stand inside a query is not run.

    Planned on its own first, so that a mistake is described in the user's own words and places.
    """
    from deltalake.exceptions import DeltaError

    run(f"EXPLAIN {sql}")
    try:
        run(f"EXPLAIN SELECT 1 WHERE EXISTS ({sql}\n)")
    except DeltaError as error:
        hint = "Ask with SELECT; the lake is written by the archive alone."
        raise DataError("bad-query", "Only queries are run on the lake.", got=shown(sql), hint=hint) from error


@contextmanager
def _explained(tables: Iterable[str]) -> Iterator[None]:
    """Turns what DataFusion says into an error of ours, with its words."""
    from deltalake.exceptions import DeltaError
    from pyarrow import ArrowException

    try:
        yield
    except (DeltaError, ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        missing = _MISSING.search(said)
        hint = did_you_mean(missing.group(1), tables) if missing else None
        raise DataError("bad-query", "The query cannot be answered.", got=shown(said, 300), hint=hint) from error
