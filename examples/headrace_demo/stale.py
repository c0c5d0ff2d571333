"""The same payments scored on features one hour old: by the champion, and by a model that has learnt from such.

What is stale is what views hold; the payment itself is known either way, so on-demand features take its own amount,
place and time. Values come from the lake as they were known then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from headrace.asof.lake import Asked, PastEvents
from headrace.clock import HOUR
from headrace.define.view import View
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables
from headrace.project import Project, load
from headrace.project_models import models_of
from headrace.read.feature_row import model_row
from headrace.read.reader import ViewValues
from headrace_demo.shop import LABELS

FIELDS = ("id", "card", "merchant", "amount", "lat", "lon")
"""What is known of a payment itself."""

Payment = dict[str, Any]
"""Its fields, and when it arrived, `t`, in microseconds."""


class Stale(NamedTuple):
    """Scores on features one hour old: of the champion, and of a model trained on such features."""

    champion: list[float]
    own: list[float]


class HourOld:
    """Scores payments on features one hour old, in a process of its own and in the time that others leave.

    It loads its libraries at once, so that nobody waits for that later.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._worker = ProcessPoolExecutor(1, get_context("spawn"), initializer=os.nice, initargs=(10,))
        self._worker.submit(_load, root)

    def learn(self) -> None:
        """Begin to train the model of such features, as soon as the champion's payments are there."""
        self._worker.submit(_learn, self._root)

    def score(self, payments: Sequence[Payment]) -> Future[Stale]:
        """Begin to score payments."""
        return self._worker.submit(_stale_scores, self._root, payments)

    def close(self) -> None:
        """End the process, and what has not begun."""
        self._worker.shutdown(cancel_futures=True)


def _load(root: Path) -> None:
    _training(root)


def _learn(root: Path) -> None:
    _own_model(root)


def _stale_scores(root: Path, payments: Sequence[Payment]) -> Stale:
    """Score payments in a project whose model has been trained by `train.py`."""
    import pandas as pd

    project, own = load(root), _own_model(root)
    rows = _hour_old(project, payments)
    models = models_of(project)
    champion = models.load("risk", models.roles("risk").champion or 0)
    scores = [_number(each) for each in champion.score(rows)]
    return Stale(scores, own.predict(_training(root).matrix(pd.DataFrame(rows))).tolist())


@cache
def _own_model(root: Path) -> Any:
    """A model that has learnt from the champion's payments, with features one hour old."""
    import pandas as pd

    learnt = _learnt(root)
    rows = pd.DataFrame(_hour_old(load(root), learnt))
    return _training(root).train(rows.assign(fraud=[each["fraud"] for each in learnt]))


def _training(root: Path) -> Any:
    """The project's `train.py`, as a module."""
    sys.path.insert(0, str(root))
    return import_module("train")


def _learnt(folder: Path) -> list[Payment]:
    """The payments that the champion was trained on, with their labels."""
    import pandas as pd

    rows = pd.read_parquet(folder / "sets" / "fraud" / "data", columns=[*FIELDS, "t", "split"])
    labels = pd.read_json(folder / LABELS, lines=True)[["payment", "fraud"]]
    rows = rows[rows.split == "train"].merge(labels, left_on="id", right_on="payment")
    rows["t"] = rows.t.astype("datetime64[us, UTC]").astype("int64")
    names = [*FIELDS, "t", "fraud"]
    return [dict(zip(names, row, strict=True)) for row in zip(*(rows[name].tolist() for name in names), strict=True)]


def _hour_old(project: Project, payments: Sequence[Payment]) -> list[dict[str, Any]]:
    """What the model would be handed for each payment if views were one hour behind."""
    features = project.plan().model("risk").features
    silver = find_tables(project.config, project.streams[0])[SILVER]
    moments = [each["t"] - HOUR for each in payments]
    held = {
        view: PastEvents.read(silver, view, moments).values(_asked(view, payments, moments)) for view in features.views
    }
    return [
        model_row(
            features,
            {view.name: _answer(view, held[view], at) for view in features.views},
            {made.name: {field.name: payment[field.name] for field in made.request} for made in features.on_demands},
            payment["t"],
        )
        for at, payment in enumerate(payments)
    ]


def _asked(view: View, payments: Sequence[Payment], moments: Sequence[int]) -> list[Asked]:
    return [(tuple(each[name] for name in view.by), (t,)) for each, t in zip(payments, moments, strict=True)]


def _answer(view: View, held: dict[str, list[Any]], at: int) -> ViewValues:
    values = {name: column[at] for name, column in held.items()}
    return ViewValues(view.name, {}, values, 0, 0, 0.0, missing=False, stale=False, mode="lake")


def _number(score: Any) -> float:
    if isinstance(score, Exception):
        raise score
    return float(score)
