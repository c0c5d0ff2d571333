"""A closed window of a model's inputs, scores and errors, and the numbers that are watched of it.

Each number is a series over the windows. Its name says what it is: "mean of amount", "null rate of country", or just
"log_loss" for a measure of the model's error. A name that ends in "[country=DE]" is of a segment: segments are not
watched on their own, they explain what is (`drift.incident`). The series go to `drift.series_watch`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from headrace.clock import show_time
from headrace.drift.distance import mean_shift, new_share, null_rate, psi
from headrace.drift.reference import Reference
from headrace.drift.statistics import Statistics
from headrace.errors import DataError, shown

MEAN, PSI, NULLS, NEW = "mean", "psi", "null rate", "new share"
UPWARD = (PSI, NEW)
"""Series of which only a rise is a drift."""
SCORE = "score"
"""The column that holds what the model answered."""
NOT_ERRORS = ("positive_rate",)
"""Measures of labelled predictions that do not say how wrong the model is."""
DIGITS = 9
"""Significant digits of a value: partial sums that were merged in another order give the same."""
_OF = " of "


class DriftWindow(msgspec.Struct, frozen=True):
    """What was counted between two moments.

    Parameters
    ----------
    start, end
        In microseconds of event time; the end is not in it.
    columns
        Statistics of the features and of "score".
    measures
        What labelled predictions say, such as "log_loss", each with its value and its standard error or weight. They
        may come later than the columns, in a window of their own.

    Examples
    --------
    >>> DriftWindow(0, 3_600_000_000, measures={"brier": (0.2, 0.01)}).measures["brier"][0]
    0.2
    """

    start: int
    end: int
    columns: dict[str, Statistics] = {}
    measures: dict[str, tuple[float, float]] = {}


def named(measure: str, column: str) -> str:
    """The name of a series.

    >>> named(MEAN, "amount")
    'mean of amount'
    """
    return f"{measure}{_OF}{column}"


def parts(name: str) -> tuple[str, str | None]:
    """What is measured, and of which column; None for a measure of the model's error.

    >>> parts("null rate of country[vip=true]"), parts("log_loss[bank=Bank of X]")
    (('null rate', 'country[vip=true]'), ('log_loss[bank=Bank of X]', None))
    """
    whole, bracket, segment = name.partition("[")
    measure, of, column = whole.partition(_OF)
    return (measure, f"{column}{bracket}{segment}") if of else (name, None)


def in_segment(name: str, segment: str, value: str) -> str:
    """A column or a measure as it is called in a segment; without one, as it is called over everything.

    >>> in_segment("amount", "country", "DE"), in_segment("log_loss", "", "")
    ('amount[country=DE]', 'log_loss')
    """
    return f"{name}[{segment}={value}]" if segment else name


def is_segment(name: str) -> bool:
    """Whether a series or a column is of a segment.

    >>> is_segment("mean of amount[country=DE]"), is_segment("log_loss")
    (True, False)
    """
    return "[" in name


class Measuring:
    """What is watched of windows, given the references of a model.

    Parameters
    ----------
    references
        By column. Of a column without one, only the null rate is known.
    min_rows
        Fewer rows than these say nothing.

    Examples
    --------
    >>> vip = Reference(rows=10, null_rate=0.0, texts={"true": 5, "false": 5})
    >>> held = Statistics(count=100, nulls=50, texts={"true": 25, "false": 25})
    >>> Measuring({"vip": vip}).inputs(DriftWindow(0, 1, {"vip": held}))
    {'null rate of vip': 0.5, 'psi of vip': 0.0, 'new share of vip': 0.0}
    """

    def __init__(self, references: Mapping[str, Reference], min_rows: int = 30) -> None:
        self.references, self.min_rows = dict(references), min_rows
        self._fingerprints = {name: each.fingerprint for name, each in references.items()}

    def inputs(self, window: DriftWindow) -> dict[str, float | None]:
        """The series of features and scores, with None for what the window does not say."""
        found: dict[str, float | None] = {}
        for column, held in sorted(window.columns.items()):
            base = column.partition("[")[0]
            found[named(NULLS, column)] = null_rate(held) if held.count >= self.min_rows else None
            if base in self.references:
                self._refuse_other(base, held, window)
                found |= self._compared(column, self.references[base], held)
        return {name: rounded(value) for name, value in found.items()}

    def errors(self, window: DriftWindow) -> dict[str, float | None]:
        """The series of the model's error; a measure that is no number, such as that of one class only, is None."""
        for name in window.measures:
            if parts(name)[1] is not None:
                raise DataError("bad-name", f"A measure's name may not hold {_OF!r}.", got=shown(name))
        return {name: rounded(value) for name, (value, _) in sorted(window.measures.items())}

    def _compared(self, column: str, reference: Reference, held: Statistics) -> dict[str, float | None]:
        enough = held if held.values >= self.min_rows else Statistics()
        if reference.is_text:
            return {named(PSI, column): psi(reference, enough), named(NEW, column): new_share(reference, enough)}
        return {named(MEAN, column): mean_shift(reference, enough), named(PSI, column): psi(reference, enough)}

    def _refuse_other(self, column: str, held: Statistics, window: DriftWindow) -> None:
        """Bins of another version of the feature would be compared without any error, and mean nothing."""
        reference = self.references[column]
        other = held.against not in ("", self._fingerprints[column])
        if other or (held.values > 0 and not reference.is_text and len(held.counts) != len(reference.counts)):
            message = f"Column {column!r} was counted against the reference of another version."
            got = f"{held.against!r}, and the model has {self._fingerprints[column]!r}"
            hint = "Count the window again, against the manifest of the model's version."
            where = f"the window of {show_time(window.start)}"
            raise DataError("wrong-reference", message, got=got, hint=hint, where=where)


def series(windows: Iterable[DriftWindow], references: Mapping[str, Reference]) -> dict[str, list[float | None]]:
    """All series of some windows, each with one value for each window; None where a window says nothing.

    Examples
    --------
    >>> hours = [DriftWindow(0, 1, measures={"mae": (0.5, 0.1)}), DriftWindow(1, 2)]
    >>> series(hours, {})
    {'mae': [0.5, None]}
    """
    measuring = Measuring(references)
    rows = [measuring.inputs(window) | measuring.errors(window) for window in windows]
    names = {name: None for row in rows for name in row}
    return {name: [row.get(name) for row in rows] for name in names}


def rounded(value: float | None) -> float | None:
    """A value without its last digits; None of what is no number.

    >>> rounded(0.1 + 0.2), rounded(float("nan"))
    (0.3, None)
    """
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
