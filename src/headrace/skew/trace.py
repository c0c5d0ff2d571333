"""One event's whole way: where its copies stand, what became of each, its tiles, and the predictions that had it.

An event is its id and its time: records of one id and different times are different events, each with its own copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.asof.lake import in_late_lane, plain_type
from headrace.clock import show_time
from headrace.config.config import Config, names
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.lake.completeness import reach
from headrace.lake.files import filesystem
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.location import find_tables
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.meaning.event import Event
from headrace.meaning.exact import Key, Moment
from headrace.plan.model import Plan, TileSet
from headrace.skew.prediction import Prediction, PredictionReader
from headrace.skew.records import records
from headrace.tiles.changelog import TileRow
from headrace.tiles.changelog_format import decode

COPY = ("partition", "offset", "appended_at", "arrived_at", "event_time", "verdict", "reason", "conflict")
MOMENTS = ("appended_at", "arrived_at", "event_time")


class Trace:
    """What the log and the lake of a project know of events."""

    def __init__(self, plan: Plan, config: Config, log: Log) -> None:
        self._plan, self._config, self._log, self._named = plan, config, log, names(config)

    def copies(self, stream: Stream, event_id: str) -> dict[int | None, list[dict[str, Any]]]:
        """By the time of each event of that id, its records as bronze has them; None where no time could be read."""
        table = find_tables(self._config, stream).get(BRONZE)
        if table is None:
            return {}
        columns = [*COPY, "first_partition", "first_offset"]
        found = sorted(_where(table, "event_id", event_id, columns), key=lambda each: each["event_time"] or 0)
        told: dict[int | None, list[dict[str, Any]]] = {}
        for each in found:
            shown = {name: _shown(each[name]) for name in MOMENTS}
            told.setdefault(each["event_time"], []).append({**each, **shown})
        for copies in told.values():
            copies.sort(key=lambda each: (each["arrived_at"] or "", each["partition"], each["offset"]))
        return told

    def event(self, stream: Stream, event_id: str, event_time: int | None) -> tuple[Event, str] | None:
        """The event that counts, and its lane; None when no copy does."""
        table = find_tables(self._config, stream).get(SILVER)
        fields = [field.name for field in stream.schema]
        columns = [*fields, "_arrived_at", "_partition", "_offset", "_event_id", "_late", "_closed"]
        for each in [] if table is None else _where(table, "_event_id", event_id, columns):
            if each[stream.event_time] != event_time:
                continue
            place = (each["_arrived_at"], each["_partition"], each["_offset"])
            late = in_late_lane(late=each["_late"], closed=each["_closed"], partition=each["_partition"])
            row = {name: each[name] for name in fields}
            return Event(row, each[stream.event_time], event_id, place), "late" if late else "on_time"
        return None

    def tiles(self, stream: Stream, event: Event, lane: str) -> list[dict[str, Any]]:
        """The tiles that the event is in, and the rows of each that the changelog still has."""
        found = []
        for tile_set in self._plan.tile_sets:
            if tile_set.stream.base == stream.base and _counts(tile_set, event):
                key = tuple(column.python()(event.row) for _, column in tile_set.key)
                start = event.event_time - event.event_time % tile_set.grain
                told = {"tiles": tile_set.id, "key": list(key), "tile": show_time(start), "lane": lane}
                found.append(told | {"rows": list(self._published(tile_set, key, start, event))})
        return found

    def _published(self, tile_set: TileSet, key: tuple[Any, ...], start: int, event: Event) -> Iterator[dict[str, Any]]:
        """Rows of a tile in the changelog, and whether each has the event."""
        topic, mark = self._named.topic(f"changelog.{tile_set.id}"), str(start).encode()
        for record in records(self._log, topic):
            if record.key is None or mark not in record.key or record.value is None:
                continue
            row = decode(record.key, record.value)
            if isinstance(row, TileRow) and row.tile == start and row.key == key:
                _, partition, offset = event.place
                streamed = row.lane == "on_time" and row.positions
                has_it = row.positions.get(partition, 0) > offset if streamed else None
                told = {"run": row.run, "lane": row.lane, "version": row.version, "has_it": has_it}
                yield told | {"published_at": show_time(record.arrived_at)}

    def predictions(self, stream: Stream, event: Event) -> list[dict[str, Any]]:
        """The predictions that the event is of, or counted in."""
        found: list[dict[str, Any]] = []
        ids = {view: tile_set.id for view, tile_set in self._plan.view_tiles.items()}
        for model in self._plan.models:
            if model.stream is None:
                continue
            reader = PredictionReader(model, ids)
            counting = {view.name: Counting(view, stream, event) for view in model.features.views}
            for record in records(self._log, self._named.topic(model.predictions.name)):
                made = reader.read(record)
                views = [each.view.name for each in made.samples if counting[each.view.name].at(each.key, each.moment)]
                if views:
                    found.append(_prediction_json(made, views, event))
        return found


class Counting:
    """Whether an event counts in a view, for its own key.

    Attributes
    ----------
    key
        The event's key; None when the view does not take the event.
    """

    def __init__(self, view: View, stream: Stream, event: Event) -> None:
        self._view, self._event = view, event
        wanted = view.stream.filter
        taken = view.stream.base == stream.base and (wanted is None or wanted.python()(event.row) is True)
        self.key = tuple(column.python()(event.row) for _, column in view.key) if taken else None

    def at(self, key: Key, moment: Moment) -> bool:
        """Whether it was known at a moment, and within the reach of the view's windows."""
        if key != self.key or not self._event.place < moment:
            return False
        low, high = reach([self._view], moment[0], moment[0])
        return low <= self._event.event_time < high


def _counts(tile_set: TileSet, event: Event) -> bool:
    return tile_set.where is None or tile_set.where.python()(event.row) is True


def _prediction_json(made: Prediction, views: Sequence[str], event: Event) -> dict[str, Any]:
    own = any(sample.own == event.place for sample in made.samples)
    return {
        "model": made.model.name,
        "version": made.version,
        "record": "/".join(map(str, made.place)),
        "at": show_time(made.t),
        "score": made.score,
        "own": own,
        "views": list(views),
    }


def _where(table: LakeTable, column: str, wanted: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a table that have a value, with moments in microseconds; all files are looked at."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for uri in table.files():
        files, path = filesystem(uri, table.options)
        rows = pq.read_table(
            path, columns=list(columns), filters=pc.field(column) == wanted, filesystem=files, partitioning=None
        )
        plain = {name: rows.column(name).cast(plain_type(rows.schema.field(name).type)).to_pylist() for name in columns}
        yield from ({name: values[at] for name, values in plain.items()} for at in range(rows.num_rows))


def _shown(moment: int | None) -> str | None:
    return None if moment is None else show_time(moment)
