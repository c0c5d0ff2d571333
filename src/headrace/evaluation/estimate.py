"""What figures will be, before labels have come: as if every score were the chance that it says.

That is right as far as scores are calibrated, and only of predictions like those they were calibrated on: when what is
asked for changes, not the answer, it shows before any label; when the answer changes, it shows nothing of that. So an
estimate is told beside the realised figure as soon as there is one, with how far it was off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from headrace.evaluation.metrics import Figures
from headrace.meaning.sums import ScoreBin, Sums

ASSUMES = "scores are calibrated, and what they depend on has not changed"
ESTIMATED = ("positive_rate", "precision", "recall", "f1", "auc", "log_loss", "brier")


def estimate(sums: Sums) -> Figures:
    """What the figures of all predictions of a window are expected to be, labels or not.

    >>> from headrace.meaning.outcome import PredictionOutcome
    >>> from headrace.meaning.sums import of_prediction
    >>> two = of_prediction(0.9, True, PredictionOutcome("open", None), binary=True)
    >>> two += of_prediction(0.1, False, PredictionOutcome("open", None), binary=True)
    >>> {name: round(value, 2) for name, value in estimate(two).items()}
    {'positive_rate': 0.5, 'precision': 0.9, 'recall': 0.9, 'f1': 0.9, 'auc': 0.9, 'log_loss': 0.33, 'brier': 0.09}
    """
    count = sum(each.count for each in sums.scores.values())
    expected = sum(each.total for each in sums.scores.values())
    hits = sum(value for name, value in sums.decided_sum.items() if name.startswith("yes/"))
    taken = sum(value for name, value in sums.decided.items() if name.startswith("yes/"))
    missed = sum(value for name, value in sums.decided_sum.items() if name.startswith("no/"))
    decided = bool(sums.decided)
    return {
        "positive_rate": _part(expected, count),
        "precision": _part(hits, taken) if decided else None,
        "recall": _part(hits, hits + missed) if decided else None,
        "f1": _part(2 * hits, taken + hits + missed) if decided else None,
        "auc": _auc(sums.scores),
        "log_loss": _part(sum(map(_log_loss, sums.scores.values())), count),
        "brier": _part(sum(map(_brier, sums.scores.values())), count),
    }


def compare_estimates(sums: Sums, realised: Figures) -> Figures:
    """Each estimate with what came true, as far as it has, and how far off it was."""
    told = {}
    for name, value in estimate(sums).items():
        real = realised.get(name)
        told[name] = {
            "estimated": value,
            "realised": real,
            "off": None if value is None or real is None else value - real,
        }
    return told


def _auc(scores: Mapping[int, ScoreBin]) -> float | None:
    """Of two predictions, one that is expected to be true and one that is not, how often the first scores higher."""
    yes = sum(each.total for each in scores.values())
    no = sum(each.count - each.total for each in scores.values())
    if yes <= 0 or no <= 0:
        return None
    below, better = 0.0, 0.0
    for number in sorted(scores):
        each = scores[number]
        better += each.total * (below + (each.count - each.total) / 2)
        below += each.count - each.total
    return better / (yes * no)


def _log_loss(each: ScoreBin) -> float:
    mean = each.total / each.count
    entropy = sum(-share * math.log(share) for share in (mean, 1 - mean) if share > 0)
    return each.count * entropy


def _brier(each: ScoreBin) -> float:
    mean = each.total / each.count
    return each.count * mean * (1 - mean)


def _part(part: float, whole: float) -> float | None:
    return part / whole if whole else None
