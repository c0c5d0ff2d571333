"""What is kept of the predictions of a window: sums and histograms that can be added, and nothing of single events.

Figures of any stretch of time, of any set of segments, come from the sum of its parts: see `evaluation.metrics`. A
hundred million predictions are some thousand numbers here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.clock import SECOND
from headrace.meaning.bins import score_bin, size_bin
from headrace.meaning.outcome import PredictionOutcome

LEAST = 1e-15
"""A score is taken for at least so far from 0 and 1 in the log loss, as libraries do."""
NOTHING = 1e-9
"""Less than any score is left when as much is taken away as was added, in whatever order."""


class ScoreBin(msgspec.Struct, frozen=True):
    """The predictions of one bin of scores: how many there are, and the sum of their scores, by what is true.

    >>> ScoreBin(no=1, no_sum=0.2) + ScoreBin(yes=2, yes_sum=0.5)
    ScoreBin(open=0, no=1, yes=2, open_sum=0.0, no_sum=0.2, yes_sum=0.5)
    """

    open: int = 0
    no: int = 0
    yes: int = 0
    open_sum: float = 0.0
    no_sum: float = 0.0
    yes_sum: float = 0.0

    def __add__(self, other: ScoreBin) -> ScoreBin:
        return ScoreBin(
            *(a + b for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True))
        )

    @property
    def is_nothing(self) -> bool:
        """Whether there are none, and none were taken away."""
        return all(abs(value) < NOTHING for value in msgspec.structs.astuple(self))

    @property
    def count(self) -> int:
        """All of them."""
        return self.open + self.no + self.yes

    @property
    def total(self) -> float:
        """The sum of all their scores."""
        return self.open_sum + self.no_sum + self.yes_sum


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """The predictions of a window, a version and a segment.

    Parameters
    ----------
    states
        How many are in each state; they add up to all there are.
    contradicted
        How many have labels of one moment that say different things.
    unusable
        How many have a score that is no probability, though the label says yes or no: they are in no figure.
    scores
        By bin of the score, for labels that say yes or no.
    decided
        How many were decided, by decision and truth: `yes/yes` is a hit, `yes/no` a false alarm, `yes/open` not known.
    decided_sum
        The sum of the scores of those, by the same names.
    losses
        Sums of the log loss, its square, the squared error of the probability and its square, where the truth is known.
    errors
        By bin of its size, errors (score less truth) of labels that are numbers.
    moments
        Sums of the error, its size, its square and its fourth power, of the truth and its square.
    delays
        By bin of seconds, how long the first label took.
    """

    states: dict[str, int] = {}
    contradicted: int = 0
    unusable: int = 0
    scores: dict[int, ScoreBin] = {}
    decided: dict[str, int] = {}
    decided_sum: dict[str, float] = {}
    losses: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    errors: dict[int, int] = {}
    moments: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    delays: dict[int, int] = {}

    @property
    def count(self) -> int:
        """How many predictions there are."""
        return sum(self.states.values())

    def __add__(self, other: Sums) -> Sums:
        return total((self, other))


def total(parts: Iterable[Sums]) -> Sums:
    """The sum of parts; what comes to nothing is left out.

    >>> total([Sums(states={"open": 2}), Sums(states={"open": -2, "labelled": 2})])
    Sums(states={'labelled': 2}, contradicted=0, unusable=0, scores={}, decided={}, decided_sum={}, \
losses=(0.0, 0.0, 0.0, 0.0), errors={}, moments=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), delays={})
    """
    by_name: dict[str, dict[Any, Any]] = {name: {} for name in BY_NAME}
    losses, moments = [0.0] * 4, [0.0] * 6
    contradicted = unusable = 0
    for part in parts:
        for name, held in by_name.items():
            for key, value in getattr(part, name).items():
                held[key] = held[key] + value if key in held else value
        losses = [a + b for a, b in zip(losses, part.losses, strict=True)]
        moments = [a + b for a, b in zip(moments, part.moments, strict=True)]
        contradicted, unusable = contradicted + part.contradicted, unusable + part.unusable
    # Of what is to be taken away, counts may come to nothing where sums do not.
    decided, sums = by_name["decided"], by_name["decided_sum"]
    left = [key for key in sorted(decided) if decided[key] or abs(sums[key]) > NOTHING]
    return Sums(
        states=_without_zeros(by_name["states"]),
        contradicted=contradicted,
        unusable=unusable,
        scores={key: each for key, each in sorted(by_name["scores"].items()) if not each.is_nothing},
        decided={key: decided[key] for key in left},
        decided_sum={key: sums[key] for key in left},
        losses=tuple(losses),  # type: ignore[arg-type]
        errors=_without_zeros(by_name["errors"]),
        moments=tuple(moments),  # type: ignore[arg-type]
        delays=_without_zeros(by_name["delays"]),
    )


BY_NAME = ("states", "scores", "decided", "decided_sum", "errors", "delays")


def _without_zeros(counts: Mapping[Any, int]) -> dict[Any, int]:
    return {key: counts[key] for key in sorted(counts) if counts[key]}


def of_prediction(score: float, decision: bool | None, known: PredictionOutcome, *, binary: bool) -> Sums:
    """The sums of a single prediction.

    >>> of_prediction(0.25, False, PredictionOutcome("open", None), binary=True).decided
    {'no/open': 1}
    """
    delays = {} if known.delay is None else {size_bin(known.delay / SECOND): 1}
    told: dict[str, Any] = {"states": {known.state: 1}, "contradicted": int(known.contradicted), "delays": delays}
    if not binary:
        return Sums(**told, **_regression(score, known))
    if not 0.0 <= score <= 1.0:
        return Sums(**told, unusable=1)
    truth = None if known.truth is None else bool(known.truth)
    held = {
        None: ScoreBin(1, 0, 0, score),
        False: ScoreBin(0, 1, 0, 0.0, score),
        True: ScoreBin(0, 0, 1, 0.0, 0.0, score),
    }
    which = cell_of(decision, truth)
    return Sums(
        **told,
        scores={score_bin(score): held[truth]},
        decided={} if which is None else {which: 1},
        decided_sum={} if which is None else {which: score},
        losses=(0.0, 0.0, 0.0, 0.0) if truth is None else losses(score, truth),
    )


def cell_of(decision: bool | None, truth: bool | None) -> str | None:
    """The name of what was decided beside what is true; None where nothing was decided."""
    if decision is None:
        return None
    return f"{'yes' if decision else 'no'}/{'open' if truth is None else 'yes' if truth else 'no'}"


def losses(score: float, truth: bool) -> tuple[float, float, float, float]:
    """The log loss of a score, its square, the squared error and its square.

    >>> [round(each, 4) for each in losses(0.5, True)]
    [0.6931, 0.4805, 0.25, 0.0625]
    """
    held = min(1.0 - LEAST, max(LEAST, score))
    log = -math.log(held if truth else 1.0 - held)
    squared = (score - truth) ** 2
    return log, log * log, squared, squared * squared


def _regression(score: float, known: PredictionOutcome) -> dict[str, Any]:
    if known.truth is None or not math.isfinite(score):
        return {"unusable": int(not math.isfinite(score))}
    error, truth = score - float(known.truth), float(known.truth)
    return {
        "errors": {size_bin(error): 1},
        "moments": (error, abs(error), error**2, error**4, truth, truth**2),
    }
