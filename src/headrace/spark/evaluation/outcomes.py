"""Predictions of the lake beside their labels, in Spark: what changed of each since the last look, as sums to add.

    predictions that are new, labelled anew, or past the horizon ─► their labels ─► state before, state now
                                                                                     └─► sums now less sums before

Nothing is kept between two looks but how far the last one saw: see `PassPosition`. A horizon of thirty days is rows of
the lake, joined on disk. The meaning is that of `meaning.outcome`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headrace.define.label import BINARY, Label
from headrace.lake.imports import positions
from headrace.lake.table import LakeTable
from headrace.meaning.sums import Sums
from headrace.spark.admission import ARRIVED, EVENT_TIME, OFFSET, PARTITION
from headrace.spark.evaluation.outcome_sums import CellKey, expressions, summed
from headrace.spark.pipeline.run_scope import before
from headrace.spark.segments import segments
from headrace.spark.session import settings
from headrace.spark.silver import EVER, events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_TASK = 250_000
LEAST_TASKS = 2


class PassPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How far a look saw.

    Parameters
    ----------
    known_until
        Labels that had arrived before this moment were known.
    predictions, labels
        Up to which offsets, in each partition.
    prediction_version, label_version
        The versions that the tables had: files that are there since may hold what is new.
    """

    known_until: int
    predictions: dict[int, int]
    labels: dict[int, int]
    prediction_version: int
    label_version: int


class EvaluationTables(NamedTuple):
    """The silver tables of a model's predictions and of a label's stream."""

    predictions: LakeTable
    labels: LakeTable


def seen_now(tables: EvaluationTables, known_until: int) -> PassPosition:
    """How far a look at the tables sees that is taken now."""
    return PassPosition(
        known_until=known_until,
        predictions=positions(tables.predictions),
        labels=positions(tables.labels),
        prediction_version=tables.predictions.delta.version(),
        label_version=tables.labels.delta.version(),
    )


