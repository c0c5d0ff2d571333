"""Admission in native Spark SQL: every record gets a verdict, as far as the record alone decides it.

Records come from a log (`run.source`), bytes are read by `run.decode`. What leaves here is the stream's own fields plus
the columns named below, all starting with `~`, which no field can. Duplicates are found by whoever holds state:
`run.tiles`. `run.verdict` says the same in Python, and tests hold the two together.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.clock import SECOND
from headrace.define.stream import Stream
from headrace.run.decode import decode
from headrace.schema.json_rules import RFC3339

PARTITION, OFFSET, ARRIVED, KEY, VALUE = "~partition", "~offset", "~arrived", "~key", "~value"
VERDICT, REASON, EVENT_TIME, EVENT_ID = "~verdict", "~reason", "~event_time", "~event_id"


def judged(records: DataFrame, stream: Stream) -> DataFrame:
    """Every record with its verdict; `admitted` here still includes duplicates.

    Columns: the stream's fields (null where the record could not be read), partition, offset, arrival in microseconds,
    the raw key and value, verdict, reason, event time in microseconds, event id.
    """
    renamed = records.selectExpr(
        f"partition AS `{PARTITION}`",
        f"offset AS `{OFFSET}`",
        "unix_micros(arrived_at) AS `~appended`",
        f"key AS `{KEY}`",
        f"value AS `{VALUE}`",
        "headers AS `~headers`",
        "topic AS `~topic`",
    )
    read = decode(renamed, stream.schema, value=VALUE)
    kept = [PARTITION, OFFSET, KEY, VALUE, "~appended", "~headers", "~topic", "fault"]
    # The fault is renamed before the fields come up beside it: a stream may well have a field called fault.
    spread = read.select(*(F.col(f"`{name}`").alias("~fault" if name == "fault" else name) for name in kept), "row.*")
    timed = spread.withColumns(
        {
            ARRIVED: F.expr(_arrival(stream)),
            EVENT_TIME: F.expr(f"unix_micros(`{stream.event_time}`)"),
            EVENT_ID: F.expr(_event_id(stream)),
        }
    )
    verdict, reason = _verdict(stream)
    ruled = timed.withColumns({VERDICT: F.expr(verdict), REASON: F.expr(reason)})
    arrived = {ARRIVED: F.expr(f"coalesce(`{ARRIVED}`, `~appended`)")}
    return ruled.withColumns(arrived).drop("~appended", "~headers", "~topic", "~fault")


def _arrival(stream: Stream) -> str:
    source, name = stream.arrival.source, stream.arrival.name
    if source == "field":
        return f"unix_micros(`{name}`)"
    if source == "header":
        held = f"CAST(get(filter(`~headers`, __h -> __h.key = '{_escaped(name or '')}'), 0).value AS STRING)"
        written = f"CASE WHEN {held} RLIKE r'\\A(?:{RFC3339})\\z' THEN unix_micros(try_cast({held} AS TIMESTAMP)) END"
        return f"CASE WHEN {held} RLIKE r'\\A[0-9]+\\z' THEN try_cast({held} AS BIGINT) ELSE {written} END"
    return "`~appended`"


def _event_id(stream: Stream) -> str:
    if stream.event_id is None:
        return f"concat(`~topic`, '/', `{PARTITION}`, '/', `{OFFSET}`)"
    return f"CAST(`{stream.event_id}` AS STRING)"


def _verdict(stream: Stream) -> tuple[str, str]:
    """Two CASE expressions over the same conditions, in the order in which verdicts are tested."""
    ahead, behind = f"`{EVENT_TIME}` - `{ARRIVED}`", f"`{ARRIVED}` - `{EVENT_TIME}`"
    rules = [
        ("`~fault` IS NOT NULL", "`~fault`.kind", "`~fault`.reason"),
        *((f"NOT ({check.spark()})", "'invalid'", f"'check {name} is false'") for name, check in stream.checks),
        (f"`{ARRIVED}` IS NULL", "'invalid'", f"'header {_escaped(str(stream.arrival.name))} holds no arrival time'"),
        (
            f"{ahead} > {stream.max_clock_skew}",
            "'future'",
            f"concat('dated ', {_seconds(ahead)}, ' s after its arrival')",
        ),
        (
            f"{behind} > {stream.allowed_lateness}",
            "'late'",
            f"concat('arrived ', {_seconds(behind)}, ' s after it happened')",
        ),
    ]
    verdict = " ".join(f"WHEN {condition} THEN {word}" for condition, word, _ in rules)
    reason = " ".join(f"WHEN {condition} THEN {why}" for condition, _, why in rules)
    return f"CASE {verdict} ELSE 'admitted' END", f"CASE {reason} END"


def _seconds(micros: str) -> str:
    return f"CAST(({micros}) DIV {SECOND} AS STRING)"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
