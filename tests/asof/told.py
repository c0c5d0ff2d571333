"""What the reference interpreter knows of a stream, handed to `past.answers` as a job would hand it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.aggregate.columns import carried
from headrace.asof.query import question
from headrace.asof.values import EventColumns, QueryMoments, RecordPositions, answers
from headrace.define.view import View
from headrace.meaning.event import Event
from headrace.meaning.exact import Key, Mode
from headrace.meaning.reference import ReferenceResult
from headrace.types.field_types import List, Struct, Timestamp, Type

Row = tuple[Key, int, Event | None]
"""A key, a time, and the event that the row is, where it is one."""


def answered(outcome: ReferenceResult, view: View, rows: Sequence[Row], mode: Mode) -> list[dict[str, Any]]:
    """Every feature of a view for each row, as plain values."""
    asked, eaten = question([view], mode)
    keys = sorted({*outcome.keys(view), *(key for key, _, _ in rows)})
    number = {key: place for place, key in enumerate(keys)}
    held = [(number[key], event) for key in keys for event in outcome.events(view, key)]
    # The order in which events are handed over must not matter.
    held.sort(key=lambda each: hash(each[1].event_id))
    events = EventColumns(
        _whole([key for key, _ in held]),
        _whole([event.event_time for _, event in held]),
        _places([event for _, event in held]),
        tuple(
            pa.array([each.python()(event.row) for _, event in held], carried(kind))
            for kind, each in zip(asked.eaten, eaten, strict=True)
        ),
        pa.array([event.event_id for _, event in held], pa.string()),
    )
    own = [event for _, _, event in rows if event is not None]
    moments = QueryMoments(
        _whole([number[key] for key, _, _ in rows]), _whole([t for _, t, _ in rows]), _places(own) if own else None
    )
    found = answers(asked, events, moments)
    columns = [
        [_plain(wanted.kind, cell) for cell in values.to_pylist()]
        for wanted, values in zip(asked.features, found, strict=True)
    ]
    names = [wanted.name for wanted in asked.features]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _whole(numbers: Sequence[int]) -> Any:
    return np.array(numbers, dtype=np.int64)


def _places(events: Sequence[Event]) -> RecordPositions:
    return RecordPositions(*(_whole([event.place[part] for event in events]) for part in range(3)))


def _plain(kind: Type, cell: Any) -> Any:
    if cell is None:
        return None
    match kind:
        case Timestamp():
            return round(cell.timestamp() * 1_000_000)
        case List(element):
            return [_plain(element, each) for each in cell]
        case Struct(fields):
            return {field.name: _plain(field.type, cell[field.name]) for field in fields}
    return cell
