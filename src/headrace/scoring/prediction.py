"""What is written of a score: a prediction with all that it was made of, or why there is none.

A prediction's id is the event's with the model's version, so one that is written again after a crash is a copy that the
archive finds. Key, features, request values and positions are JSON within it, as they were when it was made.
"""

from __future__ import annotations

from typing import Any

from headrace.clock import show_time
from headrace.define.feature_set import FeatureSet
from headrace.errors import HeadraceError
from headrace.log.record import Message, Record
from headrace.meaning.event import Event
from headrace.models.lineup import Seat
from headrace.read.answer_json import value_json
from headrace.read.feature_row import row_json
from headrace.read.reader import oldest_of
from headrace.scoring.features import EventHistory
from headrace.serve.responses import encode


class ScoringEvent:
    """An event to be scored: what is known of it, and the row that a model gets.

    Parameters
    ----------
    event, record
        The event, and the record that it came in.
    known, row
        What was read for it; the row is None, with an error, when an on-demand feature failed.
    """

    __slots__ = ("_written", "error", "event", "known", "record", "row")

    def __init__(self, event: Event, record: Record, known: EventHistory, row: dict[str, Any] | HeadraceError) -> None:
        self.event, self.record, self.known = event, record, known
        self.row = None if isinstance(row, HeadraceError) else row
        self.error = row if isinstance(row, HeadraceError) else None
        self._written: dict[str, Any] | None = None

    def written(self, features: FeatureSet) -> dict[str, Any]:
        """What every version's prediction says of the event; made once."""
        if self._written is None:
            event, known, answers = self.event, self.known, self.known.answers.values()
            oldest = oldest_of([answer.as_of for answer in answers])
            self._written = {
                "event_id": event.event_id,
                "key": _text(known.key),
                "at": show_time(event.arrived_at),
                "event_time": show_time(event.event_time),
                "partition": event.place[1],
                "offset": event.place[2],
                "features": _text(row_json(features, self.row or {})),
                "request": _text(_requests(features, known)),
                "positions": _text(known.positions),
                "as_of": None if oldest is None else show_time(oldest),
                "freshness_ms": None if oldest is None else (event.arrived_at - oldest) / 1_000,
                "folded": known.folded,
                "stale": not known.whole or any(answer.as_of is None for answer in answers),
            }
        return self._written


def prediction(asked: ScoringEvent, features: FeatureSet, seat: Seat[Any], score: float, scored_at: int) -> Message:
    """A score on its way to the predictions' topic; those of one key of the stream stay in order."""
    told = asked.written(features) | {
        "id": f"{asked.event.event_id}@{seat.version}",
        "version": seat.version,
        "role": seat.role,
        "score": score,
        "decision": seat.manifest.decision(score),
        "scored_at": show_time(scored_at),
        "latency_ms": (scored_at - asked.record.arrived_at) / 1_000,
    }
    return Message(encode(told), asked.record.key or asked.known.text.encode())


def failure(asked: ScoringEvent, version: int, error: HeadraceError, scored_at: int) -> Message:
    """Why an event has no score, under its place in the stream."""
    event = asked.event
    told = {
        "event_id": event.event_id,
        "version": version,
        "key": asked.known.key,
        "at": show_time(event.arrived_at),
        "partition": event.place[1],
        "offset": event.place[2],
        "failed_at": show_time(scored_at),
        "error": error.as_json(),
    }
    return Message(encode(told), f"{event.place[1]}/{event.place[2]}@{version}".encode())


def _requests(features: FeatureSet, known: EventHistory) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for made in features.on_demands:
        given = known.requests[made.name]
        found |= {each.name: value_json(each.type, given[each.name]) for each in made.request}
    return found


def _text(value: Any) -> str:
    return encode(value).decode()
