"""The same payments scored on features one hour old: by the champion, and by a model that has learnt from such.

What is stale is what views hold; the payment itself is known either way, so on-demand features take its own amount,
place and time. Values come from the lake as they were known then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from headrace.clock import HOUR
from headrace.define.feature_set import FeatureSet
from headrace.define.view import View
from headrace.demo.shop import LABELS
from headrace.lake.layout import SILVER
from headrace.lake.past import Asked, Past
from headrace.lake.place import look
from headrace.models import models_of
from headrace.project import Project, load
from headrace.serve.reading import Answer
from headrace.serve.row import model_row

FIELDS = ("id", "card", "merchant", "amount", "lat", "lon")
"""What is known of a payment itself."""

Payment = dict[str, Any]
"""Its fields, and when it arrived, `t`, in microseconds."""


class Stale(NamedTuple):
    """Scores on features one hour old: of the champion, and of a model trained on such features."""

    champion: list[float]
    own: list[float]


@contextmanager
def beside(root: Path, payments: Sequence[Payment]) -> Iterator[Callable[[], Stale]]:
    """Score payments in a process of its own while other things go on; gives what waits for the scores."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worker:
        yield worker.submit(_scores_in, root, payments).result


def _scores_in(root: Path, payments: Sequence[Payment]) -> Stale:
    return stale_scores(load(root), payments)


def stale_scores(project: Project, payments: Sequence[Payment]) -> Stale:
    """Score payments in a project whose model has been trained by `train.py`."""
    import pandas as pd

    folder = project.config.root
    sys.path.insert(0, str(folder))
    import train  # type: ignore[import-not-found]

    features = project.plan().model("risk").features
    learnt = _learnt(folder)
    rows = _hour_old(project, features, [*learnt, *payments])
    taught, asked = pd.DataFrame(rows[: len(learnt)]), rows[len(learnt) :]
    own = train.train(taught.assign(fraud=[each["fraud"] for each in learnt]))
    models = models_of(project)
    champion = models.load("risk", models.roles("risk").champion or 0)
    scores = [_number(each) for each in champion.score(asked)]
    return Stale(scores, own.predict(train.matrix(pd.DataFrame(asked))).tolist())


def _learnt(folder: Path) -> list[Payment]:
    """The payments that the champion was trained on, with their labels."""
    import pandas as pd

    rows = pd.read_parquet(folder / "sets" / "fraud" / "data", columns=[*FIELDS, "t", "split"])
    labels = pd.read_json(folder / LABELS, lines=True)[["payment", "fraud"]]
    rows = rows[rows.split == "train"].merge(labels, left_on="id", right_on="payment")
    rows["t"] = rows.t.astype("datetime64[us, UTC]").astype("int64")
    names = [*FIELDS, "t", "fraud"]
    return [dict(zip(names, row, strict=True)) for row in zip(*(rows[name].tolist() for name in names), strict=True)]


def _hour_old(project: Project, features: FeatureSet, payments: Sequence[Payment]) -> list[dict[str, Any]]:
    """What a model would be handed for each payment if views were one hour behind."""
    silver = look(project.config, project.streams[0])[SILVER]
    moments = [each["t"] - HOUR for each in payments]
    held = {view: Past.read(silver, view, moments).values(_asked(view, payments, moments)) for view in features.views}
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


def _answer(view: View, held: dict[str, list[Any]], at: int) -> Answer:
    values = {name: column[at] for name, column in held.items()}
    return Answer(view.name, {}, values, 0, 0, 0.0, missing=False, stale=False, mode="lake")


def _number(score: Any) -> float:
    if isinstance(score, Exception):
        raise score
    return float(score)
