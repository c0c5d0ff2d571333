"""Admission in native Spark SQL: every record gets a verdict, as far as the record alone decides it.

Records come from a log (`spark.source`), bytes are read by `spark.decode`. What leaves here is the stream's own fields
plus the columns named below, all starting with `~`, which no field can. Duplicates are found by whoever holds state:
`spark.tiles`. `meaning.verdict` says the same in Python, and tests hold the two together.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.clock import SECOND
from headrace.codec.json.rules import EARLIEST, LATEST, RFC3339
from headrace.codec.writers import Writers
from headrace.define.stream import Stream
from headrace.meaning.verdict import ARRIVED_AT
from headrace.spark.decode import decode_stream

PARTITION, OFFSET, ARRIVED, KEY, VALUE = "~partition", "~offset", "~arrived", "~key", "~value"
VERDICT, REASON, EVENT_TIME, EVENT_ID = "~verdict", "~reason", "~event_time", "~event_id"
APPENDED, HEADERS = "~appended", "~headers"
CLOSED, ORDER = "~closed", "~order"
"""Whether an admitted record was appended after its tile was closed; when it took its place among its copies."""


def judged(records: DataFrame, stream: Stream, writers: Writers | None = None) -> DataFrame:
    """Every record with its verdict; `admitted` here still includes duplicates.

    Columns: the stream's fields (null where the record could not be read), partition, offset, arrival in microseconds,
    the raw key, value and headers, append time in microseconds, verdict, reason, event time in microseconds, event id,
    whether it was appended after its tile was closed, and by which time it is ordered among its copies.
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
    read = decode_stream(renamed, stream, writers, value=VALUE)
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
    known, again = f"coalesce(`{ARRIVED}`, `{APPENDED}`)", f"coalesce({_appended_again()}, false)"
    behind = f"`{APPENDED}` - `{EVENT_TIME}` > {stream.allowed_lateness}"
    arrived = {
        ARRIVED: F.expr(known),
        ORDER: F.expr(f"CASE WHEN {again} THEN `{APPENDED}` ELSE {known} END"),
        CLOSED: F.expr(f"{again} AND `{VERDICT}` = 'admitted' AND coalesce({behind}, false)"),
    }
    return ruled.withColumns(arrived).drop("~topic", "~fault")


def _arrival(stream: Stream) -> str:
    """Null when it cannot be told. A record that was appended again later says when it first arrived."""
    source, name = stream.arrival.source, stream.arrival.name
    declared = f"`{APPENDED}`"
    if source == "field":
        declared = f"unix_micros(`{name}`)"
    if source == "header":
        held = _header(name or "")
        written = f"CASE WHEN {held} RLIKE r'\\A(?:{RFC3339})\\z' THEN unix_micros(try_cast({held} AS TIMESTAMP)) END"
        known = f"CASE WHEN {held} RLIKE r'\\A[0-9]+\\z' THEN {_micros(held)} ELSE {written} END"
        declared = f"CASE WHEN {known} BETWEEN {EARLIEST} AND {LATEST} THEN {known} END"
    return f"CASE WHEN {_appended_again()} THEN {_micros(_header(ARRIVED_AT))} ELSE {declared} END"


def _appended_again() -> str:
    return f"exists(`{HEADERS}`, __h -> __h.key = '{ARRIVED_AT}')"


def _header(name: str) -> str:
    return f"CAST(get(filter(`{HEADERS}`, __h -> __h.key = '{_escaped(name)}'), 0).value AS STRING)"


def _micros(text: str) -> str:
    """A text of digits as a number, null outside the years 1 to 9999: a difference of two moments must not overflow."""
    number = f"CASE WHEN {text} RLIKE r'\\A-?[0-9]{{1,{len(str(LATEST))}}}\\z' THEN CAST({text} AS BIGINT) END"
    return f"CASE WHEN {number} BETWEEN {EARLIEST} AND {LATEST} THEN {number} END"


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
        (f"`{ARRIVED}` IS NULL", "'invalid'", _no_arrival(stream)),
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


def _no_arrival(stream: Stream) -> str:
    source = f"CASE WHEN {_appended_again()} THEN '{ARRIVED_AT}' ELSE '{_escaped(str(stream.arrival.name))}' END"
    return f"concat('header ', {source}, ' holds no arrival time')"


def _seconds(micros: str) -> str:
    return f"CAST(({micros}) DIV {SECOND} AS STRING)"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