def changes(
    session: SparkSession, label: Label, tables: EvaluationTables, last: PassPosition | None, now: PassPosition
) -> dict[CellKey, Sums]:
    """What is to be added to the sums of each cell, after what the last look saw."""
    if last is None:
        files, fresh = tables.predictions.files(), None
    else:
        fresh = _fresh_labels(session, label, tables.labels, last, now)
        files = _may_have_changed(label, tables.predictions, last, now, _reach(fresh))
    rows, first = _extent(tables.predictions, label.model.predictions.event_time, files)
    span = (first - label.horizon, EVER[1])
    rows += tables.labels.rows(label.stream.event_time, [span])
    tasks = {"spark.sql.shuffle.partitions": str(max(LEAST_TASKS, rows // ROWS_PER_TASK))}
    with settings(session, tasks):
        predictions = _predictions(session, label, tables.predictions, files, last, now)
        if fresh is not None and last is not None:
            predictions = _changed(predictions, fresh, label, last, now)
        told = _label_rows(_labels(session, label, tables.labels, now, span), last)
        return summed(_both(_joined(predictions, told, label), label, last, now), label)


def labels_without(session: SparkSession, label: Label, tables: EvaluationTables, now: PassPosition) -> DataFrame:
    """Labels that are known and for which there is no prediction: `identity` and when each `happened`."""
    made = _predictions(session, label, tables.predictions, tables.predictions.files(), None, now).select("identity")
    return _labels(session, label, tables.labels, now).join(made.distinct(), "identity", "left_anti")


def _extent(table: LakeTable, column: str, files: Sequence[str]) -> tuple[int, int]:
    """How many rows some files have, and the least moment in them; of files that do not say, the least there is."""
    import pyarrow as pa

    actions = pa.table(table.delta.get_add_actions(flatten=True))
    if not actions.num_rows:
        return 0, EVER[0]
    root, wanted = table.delta.table_uri.rstrip("/"), set(files)
    moments = actions.column(f"min.{column}").cast(pa.int64()).to_pylist()
    told = zip(actions.column("path").to_pylist(), actions.column("num_records").to_pylist(), moments, strict=True)
    mine = [
        (rows or 0, EVER[0] if moment is None else moment) for path, rows, moment in told if f"{root}/{path}" in wanted
    ]
    return sum(rows for rows, _ in mine), min((moment for _, moment in mine), default=EVER[0])


def _may_have_changed(
    label: Label, predictions: LakeTable, last: PassPosition, now: PassPosition, reach: tuple[int, int] | None
) -> list[str]:
    """The files that may hold a prediction of which something changed."""
    spans = [(last.known_until - label.horizon, now.known_until - label.horizon + 1)]
    if reach is not None:
        spans.append((reach[0] - label.horizon, reach[1] + label.horizon + 1))
    wanted = [(low, high - 1) for low, high in spans if low < high]
    held = set(predictions.files(label.model.predictions.event_time, wanted)) if wanted else set()
    return sorted(held | added_since(predictions, last.prediction_version))


def added_since(table: LakeTable, version: int) -> set[str]:
    """Files that were not there in a version; all of them when nobody knows any more."""
    from headrace.errors import HeadraceError

    try:
        there = LakeTable.there(table.uri, table.shape, table.options, version)
    except HeadraceError:
        there = None
    return set(table.files()) - (set() if there is None else set(there.files()))


def _identity(parts: Sequence[str], moment: str | None) -> str:
    """What a label and the prediction it is for have in common."""
    if moment is None:
        return parts[0]
    texts = [f"CAST({part} AS STRING)" for part in parts]
    return f"to_json(array({', '.join([*texts, f'CAST(unix_micros({moment}) AS STRING)'])}))"


def _predictions(
    session: SparkSession,
    label: Label,
    table: LakeTable,
    files: Sequence[str],
    last: PassPosition | None,
    now: PassPosition,
) -> DataFrame:
    """Predictions that the look sees: whose they are, what was said, and whether the last one saw them."""
    stream = label.model.predictions
    rows = events(session, table, stream, [EVER], files).where(before(now.predictions))
    keys = ["event_id"] if label.at is None else [f"get_json_object(key, \"$['{name}']\")" for name, _ in label.on]
    old = "false" if last is None else before(last.predictions)
    return rows.selectExpr(
        "id",
        f"{_identity(keys, None if label.at is None else 'event_time')} AS identity",
        f"`{EVENT_TIME}` AS at",
        f"`{EVENT_TIME}` - pmod(`{EVENT_TIME}`, {label.window}) AS window",
        "version",
        "score",
        "decision",
        f"{segments(label.model, label.segments)} AS segments",
        f"{old} AS old",
    )


def _label_rows(rows: DataFrame, last: PassPosition | None) -> DataFrame:
    """Labels that the look knows, one row for each moment of which there are any."""
    old = "false" if last is None else _known_to(last)
    place = f"struct(`{ARRIVED}`, `{PARTITION}`, `{OFFSET}`)"
    return (
        rows.selectExpr(
            "identity", "truth", "happened", f"{place} AS place", f"`{ARRIVED}` AS arrived", f"{old} AS old"
        )
        .groupBy("identity", "happened")
        .agg(
            *expressions(
                truth="max_by(truth, place)",
                differ="min(truth) <> max(truth)",
                arrived="min(arrived)",
                old_truth="max_by(truth, place) FILTER (WHERE old)",
                old_differ="coalesce(min(truth) FILTER (WHERE old) <> max(truth) FILTER (WHERE old), false)",
                old_arrived="min(arrived) FILTER (WHERE old)",
            )
        )
    )


def _known_to(look: PassPosition) -> str:
    """The labels that a look knows."""
    return f"({before(look.labels)} AND `{ARRIVED}` < {look.known_until})"


def _labels(
    session: SparkSession,
    label: Label,
    table: LakeTable,
    now: PassPosition,
    span: tuple[int, int] = EVER,
    files: Sequence[str] | None = None,
) -> DataFrame:
    """Labels that happened within a span of time and are known."""
    rows = events(session, table, label.stream.base, [span], files)
    rows = rows.where(_known_to(now))
    if label.stream.filter is not None:
        rows = rows.where(label.stream.filter.spark())
    truth = f"CAST({label.value.spark()} AS {'BOOLEAN' if label.kind == BINARY else 'DOUBLE'})"
    moment = None if label.at is None else label.at.spark()
    identity = _identity([made.spark() for _, made in label.on], moment)
    kept = [f"`{name}`" for name in (PARTITION, OFFSET, ARRIVED)]
    found = rows.selectExpr(f"{identity} AS identity", f"{truth} AS truth", f"`{EVENT_TIME}` AS happened", *kept)
    return found.where("identity IS NOT NULL AND truth IS NOT NULL")


def _fresh_labels(
    session: SparkSession, label: Label, table: LakeTable, last: PassPosition, now: PassPosition
) -> DataFrame:
    """Labels that the last look did not know."""
    later = set(table.files("_arrived_at", [(last.known_until, EVER[1])]))
    files = sorted(later | added_since(table, last.label_version))
    return _labels(session, label, table, now, files=files).where(f"NOT {_known_to(last)}")


def _reach(fresh: DataFrame) -> tuple[int, int] | None:
    """Between which moments they happened; None when there are none."""
    found: Any = fresh.selectExpr("min(happened)", "max(happened)").first()
    return None if found is None or found[0] is None else (found[0], found[1])


def _changed(
    predictions: DataFrame, fresh: DataFrame, label: Label, last: PassPosition, now: PassPosition
) -> DataFrame:
    """The predictions that are new, have a new label, or have passed the horizon since."""
    hit = fresh.select("identity").distinct().selectExpr("identity", "true AS hit")
    passed = f"at + {label.horizon} > {last.known_until} AND at + {label.horizon} <= {now.known_until}"
    wanted = f"NOT old OR coalesce(hit, false) OR ({passed})"
    return predictions.join(hit, "identity", "left").where(wanted).drop("hit")


def _joined(predictions: DataFrame, told: DataFrame, label: Label) -> DataFrame:
    """Every prediction with what its labels say, now and as the last look knew it."""
    from pyspark.sql import functions as F  # noqa: N812

    near = F.expr(f"abs(happened - at) <= {label.horizon}")
    on = (F.col("p.identity") == F.col("l.identity")) & near
    pairs = predictions.alias("p").join(told.alias("l"), on, "left")
    carried = ("at", "window", "version", "score", "decision", "segments", "old")
    return pairs.groupBy("p.identity", "p.id").agg(
        *expressions(
            **{name: f"any_value(p.{name})" for name in carried},
            labels="count(happened)",
            truth="max_by(truth, happened)",
            corrected="coalesce(min(truth) <> max(truth), false)",
            contradicted="coalesce(max(differ), false)",
            soonest="min(arrived)",
            old_labels="count(happened) FILTER (WHERE old_arrived IS NOT NULL)",
            old_truth="max_by(old_truth, happened) FILTER (WHERE old_arrived IS NOT NULL)",
            old_corrected="coalesce(min(old_truth) <> max(old_truth), false)",
            old_contradicted="coalesce(max(old_differ), false)",
            old_soonest="min(old_arrived)",
        )
    )


def _both(joined: DataFrame, label: Label, last: PassPosition | None, now: PassPosition) -> DataFrame:
    """A row for what is known of a prediction now, and one, to be taken away, for what the last look knew."""
    now_row = _known_sql(label, now.known_until, "", 1)
    rows = f"array({now_row})"
    if last is not None:
        rows = f"IF(old, array({now_row}, {_known_sql(label, last.known_until, 'old_', -1)}), array({now_row}))"
    carried = ("at", "window", "version", "score", "decision", "segments")
    found = joined.selectExpr(*carried, f"explode({rows}) AS known").selectExpr(*carried, "known.*")
    return found.selectExpr("*", "explode(segments) AS named").selectExpr("*", "named.segment", "named.value")


def _known_sql(label: Label, until: int, name: str, sign: int) -> str:
    default = "NULL" if label.default is None else str(label.default).lower()
    kind = "BOOLEAN" if label.kind == BINARY else "DOUBLE"
    passed = f"at + {label.horizon} <= {until}"
    state = (
        f"CASE WHEN {name}labels > 0 THEN IF({name}corrected, 'corrected', 'labelled') "
        f"WHEN {passed} THEN 'defaulted' ELSE 'open' END"
    )
    truth = f"CASE WHEN {name}labels > 0 THEN {name}truth WHEN {passed} THEN CAST({default} AS {kind}) END"
    return (
        f"struct({sign} AS sign, {state} AS state, {truth} AS truth, {name}contradicted AS contradicted, "
        # Of the greatest of several, Spark leaves out nulls.
        f"IF({name}soonest IS NULL, NULL, CAST(greatest(0, {name}soonest - at) AS DOUBLE) / 1000000) AS delay)"
    )
