"""How much of the fraud a score catches, and what fresh features are worth: arithmetic of scores and truths.

Two scores are compared at the same cost: each gets the threshold at which so many honest payments raise an alarm, and
what counts is the share of fraud above it. Nothing here knows a model or a payment. Intervals and the sign test take
payments for independent of each other; those of one attack are not, so the truth is less certain than they say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.drift.interval import wilson
from headrace.errors import DataError, shown

Scores = Sequence[float] | npt.NDArray[np.floating]
Truths = Sequence[bool] | npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Caught:
    """What a threshold catches. An alarm is a score *above* it: one that equals it raises none.

    Parameters
    ----------
    threshold
        The score above which an alarm is raised.
    frauds, caught
        How many fraudulent payments there are, and how many of them raised an alarm.
    honest, false_alarms
        How many honest payments there are, and how many of them did.
    """

    threshold: float
    frauds: int
    caught: int
    honest: int
    false_alarms: int

    @property
    def recall(self) -> float:
        """Which share of the fraud was caught."""
        return self.caught / self.frauds

    @property
    def precision(self) -> float | None:
        """Which share of the alarms was fraud; none where there was no alarm."""
        return self.caught / self.alarms if self.alarms else None

    @property
    def alarms(self) -> int:
        """True and false ones."""
        return self.caught + self.false_alarms

    @property
    def interval(self) -> tuple[float, float]:
        """Between what the recall lies with a confidence of 95 %, by Wilson."""
        return wilson(self.caught, self.frauds)


@dataclass(frozen=True)
class Quality:
    """How good a score is: what it catches, and the chance that it puts a fraud above an honest payment."""

    caught: Caught
    auc: float


@dataclass(frozen=True)
class Comparison:
    """The same payments scored with fresh and with stale features, at the same rate of false alarms.

    Parameters
    ----------
    false_alarm_rate
        The share of honest payments that may raise an alarm, in both.
    fresh, stale
        Each score by itself.
    only_fresh, only_stale
        How many frauds only one of them caught.
    """

    false_alarm_rate: float
    fresh: Quality
    stale: Quality
    only_fresh: int
    only_stale: int

    @property
    def gained(self) -> float:
        """How much more of the fraud the fresh score catches, as a share of all of it."""
        return self.fresh.caught.recall - self.stale.caught.recall

    @property
    def by_luck(self) -> float:
        """How likely a difference at least as large is by luck: the exact sign test on frauds that only one caught."""
        count, least = self.only_fresh + self.only_stale, min(self.only_fresh, self.only_stale)
        tail = sum(math.comb(count, caught) for caught in range(least + 1))
        return min(2 * tail / (1 << count), 1.0)


def caught_at(score: Scores, is_fraud: Truths, *, false_alarm_rate: float) -> Caught:
    """What is caught when at most this share of honest payments may raise an alarm.

    The threshold is the honest score that is next after those that may, from the top: scores that equal it raise no
    alarm, whoever they belong to. So ties never make more false alarms than allowed, only fewer.

    Parameters
    ----------
    score
        Of each payment; greater is more suspicious. All numbers, no NaN.
    is_fraud
        Of each payment.
    false_alarm_rate
        From 0 to below 1.

    Examples
    --------
    >>> caught_at([0.1, 0.2, 0.3, 0.9, 0.8, 0.3], [False, False, False, False, True, True], false_alarm_rate=0.25)
    Caught(threshold=0.3, frauds=2, caught=1, honest=4, false_alarms=1)
    """
    scores, truth = _checked(score, is_fraud)
    if not 0 <= false_alarm_rate < 1:
        message = "A rate of false alarms is from 0 to below 1."
        raise DataError("bad-argument", message, got=shown(false_alarm_rate))
    honest, frauds = np.sort(scores[~truth]), scores[truth]
    # A rate of 0.07 of 100 is 7.000000000000001 in floats, and one of 0.29 is 28.999999999999996.
    allowed = math.floor(false_alarm_rate * len(honest) + 1e-9)
    threshold = float(honest[len(honest) - 1 - allowed])
    return Caught(
        threshold=threshold,
        frauds=len(frauds),
        caught=int((frauds > threshold).sum()),
        honest=len(honest),
        false_alarms=int((honest > threshold).sum()),
    )


def auc(score: Scores, is_fraud: Truths) -> float:
    """The chance that a fraud has a greater score than an honest payment; equal ones count half.

    >>> auc([0.1, 0.4, 0.4, 0.8], [False, False, True, True])
    0.875
    """
    scores, truth = _checked(score, is_fraud)
    _, group, count = np.unique(scores, return_inverse=True, return_counts=True)
    # The mean rank of equal scores, doubled so that it is a whole number.
    doubled = 2 * np.cumsum(count) - count + 1
    frauds = int(truth.sum())
    above = int(doubled[group][truth].sum()) - frauds * (frauds + 1)
    return above / (2 * frauds * (len(scores) - frauds))


def compare(is_fraud: Truths, *, fresh: Scores, stale: Scores, false_alarm_rate: float = 0.01) -> Comparison:
    """Two scores of the same payments, each at its own threshold for the same rate of false alarms.

    >>> truth = [False, False, False, True, True]
    >>> made = compare(truth, fresh=[0.1, 0.2, 0.1, 0.9, 0.8], stale=[0.1, 0.2, 0.1, 0.9, 0.1], false_alarm_rate=0)
    >>> made.gained, made.only_fresh, made.only_stale
    (0.5, 1, 0)
    """
    first = Quality(caught_at(fresh, is_fraud, false_alarm_rate=false_alarm_rate), auc(fresh, is_fraud))
    second = Quality(caught_at(stale, is_fraud, false_alarm_rate=false_alarm_rate), auc(stale, is_fraud))
    truth = np.asarray(is_fraud, dtype=np.bool_)
    by_fresh = truth & (np.asarray(fresh) > first.caught.threshold)
    by_stale = truth & (np.asarray(stale) > second.caught.threshold)
    return Comparison(
        false_alarm_rate=false_alarm_rate,
        fresh=first,
        stale=second,
        only_fresh=int((by_fresh & ~by_stale).sum()),
        only_stale=int((by_stale & ~by_fresh).sum()),
    )


def _checked(score: Scores, is_fraud: Truths) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    scores, truth = np.asarray(score, dtype=np.float64), np.asarray(is_fraud, dtype=np.bool_)
    if scores.ndim != 1 or scores.shape != truth.shape:
        message = "There must be one score and one truth for each payment."
        raise DataError("bad-argument", message, got=f"{scores.shape} scores, {truth.shape} truths")
    if not truth.any() or truth.all():
        message = "Scores cannot be judged without both fraud and honest payments."
        raise DataError("bad-argument", message, got=f"{int(truth.sum())} of {len(truth)} are fraud")
    if np.isnan(scores).any():
        raise DataError("bad-argument", "A score is not a number.", got=f"{int(np.isnan(scores).sum())} are NaN")
    return scores, truth
