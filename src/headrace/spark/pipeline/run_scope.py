"""Which part of a stream each job of a run writes: batch, stream or late lane. Together they have every event once.

An event of the lake is in exactly one of the three:

- the batch has what was on time, happened before the point and is in the cut;
- the stream has what was on time, happened at the point or later and stands in the log where the stream reads;
- the late lane has all the rest: late events, replayed ones whose tile had closed, imported history that came after the
  cut, and whatever was appended after it with an old event time.

The first run of a tile set reads the log from its beginning and has no hand-over: its batch has nothing. What a run's
offsets are is decided by `spark.backfill.backfill`.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.spark.admission import EVENT_TIME, OFFSET, PARTITION
from headrace.tiles.changelog import HandOver

LATE, BEHIND = "~late", "~behind"
"""Whether an event was late; whether it travels in the late lane for that reason or because its tile had closed."""


def in_batch(hand_over: HandOver | None) -> str:
    """The events that a run's batch writes, as a condition over `spark.silver.events`."""
    if hand_over is None:
        return "false"
    early = f"`{EVENT_TIME}` < {hand_over.point}"
    return f"(NOT `{BEHIND}` AND {early} AND `{OFFSET}` < {_offset(hand_over.cut)})"


def in_stream(hand_over: HandOver | None) -> str:
    """The events that a run's stream writes."""
    streamed = f"NOT `{BEHIND}` AND `{PARTITION}` >= 0"
    if hand_over is None:
        return f"({streamed})"
    begun = f"`{OFFSET}` >= {_offset(hand_over.begin)}"
    return f"({streamed} AND {happens_in_stream(hand_over)} AND {begun})"


def happens_in_stream(hand_over: HandOver | None) -> str:
    """What is asked of the event time alone, so that a stream may ask it of a record."""
    return "true" if hand_over is None else f"`{EVENT_TIME}` >= {hand_over.point}"


def in_late_lane(hand_over: HandOver | None, late_policy: str) -> str:
    """The events that a run's late lane has; late ones only under the policy `update`."""
    counts = "true" if late_policy == "update" else f"NOT `{LATE}`"
    return f"({counts} AND NOT {in_batch(hand_over)} AND NOT {in_stream(hand_over)})"


def before(positions: Mapping[int, int]) -> str:
    """The events that stand before some positions."""
    return f"(`{OFFSET}` < {_offset(positions)})"


def _offset(offsets: Mapping[int, int]) -> str:
    """The offset of the event's own partition, as an expression; the first one of a partition that is not named."""
    cases = " ".join(f"WHEN {partition} THEN {offset}" for partition, offset in sorted(offsets.items()))
    return f"(CASE `{PARTITION}` {cases} ELSE 0 END)" if cases else "0"
