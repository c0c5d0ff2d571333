"""One look at a label: how far lake and log have come, what changed since the last look, and the commit of it.

A look does nothing that a later one would not do; one that was killed left nothing behind. Which moment it may speak of
is decided by the label's stream: what had arrived by then is in the lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.clock import Clock
from headrace.codec.json.rules import EARLIEST, LATEST
from headrace.config.config import Config, names
from headrace.define.label import Label
from headrace.define.stream import Stream
from headrace.evaluation.cells import Cells, Restated
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.completeness import complete_until
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables as tables_of
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.spark.evaluation.outcomes import EvaluationTables, changes, labels_without, seen_now
from headrace.spark.progress import DECLARED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = 5
"""Labels without a prediction that are named."""


@dataclass(frozen=True)
class Looked:
    """What a look has found.

    Parameters
    ----------
    known_until
        Labels that had arrived before this moment are in it; None when there was nothing to look at.
    restated
        The cells that changed, as they are now.
    """

    label: Label
    known_until: int | None
    restated: tuple[Restated, ...] = ()


def take_a_look(
    session: SparkSession, config: Config, log: Log, label: Label, clock: Clock, faults: FaultPoints = NO_FAULTS
) -> Looked:
    """Bring the figures of a label up to what the lake knows."""
    found = _tables(config, label)
    if found is None:
        return Looked(label, None)
    cells = Cells(config, label, faults)
    last, number = cells.seen(), cells.looks + 1
    until = _known_until(config, log, label.stream.base, found.labels, clock)
    if until is None or (last is not None and until < last.known_until):
        return Looked(label, None if last is None else last.known_until)
    now = seen_now(found, until)
    if last is not None and (last.predictions, last.labels, last.known_until) == (now.predictions, now.labels, until):
        return Looked(label, until)
    changed = changes(session, label, found, last, now)
    return Looked(label, until, tuple(cells.restate(changed, now, number)))


def _tables(config: Config, label: Label) -> EvaluationTables | None:
    """The silver tables of both; None while one of them is not there."""
    both = [tables_of(config, stream).get(SILVER) for stream in (label.model.predictions, label.stream.base)]
    predictions, labels = both
    return None if predictions is None or labels is None else EvaluationTables(predictions, labels)


def _known_until(config: Config, log: Log, stream: Stream, silver: LakeTable, clock: Clock) -> int | None:
    """Before which moment, by the stream's own clock, everything that arrived is in the lake; None while nobody knows.

    Where records declare their arrival, that clock stands at the newest of them that is in the lake. What comes after
    it and says it came before is taken in all the same, and what was said is restated.
    """
    if stream.arrival.source in DECLARED:
        newest = silver.greatest("_arrived_at")
        return None if newest is None else newest + 1
    complete = complete_until(tables_of(config, stream), stream, log, names(config).topic(stream.name))
    if complete == EARLIEST:
        return None
    return complete if complete < LATEST else clock.now()


def strays(session: SparkSession, config: Config, label: Label) -> tuple[int, list[str]]:
    """How many labels that the last look knew name no prediction, and a few of what they name, the newest first."""
    found, seen = _tables(config, label), Cells(config, label).seen()
    if found is None or seen is None:
        return 0, []
    rows = labels_without(session, label, found, seen)
    newest = rows.orderBy("happened", "identity", ascending=[False, True]).limit(SHOWN)
    return rows.count(), [row["identity"] for row in newest.collect()]
