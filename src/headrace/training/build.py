"""A spine on its way to a training set: checked, chosen from, given its features; computed when it is needed.

    spine ──► facts (one pass) ──► rows that stay, weights, splits ──► features ──► on-demand features ──► columns

What becomes of the rows then is the caller's business: `training.result` hands them on or writes them down.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.config import names
from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand, returned
from headrace.errors import ProjectError, did_you_mean, shown
from headrace.lake.completeness import complete, refuse_forgotten
from headrace.project import Project
from headrace.topics import open_log
from headrace.training.feature_columns import FeatureColumns, refuse_clashes, resolve_features
from headrace.training.lake_tables import LakeTables
from headrace.training.request import TrainingRequest
from headrace.training.row_selection import SPLIT, WEIGHT, chance, moments_of, quoted
from headrace.training.spine_columns import SpineColumn, needs, refuse_missing
from headrace.training.spine_facts import Facts, facts, projection, questions, refuse_future
from headrace.training.spine_source import NUMBER, PANDAS, SQL, Spine, spine_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.on_demand import Calls

Tell = Callable[[str], None]
"""Told what is being done."""
Check = Callable[[Facts], None]
"""Looks at what is known of a spine before anything is done with it."""


@dataclass(frozen=True)
class PreparedSet:
    """A training set that is known in all but its values.

    Parameters
    ----------
    frame
        The spine's columns, the features, and what is made beside them.
    spine
        What it was made from.
    facts
        What one pass over the spine said.
    """

    frame: DataFrame
    spine: Spine
    facts: Facts
    asked: FeatureColumns
    wish: TrainingRequest

    @property
    def added(self) -> list[str]:
        """The columns that the spine did not have, in order."""
        return [*self.asked.picked, *self.wish.made]


def ready(
    session: SparkSession,
    project: Project,
    wish: TrainingRequest,
    given: Any,
    tables: LakeTables,
    *,
    now: int | None,
    check: Check = lambda _: None,
    tell: Tell = lambda _: None,
) -> PreparedSet:
    """A training set up to its values: whatever is wrong with what was asked is refused here.

    Parameters
    ----------
    given
        The spine as a user hands it in.
    tables
        The lake's tables.
    now
        The time, when the tables are those of now: the log may have what they lack. None for tables of the past.
    """
    wanted = resolve_features(project.plan(), wish.features)
    calls = _calls(wanted, wish)
    _refuse_stranger(wanted, wish)
    tell("checking the spine")
    spine = spine_of(session, given, project, tables)
    needed, found = _looked_at(spine, wanted, wish)
    check(found)
    if now is not None:
        refuse_future(found, now)
        _refuse_behind(project, wanted, tables, found.last)
    for view in wanted.views:
        refuse_forgotten(tables.silver(view.stream.base), view, found.first)
    frame = _sample_rows(spine.frame.selectExpr(*projection(needed, found, _kinds(spine))), wanted, wish, found)
    tell("reading the lake")
    made = _with_features(session, frame, project, wanted, wish, tables, calls, found)
    return PreparedSet(made, spine, found, wanted, wish)


def _kinds(spine: Spine) -> dict[str, str]:
    return dict(spine.frame.dtypes)


def _looked_at(spine: Spine, wanted: FeatureColumns, wish: TrainingRequest) -> tuple[list[SpineColumn], Facts]:
    """What the spine must have, and what a pass over it says."""
    from headrace.spark.training.spine import answers, query_explained

    kinds = _kinds(spine)
    own = [name for name in kinds if not (spine.kind == PANDAS and name == NUMBER)]
    # Two columns of one name, which a dict of types would hide.
    refuse_clashes(wanted, [name for name in spine.frame.columns if name in own], wish.made)
    needed = needs(wanted, wish)
    refuse_missing(needed, wish, own)
    told = {name: kinds[name] for name in own}
    asked_of_it = questions(needed, wish, told, text=spine.text)
    with query_explained() if spine.kind == SQL else nullcontext():
        said = answers(spine.frame, asked_of_it)
    return needed, facts(said, needed, wish, told, text=spine.text)


def _refuse_stranger(wanted: FeatureColumns, wish: TrainingRequest) -> None:
    streams = [stream.name for stream in wanted.streams]
    if wish.include_event is not None and wish.include_event not in streams:
        message = "No feature that is asked for reads the stream whose events are to be included."
        hint = did_you_mean(wish.include_event, streams)
        raise ProjectError("not-found", message, got=shown(wish.include_event), hint=hint)


def _refuse_behind(project: Project, wanted: FeatureColumns, tables: LakeTables, last: int) -> None:
    named = names(project.config)
    for stream in wanted.streams:
        tables.silver(stream)
    with open_log(project.config) as log:
        for stream in wanted.streams:
            complete(tables.of(stream), stream, log, named.topic(stream.name), last)


def _sample_rows(frame: DataFrame, wanted: FeatureColumns, wish: TrainingRequest, found: Facts) -> DataFrame:
    """The rows that stay, each with its weight and its part."""
    from headrace.spark.training.spine import counts_by_time

    own = [wish.time, *wanted.key_types]
    if wish.sample is not None:
        frame = frame.where(f"{chance(wish.seed, 'sample', own)} < {wish.sample!r}D")
    if wish.downsample is not None:
        kind = dict(frame.dtypes)[wish.downsample.column]
        kept = frame.where(wish.downsample.keep(kind, wish.seed, own))
        frame = kept.selectExpr("*", f"{wish.downsample.weight(kind)} AS {WEIGHT}")
    if wish.split is not None:
        counts = counts_by_time(frame, wish.time)
        moments = moments_of(wish.split, counts, found.first, found.last, found.rows)
        frame = frame.selectExpr("*", f"{wish.split.expression(wish.time, moments)} AS {SPLIT}")
    return frame


def _with_features(
    session: SparkSession,
    frame: DataFrame,
    project: Project,
    wanted: FeatureColumns,
    wish: TrainingRequest,
    tables: LakeTables,
    calls: Calls | None,
    found: Facts,
) -> DataFrame:
    from headrace.spark.dimension import attach_dimension
    from headrace.spark.on_demand import with_on_demand
    from headrace.spark.training.features import SpineExtent, attach

    spine = [name for name in frame.columns if name not in wish.made]
    made = attach(
        session,
        frame,
        wanted,
        tables.silver,
        time=wish.time,
        mode=wish.mode,
        include_event=wish.include_event,
        # Rows that were not chosen only make it larger.
        extent=SpineExtent(found.rows, found.first, found.last),
    )
    for dimension in wanted.dimensions:
        table = tables.dimension(dimension)
        made = attach_dimension(session, made, dimension, wanted.columns, time=wish.time, table=table)
    if calls is not None:
        made = with_on_demand(made, calls, str(project.config.features.parent))
    picked = [f"{quoted(column)} AS {quoted(name)}" for name, column in wanted.picked.items()]
    return made.selectExpr(*map(quoted, spine), *picked, *map(quoted, wish.made))


def _calls(wanted: FeatureColumns, wish: TrainingRequest) -> Calls | None:
    """What on-demand features need; that they say what they return is looked at before anything starts."""
    if not wanted.on_demands:
        return None
    from headrace.spark.on_demand import Calls

    stored: dict[str, dict[str, str]] = {}
    for made in wanted.on_demands:
        for source in made.sources:
            if not isinstance(source, OnDemand):
                stored.setdefault(source.name, {})
    for (view, feature), column in wanted.columns.items():
        if view in stored:
            stored[view][feature] = column
    kinds = {made.name: returned(made) for made in wanted.on_demands}
    return Calls(FeatureSet(wanted.name, wanted.on_demands), stored, wish.time, tuple(wanted.key_types), kinds)
