"""A whole project audited: samples of every view and every model since a moment, as far as the lake has come."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from headrace.clock import MINUTE, SystemClock, show_time
from headrace.codec.json.rules import LATEST
from headrace.config.config import Config, models_folder, names
from headrace.define.model import Model
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.errors import DataError, HeadraceError
from headrace.lake.completeness import complete_until
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.plan.model_inputs import FittingModels
from headrace.serve.dimensions import Dimensions, dimensions_of
from headrace.skew.compare import Against, Judged, compared
from headrace.skew.counts import AuditCounts
from headrace.skew.prediction import Prediction, PredictionReader, followed
from headrace.skew.records import records
from headrace.skew.sample import Sample, read_sample

T = TypeVar("T")
SLACK = 5 * MINUTE
"""How long the archive and the late lane may take beside their pauses until a late event counts."""


@dataclass(frozen=True)
class Audit:
    """What an audit has found.

    Parameters
    ----------
    since, until
        Samples between these moments were looked at.
    waiting
        How many of them were asked for later than the lake has come: a later audit has them.
    skipped
        The views that could not be compared, and why: the lake has forgotten days that their windows reach.
    """

    counts: AuditCounts
    since: int
    until: int
    waiting: int
    skipped: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        told = {"since": show_time(self.since), "until": show_time(self.until), "waiting": self.waiting}
        return told | {"skipped": self.skipped} | self.counts.as_json()


def audit(
    plan: Plan,
    config: Config,
    log: Log,
    since: int,
    until: int,
    *,
    views: Collection[str] | None = None,
    most: int | None = None,
    into: AuditCounts | None = None,
) -> Audit:
    """Compare what was served and scored between two moments with the lake.

    Parameters
    ----------
    views
        The names of those that are meant; all when left out.
    most
        Of a view at most so many reads are compared, and of a model so many predictions, drawn evenly.
    into
        Where it is counted, beside what is there already.
    """
    ground = _Ground(plan, config, log)
    counts, waiting = into or AuditCounts(), 0
    for view in {planned.view.name: planned.view for planned in plan.features}.values():
        if views is None or view.name in views:
            reads = ground.reads(view, since, until)
            chosen = [sample for sample in reads if ground.knows(sample)]
            waiting += len(reads) - len(chosen)
            counts.add(ground.judged(_evenly(chosen, most)))
    for model in plan.models:
        if model.stream is not None and views is None:
            made = ground.predictions(model, since, until)
            known = [each for each in made if all(map(ground.knows, each.samples))]
            waiting += len(made) - len(known)
            ground.follow(_evenly(known, most), counts)
    return Audit(counts, since, until, waiting, ground.skipped)


class _Ground:
    """What a project is audited against: its log, its lake, its models."""

    def __init__(self, plan: Plan, config: Config, log: Log) -> None:
        self._plan, self._config, self._log, self._named = plan, config, log, names(config)
        self._models = FittingModels(models_folder(config), SystemClock()).bind(plan)
        self._lakes: dict[str, tuple[dict[str, LakeTable], int]] = {}
        self.skipped: dict[str, str] = {}

    def _lake(self, stream: Stream) -> tuple[dict[str, LakeTable], int]:
        """The tables of a stream, and up to when they are complete."""
        if stream.name not in self._lakes:
            tables = find_tables(self._config, stream)
            until = complete_until(tables, stream, self._log, self._named.topic(stream.name))
            self._lakes[stream.name] = tables, until
        return self._lakes[stream.name]

    @cached_property
    def _dimensions(self) -> Dimensions:
        """The tables of dimensions as they are now; read when there is a prediction."""
        found = dimensions_of(self._config, self._plan)
        found.look()
        return found

    def knows(self, sample: Sample) -> bool:
        """Whether the lake has everything that had arrived by then."""
        return sample.t <= self._lake(sample.view.stream.base)[1]

    def reads(self, view: View, since: int, until: int) -> list[Sample]:
        """The reads of a view that were kept."""
        topic = self._named.topic(f"served.{view.name}")
        return [read_sample(view, record) for record in records(self._log, topic, since, until)]

    def predictions(self, model: Model, since: int, until: int) -> list[Prediction]:
        """The predictions of a model."""
        topic = self._named.topic(model.predictions.name)
        reader = PredictionReader(model, {view: tile_set.id for view, tile_set in self._plan.view_tiles.items()})
        return [reader.read(record) for record in records(self._log, topic, since, until)]

    def judged(self, samples: Sequence[Sample]) -> Iterator[Judged]:
        """Samples of one view with their verdicts."""
        if samples:
            view, config = samples[0].view, self._config
            patience = config.archive.every + config.late.every + SLACK
            against = Against(view, self._plan.view_tiles[view.name].grain, self._plan.versions[view.name], patience)
            try:
                yield from compared(against, self._lake(view.stream.base)[0][SILVER], samples)
            except DataError as error:
                if error.code != "lake-forgotten":
                    raise
                self.skipped[view.name] = error.message

    def follow(self, predictions: Sequence[Prediction], counts: AuditCounts) -> None:
        """Predictions of one model: what each view gave, and what follows from that."""
        found: dict[tuple[str, int, int], list[Judged]] = {}
        for samples in zip(*(each.samples for each in predictions), strict=True):
            for one in self.judged(samples):
                found.setdefault(one.sample.place, []).append(one)
        scores = self._scores(predictions)
        for each in predictions:
            parts = found.get(each.place, [])
            counts.add(part for part in parts if part.sample.values)
            if len(parts) == len(each.samples):
                counts.follow(each, followed(each, parts, self._dimensions, scores.get(each.place)))

    def _scores(self, predictions: Sequence[Prediction]) -> dict[tuple[str, int, int], float]:
        """What the versions say now of the rows they were given; nothing of a version that is no longer there."""
        found: dict[tuple[str, int, int], float] = {}
        for version in {each.version for each in predictions}:
            asked = [each for each in predictions if each.version == version]
            try:
                scorer = self._models.load(asked[0].model.name, version)
            except HeadraceError:
                continue
            scores = scorer.score([each.row for each in asked])
            said = (math.nan if isinstance(score, HeadraceError) else score for score in scores)
            found |= {each.place: score for each, score in zip(asked, said, strict=True)}
        return found


def complete_for(plan: Plan, config: Config, log: Log) -> int:
    """The moment before which everything that arrived is in the lake, of every stream that a view is of."""
    streams = {planned.view.stream.base for planned in plan.features}
    named = names(config)
    return min(
        (complete_until(find_tables(config, each), each, log, named.topic(each.name)) for each in streams),
        default=LATEST,
    )


def _evenly(samples: list[T], most: int | None) -> list[T]:
    """So many of them, one from each stretch of equal length.

    >>> _evenly([1, 2, 3, 4, 5, 6], 3)
    [1, 3, 5]
    """
    if most is None or len(samples) <= most:
        return samples
    return [samples[number * len(samples) // most] for number in range(most)]
