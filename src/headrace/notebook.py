"""For notebooks: run a view over a pandas or Arrow table on the reference interpreter and look at the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.clock import micros
from headrace.define.name import one_of
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.errors import DataError, did_you_mean, shown
from headrace.log.record import Record
from headrace.plural import show_count
from headrace.public_calls import check_call
from headrace.testing import Run, record, run

if TYPE_CHECKING:
    import pandas as pd

ARRIVAL_COLUMN = "arrived_at"
MOST_ROWS = 1_000_000


@check_call
def preview(view: View, table: Any, *, each: str = "key", at: Any = None) -> pd.DataFrame:
    """What a view's features are over a table of events.

    Parameters
    ----------
    view
        The view.
    table
        A pandas DataFrame or Arrow table with the stream's fields, and optionally `arrived_at`.
    each
        "key" gives one row per key at `at`; "event" one row per event, just after it arrived.
    at
        The time t for "key"; just after the last arrival by default.

    Returns
    -------
    pandas.DataFrame
        The key, the time, the verdict for "event", and one column per feature.

    Examples
    --------
    >>> import headrace as hr, pandas as pd
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> table = pd.DataFrame({"user": ["ann", "ann"], "at": pd.to_datetime(["2026-01-01", "2026-01-01"], utc=True)})
    >>> hr.preview(users, table)[["user", "clicks_1h"]].to_dict("records")
    [{'user': 'ann', 'clicks_1h': 2}]
    """
    import pandas as pd

    one_of(each, ("key", "event"), "`each`")
    result = run([view], _records(view.stream.base, table))
    rows = _by_event(result, view) if each == "event" else _by_key(result, view, at)
    columns = [*view.by, "at", *(["verdict"] if each == "event" else []), *(feature.name for feature in view.features)]
    return pd.DataFrame(rows, columns=columns)


def _records(stream: Stream, table: Any) -> list[Record]:
    rows = _rows(table)
    known = {field.name for field in stream.schema}
    columns = set(rows[0]) if rows else set()
    needed = {field.name for field in stream.schema if not field.optional}
    if missing := sorted(needed - columns) if rows else []:
        hint = did_you_mean(missing[0], columns)
        message = f"The table lacks columns of stream {stream.name!r}."
        raise DataError("bad-record", message, got=shown(missing), hint=hint)
    made = []
    for row in rows:
        fields = {name: value for name, value in row.items() if name in known}
        made.append(record(stream, arrived_at=row.get(ARRIVAL_COLUMN), **fields))
    return made


def _rows(table: Any) -> list[dict[str, Any]]:
    """The table as rows of plain Python values, with nulls as None."""
    import pyarrow as pa

    if hasattr(table, "to_dict") and hasattr(table, "columns"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if not isinstance(table, pa.Table | pa.RecordBatch):
        hint = "Give a pandas DataFrame or a pyarrow Table."
        raise DataError("bad-record", "This is not a table.", got=shown(type(table).__name__), hint=hint)
    if table.num_rows > MOST_ROWS:
        hint = f"Take a sample of at most {MOST_ROWS:,} rows."
        raise DataError(
            "bad-record", "The table is too long for a preview.", got=show_count(table.num_rows, "row"), hint=hint
        )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _by_key(result: Run, view: View, at: Any) -> list[list[Any]]:
    last = max((judged.place[0] for judged in result.judged), default=0) + 1
    moment = last if at is None else micros(at, "`at`")
    return [
        [*key, _shown_time(moment), *result.outcome.values(view, key, (moment,)).values()]
        for key in result.outcome.keys(view)
    ]


def _by_event(result: Run, view: View) -> list[list[Any]]:
    parts = [column.python() for _, column in view.key]
    rows = []
    for judged in result.judged:
        if judged.event is None:
            continue
        key = tuple(part(judged.event.row) for part in parts)
        arrived, partition, offset = judged.place
        values = result.outcome.values(view, key, (arrived, partition, offset + 1))
        rows.append([*key, _shown_time(judged.event.event_time), judged.verdict, *values.values()])
    return rows


def _shown_time(moment: int) -> Any:
    import pandas as pd

    return pd.Timestamp(moment, unit="us", tz="UTC")
