"""One event's whole way: where its copies stand, what became of each, its tiles, and the predictions that had it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.audit.prediction import Prediction, PredictionReader
from headrace.clock import show_time
from headrace.config import Config, names
from headrace.define.event import Event
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.errors import DataError
from headrace.lake.complete import reach
from headrace.lake.files import filesystem
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.past import plain_type
from headrace.lake.place import look
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.log.record import Record
from headrace.plan.model import Plan, TileSet
from headrace.store.changelog import TileRow, decode

COPY = ("partition", "offset", "appended_at", "arrived_at", "event_time", "verdict", "reason", "conflict")
MOMENTS = ("appended_at", "arrived_at", "event_time")


class Trace:
    """What the log and the lake of a project know of events."""

    def __init__(self, plan: Plan, config: Config, log: Log) -> None:
        self._plan, self._config, self._log, self._named = plan, config, log, names(config)

    def copies(self, stream: Stream, event_id: str) -> list[dict[str, Any]]:
        """Every record of an event, as bronze has it."""
        table = look(self._config, stream).get(BRONZE)
        if table is None:
            return []
        found = _where(table, "event_id", event_id, [*COPY, "first_partition", "first_offset"])
        told = [{**each, **{name: _shown(each[name]) for name in MOMENTS}} for each in found]
        return sorted(told, key=lambda each: (each["arrived_at"] or "", each["partition"], each["offset"]))

    def event(self, stream: Stream, event_id: str) -> tuple[Event, str] | None:
        """The event that counts, and its lane; None when no copy does."""
        table = look(self._config, stream).get(SILVER)
        fields = [field.name for field in stream.schema]
        columns = [*fields, "_arrived_at", "_partition", "_offset", "_event_id", "_late", "_closed"]
        for each in [] if table is None else _where(table, "_event_id", event_id, columns):
            place = (each["_arrived_at"], each["_partition"], each["_offset"])
            late = each["_late"] or bool(each["_closed"] and each["_partition"] >= 0)
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
        for record in _all(self._log, topic):
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
        ids = {planned.view.name: planned.tile_set.id for planned in self._plan.features}
        for model in self._plan.models:
            if model.stream is None:
                continue
            reader = PredictionReader(model, ids)
            for record in _all(self._log, self._named.topic(model.predictions.name)):
                made = reader.read(record)
                views = [sample.view.name for sample in made.samples if counted(sample.view, sample, stream, event)]
                if views:
                    found.append(_told(made, views, event))
        return found


def counted(view: View, sample: Any, stream: Stream, event: Event) -> bool:
    """Whether an event is within the reach of a view's windows, of its key, and was known."""
    if view.stream.base != stream.base or not event.place < sample.moment or not _fits(view, event):
        return False
    low, high = reach([view], sample.moment[0], sample.moment[0])
    return low <= event.event_time < high and sample.key == key_of(view, event)


def key_of(view: View, event: Event) -> tuple[Any, ...]:
    """The key of an event in a view."""
    return tuple(column.python()(event.row) for _, column in view.key)


def _fits(view: View, event: Event) -> bool:
    return view.stream.filter is None or view.stream.filter.python()(event.row) is True


def _counts(tile_set: TileSet, event: Event) -> bool:
    return tile_set.where is None or tile_set.where.python()(event.row) is True


def _told(made: Prediction, views: Sequence[str], event: Event) -> dict[str, Any]:
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


def _all(log: Log, topic: str) -> Iterator[Record]:
    try:
        ends = log.end_offsets(topic)
    except DataError as error:
        if error.code != "unknown-topic":
            raise
        return
    for partition, end in ends.items():
        at = log.start_offsets(topic)[partition]
        while at < end and (found := log.read(topic, partition, at, limit=10_000)):
            yield from found
            at = found[-1].offset + 1


def _shown(moment: int | None) -> str | None:
    return None if moment is None else show_time(moment)
