"""Whether the lake has all that past values need: everything that had arrived by then, and no day that was forgotten.

The lake is seconds behind the log. What it lacks is refused rather than answered in part; where arrival is declared by
records themselves, what is still on its way could have arrived at any time, so everything must be in the lake by then.
Values themselves are read by `asof.lake` and `spark.training.features`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.clock import show_time
from headrace.codec.json.rules import EARLIEST, LATEST
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.errors import DataError, MachineError
from headrace.lake.counters import FORGOTTEN, behind, position
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.overview import on_disk
from headrace.lake.table import LakeTable, short_name
from headrace.log.protocol import Log
from headrace.plural import show_count


def complete(tables: Mapping[str, LakeTable], stream: Stream, log: Log, topic: str, t: int) -> LakeTable:
    """The stream's silver table, once it has everything that had arrived before a moment.

    A stream whose history was only imported has no topic, and nothing waits in it.

    Raises
    ------
    MachineError
        When the archive has not come so far.
    """
    if complete_until(tables, stream, log, topic) < t:
        raise _behind(stream, t)
    return tables[SILVER]


def complete_until(tables: Mapping[str, LakeTable], stream: Stream, log: Log, topic: str) -> int:
    """The moment before which everything that arrived is in the stream's silver table; the last one if all of it is."""
    if BRONZE not in tables or SILVER not in tables or behind(tables[BRONZE], tables[SILVER]):
        return EARLIEST
    try:
        ends = log.end_offsets(topic)
    except DataError as error:
        if error.code != "unknown-topic":
            raise
        return LATEST
    reached = log.start_offsets(topic) | (position(tables[BRONZE], len(ends)) or {})
    waiting = [
        log.peek(topic, partition, reached[partition], limit=1)[0].arrived_at
        for partition, end in ends.items()
        if reached[partition] < end
    ]
    if waiting and stream.arrival.source != "log":
        return EARLIEST
    return min(waiting, default=LATEST)


def _behind(stream: Stream, t: int) -> MachineError:
    message = f"The lake does not have everything of stream {stream.name!r} that had arrived by then."
    hint = "Ask again in some seconds (archive.every); `headrace status` says how far the archive is."
    return MachineError("lake-behind", message, got=show_time(t), hint=hint)


def reach(views: Sequence[View], first: int, last: int) -> tuple[int, int]:
    """The event times [low, high) that values of views between two moments are made of.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over=hr.trailing("1m", resolution="1s"))})
    >>> reach([users], 3_600_000_000, 3_600_000_000)
    (3540000000, 3601000000)
    """
    windows = {term.window for view in views for feature in view.features for term in feature.terms}
    low, high = min(each.span(first)[0] for each in windows), max(each.span(last)[1] for each in windows)
    return max(EARLIEST, low), high


def refuse_forgotten(silver: LakeTable, view: View, t: int) -> None:
    """Refuse a moment whose values need days that were forgotten."""
    forgotten = silver.counter(FORGOTTEN)
    if forgotten is not None and reach([view], t, t)[0] < forgotten:
        message = "Days that the value needs were forgotten."
        got = f"{view.name} at {show_time(t)}, events before {show_time(forgotten)}"
        raise DataError("lake-forgotten", message, got=got, hint="Ask for a later moment.")


def refuse_removed(table: LakeTable) -> None:
    """Refuse a table of an earlier version whose files were removed since."""
    import pyarrow as pa

    there = on_disk(table)
    actions = pa.table(table.delta.get_add_actions(flatten=True))
    files = actions.column("path").to_pylist() if actions.num_rows else []
    gone = [file for file in files if file not in there]
    if gone:
        message = f"Files of version {table.delta.version()} of {short_name(table.uri)} were removed since."
        hint = "`headrace lake vacuum --keep` says how long the files of earlier versions stay."
        raise DataError("lake-version", message, got=f"{len(gone):,} of {show_count(len(files), 'file')}", hint=hint)
