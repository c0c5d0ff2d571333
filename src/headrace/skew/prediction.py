"""A prediction taken apart: what each view gave, what was computed from that, and the score that came of it.

What views gave are samples like any other. Dimensions, on-demand features and the score are computed again from what
the model was given; they follow from it, or something is broken.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.clock import micros
from headrace.define.dimension import Dimension
from headrace.define.model import Model
from headrace.define.on_demand import OnDemand
from headrace.errors import HeadraceError
from headrace.log.record import Record
from headrace.read.feature_row import model_row, row_json
from headrace.read.reader import ViewValues
from headrace.serve.dimensions import Dimensions
from headrace.skew.cause import Cause
from headrace.skew.compare import Judged
from headrace.skew.sample import Sample, key_of, moment_of, place_of, positions_of, value

SCORE = "score"


@dataclass(frozen=True)
class Prediction:
    """What a model was given for an event, and what it said.

    Parameters
    ----------
    row
        Every column as it was given.
    key, requests
        The columns of all keys, and the request values of on-demand features.
    samples
        What each view gave.
    """

    model: Model
    version: int
    place: tuple[str, int, int]
    t: int
    row: Mapping[str, Any]
    key: Mapping[str, Any]
    requests: Mapping[str, Mapping[str, Any]]
    score: float
    samples: tuple[Sample, ...]


class Follows(NamedTuple):
    """A column that follows from others: what it was, what it is from what was known, and why the two differ."""

    name: str
    served: Any
    known: Any
    cause: Cause | None


class PredictionReader:
    """Reads the predictions of a model; what its features are is worked out once.

    `tile_sets` has the id of the tile set of each view.
    """

    def __init__(self, model: Model, tile_sets: Mapping[str, str]) -> None:
        self._model, self._features = model, model.features
        self._views = [(view, tile_sets[view.name]) for view in self._features.views]
        self._requests = [(made.name, tuple(made.request)) for made in self._features.on_demands]
        self._on_demand = [each.name for each in self._features.picked if isinstance(each, OnDemand)]
        self._columns = [
            (feature.name, feature.type, part.name)
            for part, feature in (each for each in self._features.picked if not isinstance(each, OnDemand))
        ]

    def read(self, record: Record) -> Prediction:
        """A prediction from its record."""
        told = json.loads(record.value or b"{}")
        given = json.loads(told["features"], parse_float=decimal.Decimal)
        key, positions = json.loads(told["key"]), json.loads(told["positions"])
        row = {name: value(None, given[name]) for name in self._on_demand}
        parts: dict[str, dict[str, Any]] = {}
        for name, kind, part in self._columns:
            row[name] = parts.setdefault(part, {})[name] = value(kind, given[name])
        at, place, as_of = micros(told["at"]), place_of(record), moment_of(told["as_of"])
        samples = tuple(
            Sample(
                source=f"{self._model.name}@{told['version']}",
                place=place,
                view=view,
                key=key_of(view, key),
                moment=(at, told["partition"], told["offset"] + 1),
                values=parts.get(view.name, {}),
                positions=positions_of(positions.get(tile_set)),
                as_of=as_of,
                version=None,
                told_at=record.arrived_at,
            )
            for view, tile_set in self._views
        )
        asked = json.loads(told["request"], parse_float=decimal.Decimal)
        requests = {made: {each.name: value(each.type, asked[each.name]) for each in of} for made, of in self._requests}
        return Prediction(self._model, told["version"], place, at, row, key, requests, told["score"], samples)


def followed(
    prediction: Prediction, found: Sequence[Judged], dimensions: Dimensions, again: float | None
) -> Iterator[Follows]:
    """Every column that views do not have, and the score.

    A prediction with a sample whose state is not known is left out: what should follow from it is not known either.

    Parameters
    ----------
    found
        The samples of the prediction.
    again
        What the version says now of the row it was given; None when it is no longer there.
    """
    wrong = [each.mismatch for each in found if each.mismatch is not None]
    if any(each.cause not in ("freshness", "late lane") for each in wrong):
        return
    excuse = wrong[0].cause if wrong else None
    known = _row(prediction, {each.sample.view.name: each.known for each in found}, dimensions)
    # What was given decides what follows from it; what a view gave and nobody was shown is as the state was.
    given = {each.sample.view.name: {**each.state, **each.sample.values} for each in found}
    meant = _row(prediction, given, dimensions)
    for name in _columns(prediction.model):
        served = prediction.row[name]
        if _same(served, known[name]):
            yield Follows(name, served, known[name], None)
        else:
            yield Follows(name, served, known[name], (excuse or "defect") if _same(served, meant[name]) else "defect")
    if again is not None:
        cause: Cause | None = None if _same(prediction.score, again) else "defect"
        yield Follows(SCORE, prediction.score, again, cause)


def _columns(model: Model) -> Iterator[str]:
    for each in model.features.picked:
        if isinstance(each, OnDemand):
            yield each.name
        elif isinstance(each[0], Dimension):
            yield each[1].name


def _row(prediction: Prediction, views: Mapping[str, Mapping[str, Any]], dimensions: Dimensions) -> dict[str, Any]:
    """The row that a model would be given, as JSON has it."""
    features, t = prediction.model.features, prediction.t
    answers = {
        name: ViewValues(name, {}, dict(values), t, t, 0.0, missing=False, stale=False, mode="lake")
        for name, values in views.items()
    }
    for each in features.dimensions:
        key = tuple(prediction.key[name] for name in each.by)
        answers[each.name] = dimensions.read(each, [key], t)[0]
    try:
        row = row_json(features, model_row(features, answers, prediction.requests, t))
    except HeadraceError as error:
        return dict.fromkeys(features.columns, error.code)
    return {name: value(None, each) for name, each in row.items()}


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal, as far as sums made in another order can be."""
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
