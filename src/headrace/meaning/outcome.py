"""What is known of a prediction at a moment: one state, from the labels that have arrived by then.

This is the meaning, in plain Python over lists; `spark.evaluation.outcomes` is held to it. A label counts for the
prediction of the event it names when it happened at most the horizon before or after that event. Of several, that
which happened last says what is true, and among those of one moment the one that arrived last. A prediction is

- `labelled`: there is a label, and none said otherwise at another time;
- `corrected`: a later label said something else than an earlier one;
- `defaulted`: the horizon has passed, and none has come;
- `open`: one may still come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

LABELLED, CORRECTED, DEFAULTED, OPEN = "labelled", "corrected", "defaulted", "open"
STATES = (LABELLED, CORRECTED, DEFAULTED, OPEN)

Truth = bool | float


class LabelEvent(NamedTuple):
    """A label.

    Parameters
    ----------
    of
        What it names: the id of a scored event, or its key and time.
    happened
        When the truth was established, by the label's own event time.
    place
        When it arrived, and where it stands: (arrived_at, partition, offset).
    value
        What is true.
    """

    of: str
    happened: int
    place: tuple[int, int, int]
    value: Truth


class PredictionOutcome(NamedTuple):
    """What is known of a prediction.

    Parameters
    ----------
    truth
        What is true as far as is known; None where nothing is, or nothing is taken for it.
    delay
        Microseconds from the prediction to the arrival of its first label.
    contradicted
        Whether labels of one moment say different things.
    """

    state: str
    truth: Truth | None
    delay: int | None = None
    contradicted: bool = False


def outcome(
    at: int, labels: Iterable[LabelEvent], known_until: int, horizon: int, default: Truth | None = None
) -> PredictionOutcome:
    """What is known of a prediction, from the labels that name its event.

    Parameters
    ----------
    at
        When the prediction was asked for.
    known_until
        Labels that arrived before this moment are known.

    Examples
    --------
    >>> told = [LabelEvent("p1", 50, (60, 0, 1), False), LabelEvent("p1", 80, (90, 0, 2), True)]
    >>> outcome(10, told, 70, horizon=100), outcome(10, told, 95, horizon=100)
    (PredictionOutcome(state='labelled', truth=False, delay=50, contradicted=False), \
PredictionOutcome(state='corrected', truth=True, delay=50, contradicted=False))
    >>> outcome(10, [], 95, horizon=100).state, outcome(10, [], 110, horizon=100, default=False)
    ('open', PredictionOutcome(state='defaulted', truth=False, delay=None, contradicted=False))
    """
    known = sorted(
        (each for each in labels if each.place[0] < known_until and abs(each.happened - at) <= horizon),
        key=lambda each: (each.happened, each.place),
    )
    if not known:
        return PredictionOutcome(DEFAULTED, default) if known_until >= at + horizon else PredictionOutcome(OPEN, None)
    last = {each.happened: each.value for each in known}
    state = CORRECTED if len(set(last.values())) > 1 else LABELLED
    delay = max(0, min(each.place[0] for each in known) - at)
    return PredictionOutcome(state, known[-1].value, delay, _contradicted(known))


def _contradicted(known: Sequence[LabelEvent]) -> bool:
    """Whether labels of one moment say different things."""
    return len({(each.happened, each.value) for each in known}) > len({each.happened for each in known})
