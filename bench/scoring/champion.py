"""The project that is scored in every part, and its model: LightGBM with a hundred trees, trained, added and promoted.

What the model has learnt does not matter, what it costs does: so it is trained on random rows, in the shape in which
cards have them. Windows that hold nothing are among them, so that trees are walked as they would be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.serving import content
from headrace.project import Project
from headrace.project_models import add_model, models_of

MODEL = "fraud"
TREES, LEAVES, ROWS = 100, 31, 20_000
THRESHOLD = 0.5
SHARES = {"7d": 1.0, "1d": 0.5, "1h": 0.4, "10m": 0.5}
"""Of the payments in the window before it, how many are in a window too; as in `content`, more lately than long ago."""
LARGEST = 900.0
# The path is absolute: what `content.shop` puts before it does not count.
MIX = replace(content.A, file=str(Path(__file__).with_name("features.py")))

Matrix = npt.NDArray[np.float64]


def shop(folder: Path, settings: str = "", *, mode: str = "micro-batch") -> Project:
    """A project with the view and the model, which has no version yet."""
    return content.shop(folder, MIX, settings, mode=mode)


def promoted(made: Project) -> int:
    """Train a version, add it and make it the champion; its number."""
    columns = [name for name, _ in made.plan().model(MODEL).columns]
    version = add_model(MODEL, trained(columns), threshold=THRESHOLD, project=made).version
    models_of(made).promote(MODEL, version)
    return version


def trained(columns: Sequence[str], rows: int = ROWS) -> Any:
    """A booster over these columns; refused when it has fewer trees than it should."""
    import lightgbm

    chance = np.random.default_rng(7)
    matrix = drawn(columns, rows, chance)
    # Something to learn, and noise: with nothing to learn, trees would have one leaf.
    spent = np.nan_to_num(matrix).sum(axis=1)
    labels = np.log1p(spent) + chance.normal(size=rows)
    settings = {
        "objective": "binary",
        "num_leaves": LEAVES,
        "seed": 7,
        "deterministic": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    told = lightgbm.Dataset(matrix, labels > np.median(labels), feature_name=list(columns))
    booster = lightgbm.train(settings, told, num_boost_round=TREES)
    if booster.num_trees() != TREES:
        raise RuntimeError(f"the model has {booster.num_trees()} trees, not {TREES}")
    return booster


def drawn(columns: Sequence[str], rows: int, chance: np.random.Generator) -> Matrix:
    """Random rows: of each window a count, and of what is in it the sum, mean, smallest and largest amount.

    >>> drawn(["count_7d", "mean_10m"], 3, np.random.default_rng(7)).shape
    (3, 2)
    """
    counts = np.maximum(1, chance.lognormal(math.log(content.A.median), content.A.sigma, rows).astype(np.int64))
    found: dict[str, npt.NDArray[Any]] = {}
    for over, share in SHARES.items():
        counts = chance.binomial(counts, share)
        mean = np.where(counts > 0, chance.uniform(1.0, LARGEST, rows), np.nan)
        found |= {
            f"count_{over}": counts,
            f"sum_{over}": counts * mean,
            f"mean_{over}": mean,
            f"smallest_{over}": mean * chance.uniform(size=rows),
            f"largest_{over}": mean + (LARGEST - mean) * chance.uniform(size=rows),
        }
    return np.column_stack([found[name].astype(np.float64) for name in columns])
