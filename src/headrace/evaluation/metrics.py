"""How good predictions were, from the sums of a window: each figure with how sure it is, and what is not known yet.

Precision, recall and rates have Wilson's interval, means the normal one, and AUC that of Hanley and McNeil. AUC and
PR-AUC are read from a histogram of scores: `auc_error` says how far that can be from the exact AUC at the most, which
is half the share of pairs that share a bin. Where there is nothing to say, a figure is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headrace.drift.interval import wilson
from headrace.meaning.bins import quantile
from headrace.meaning.outcome import CORRECTED, DEFAULTED, LABELLED, OPEN, STATES
from headrace.meaning.sums import ScoreBin, Sums

Z = 1.959964
CALIBRATION = 10
"""Bins of equal width in which scores are held against what happened."""

Figures = dict[str, Any]


def figures(sums: Sums, kind: str) -> Figures:
    """Every figure of some sums; `kind` is the label's, `binary` or `regression`."""
    states = {state: sums.states.get(state, 0) for state in STATES}
    count, labelled = sums.count, states[LABELLED] + states[CORRECTED]
    told: Figures = {
        "count": count,
        "states": states,
        "contradicted": sums.contradicted,
        "unusable": sums.unusable,
        "coverage": _share(labelled, count),
        "closed": _share(count - states[OPEN], count),
        "label_delay_s": {name: quantile(sums.delays, share) for name, share in DELAYS.items()},
        "defaulted": _share(states[DEFAULTED], count),
    }
    return told | (_binary(sums) if kind == "binary" else _regression(sums))


DELAYS = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def _binary(sums: Sums) -> Figures:
    yes, no = sum(each.yes for each in sums.scores.values()), sum(each.no for each in sums.scores.values())
    known = yes + no
    told: Figures = {
        "positives": yes,
        "negatives": no,
        "positive_rate": _share(yes, known),
        "positive_rate_interval": _interval(yes, known),
    }
    told |= _decisions(sums.decided)
    area, error = auc(sums.scores)
    told |= {"auc": area, "auc_error": error, "auc_interval": _auc_interval(area, yes, no)}
    told["pr_auc"] = pr_auc(sums.scores)
    for name, at in (("log_loss", 0), ("brier", 2)):
        told[name], told[f"{name}_interval"] = _mean(sums.losses[at], sums.losses[at + 1], known)
    return told | {"calibration": calibration(sums.scores)}


def _decisions(decided: Mapping[str, int]) -> Figures:
    """What decisions were worth, at the threshold that made them."""
    hits, false_alarms = decided.get("yes/yes", 0), decided.get("yes/no", 0)
    missed, rest = decided.get("no/yes", 0), decided.get("no/no", 0)
    told: Figures = {"hits": hits, "false_alarms": false_alarms, "missed": missed, "rightly_left": rest}
    told["precision"], told["precision_interval"] = (
        _share(hits, hits + false_alarms),
        _interval(hits, hits + false_alarms),
    )
    told["recall"], told["recall_interval"] = _share(hits, hits + missed), _interval(hits, hits + missed)
    told["f1"] = _share(2 * hits, 2 * hits + false_alarms + missed)
    told["false_alarm_rate"] = _share(false_alarms, false_alarms + rest)
    return told


def auc(scores: Mapping[int, ScoreBin]) -> tuple[float | None, float | None]:
    """The area under the ROC curve, and how far it can be from the exact one; None with one class only.

    >>> auc({1: ScoreBin(no=2), 2: ScoreBin(no=1, yes=1), 3: ScoreBin(yes=1)})
    (0.9166666666666666, 0.08333333333333333)
    """
    yes, no = sum(each.yes for each in scores.values()), sum(each.no for each in scores.values())
    if not yes or not no:
        return None, None
    below, better, tied = 0, 0, 0
    for number in sorted(scores):
        held = scores[number]
        better, tied = better + held.yes * below, tied + held.yes * held.no
        below += held.no
    return (better + tied / 2) / (yes * no), tied / 2 / (yes * no)


def pr_auc(scores: Mapping[int, ScoreBin]) -> float | None:
    """The average precision, a bin's predictions being accepted together; None without a positive.

    >>> pr_auc({1: ScoreBin(no=2), 2: ScoreBin(no=1, yes=1), 3: ScoreBin(yes=1)})
    0.8333333333333333
    """
    yes = sum(each.yes for each in scores.values())
    if not yes:
        return None
    taken, hits, area = 0, 0, 0.0
    for number in sorted(scores, reverse=True):
        held = scores[number]
        taken, hits = taken + held.yes + held.no, hits + held.yes
        if held.yes:
            area += held.yes / yes * hits / taken
    return area


def _auc_interval(area: float | None, yes: int, no: int) -> tuple[float, float] | None:
    if area is None:
        return None
    one, two = area / (2 - area), 2 * area * area / (1 + area)
    spread = area * (1 - area) + (yes - 1) * (one - area * area) + (no - 1) * (two - area * area)
    reach = Z * math.sqrt(max(0.0, spread) / (yes * no))
    return max(0.0, area - reach), min(1.0, area + reach)


def calibration(scores: Mapping[int, ScoreBin]) -> list[Figures]:
    """In bins of equal width: how many there were, what was said on average, and how often it was so.

    A fine bin goes as a whole where the mean of its scores is.
    """
    held = [ScoreBin() for _ in range(CALIBRATION)]
    for each in scores.values():
        known = ScoreBin(no=each.no, yes=each.yes, no_sum=each.no_sum, yes_sum=each.yes_sum)
        if known.count:
            at = min(CALIBRATION - 1, int(known.total / known.count * CALIBRATION))
            held[at] = held[at] + known
    return [
        {
            "from": at / CALIBRATION,
            "to": (at + 1) / CALIBRATION,
            "count": each.count,
            "said": each.total / each.count,
            "happened": each.yes / each.count,
            "interval": _interval(each.yes, each.count),
        }
        for at, each in enumerate(held)
        if each.count
    ]


def _regression(sums: Sums) -> Figures:
    count = sum(sums.errors.values())
    error, size, square, fourth, truth, _ = sums.moments
    told: Figures = {"known": count, "mean_truth": truth / count if count else None}
    told["bias"], told["bias_interval"] = _mean(error, square, count)
    told["mae"], told["mae_interval"] = _mean(size, square, count)
    mean_square, interval = _mean(square, fourth, count)
    told["rmse"] = None if mean_square is None else math.sqrt(mean_square)
    told["rmse_interval"] = None if interval is None else tuple(math.sqrt(max(0.0, each)) for each in interval)
    told["error_quantiles"] = {name: quantile(sums.errors, share) for name, share in QUANTILES.items()}
    return told


QUANTILES = {"p1": 0.01, "p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99}


def _interval(hits: int, count: int) -> tuple[float, float] | None:
    """The 95 % interval of a share; None of nothing."""
    return wilson(hits, count) if count else None


def _mean(total: float, squares: float, count: int) -> tuple[float | None, tuple[float, float] | None]:
    """A mean and its 95 % interval."""
    if not count:
        return None, None
    mean = total / count
    reach = Z * math.sqrt(max(0.0, squares / count - mean * mean) / count)
    return mean, (mean - reach, mean + reach)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
