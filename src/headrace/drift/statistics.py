"""What one column held in one window, so that parts of a window can be counted apart and merged.

Counts merge exactly, in any order. Means and squares are floats: merged in another order they differ in the last
digits, which is why `drift.window` rounds what it takes from them. Next come `drift.distance` and `drift.window`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.drift.reference import Reference, text_of
from headrace.errors import DataError
from headrace.plural import show_count


class Statistics(msgspec.Struct, frozen=True):
    """A column in a window.

    Parameters
    ----------
    count, nulls
        Its rows, and how many of them were null. A NaN is a null.
    mean, m2
        Of a number: the mean of what is not null, and the sum of the squared distances to it.
    counts
        Of a number: how many were in each bin of the reference, with one bin more at either end.
    texts, other
        Of a text: how often each category of the reference was there, and how often any other.
    against
        The fingerprint of the reference whose bins and categories these are. Empty is not checked.

    Examples
    --------
    >>> one, two = Statistics(count=2, mean=1.0, m2=2.0), Statistics(count=1, mean=4.0)
    >>> whole = one.merge(two)
    >>> whole.count, whole.mean, whole.m2
    (3, 2.0, 8.0)
    """

    count: int = 0
    nulls: int = 0
    mean: float = 0.0
    m2: float = 0.0
    counts: tuple[int, ...] = ()
    texts: dict[str, int] = {}
    other: int = 0
    against: str = ""

    @property
    def values(self) -> int:
        """How many were not null."""
        return self.count - self.nulls

    @property
    def stddev(self) -> float | None:
        """The standard deviation; None of fewer than two values."""
        return math.sqrt(self.m2 / (self.values - 1)) if self.values > 1 else None

    def merge(self, other: Statistics) -> Statistics:
        """Both together. What nothing was counted into merges with anything."""
        if self.count == 0 or other.count == 0:
            return other if self.count == 0 else self
        if self.against != other.against or len(self.counts) != len(other.counts):
            message = "Two parts of a window were counted against different references."
            bins = show_count(len(self.counts), "bin")
            got = f"{self.against!r} with {bins}, {other.against!r} with {len(other.counts)}"
            raise DataError("wrong-reference", message, got=got, hint="Count both against the model's version of now.")
        mean, m2 = _moments(self, other)
        return Statistics(
            count=self.count + other.count,
            nulls=self.nulls + other.nulls,
            mean=mean,
            m2=m2,
            counts=tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            texts={text: self.texts.get(text, 0) + other.texts.get(text, 0) for text in {**self.texts, **other.texts}},
            other=self.other + other.other,
            against=self.against,
        )


def _moments(a: Statistics, b: Statistics) -> tuple[float, float]:
    """Mean and squares of both, after Chan. Swapping the two changes no digit."""
    values = a.values + b.values
    if values == 0:
        return 0.0, 0.0
    mean = a.mean * (a.values / values) + b.mean * (b.values / values)
    apart = b.mean - a.mean
    return mean, a.m2 + b.m2 + apart * apart * (a.values * b.values / values)


def counted(values: Iterable[Any], reference: Reference) -> Statistics:
    """Count values one after the other, as Spark counts them natively.

    Examples
    --------
    >>> amount = Reference(rows=4, null_rate=0.0, mean=2.0, stddev=1.0, edges=(0.0, 2.0, 4.0), counts=(0, 1, 3, 0))
    >>> found = counted([1.0, None, 9.0], amount)
    >>> found.count, found.nulls, found.mean, found.counts
    (3, 1, 5.0, (0, 1, 0, 1))
    """
    seen = list(values)
    held = [value for value in seen if not _is_null(value)]
    nulls = len(seen) - len(held)
    if reference.is_text:
        return _texts(held, nulls, reference)
    counts = [0] * (len(reference.edges) + 1)
    for value in held:
        counts[reference.bin_of(value)] += 1
    mean = math.fsum(value / len(held) for value in held)
    m2 = math.fsum((value - mean) ** 2 for value in held)
    return Statistics(len(seen), nulls, mean, m2, tuple(counts), against=reference.fingerprint)


def _texts(held: list[Any], nulls: int, reference: Reference) -> Statistics:
    texts = dict.fromkeys(reference.texts, 0)
    other = 0
    for text in map(text_of, held):
        if text in texts:
            texts[text] += 1
        else:
            other += 1
    return Statistics(len(held) + nulls, nulls, texts=texts, other=other, against=reference.fingerprint)


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def reference_from(statistics: Statistics, edges: tuple[float, ...] = ()) -> Reference:
    """A reference from what windows held, for a column that the manifest does not know, such as the score.

    Parameters
    ----------
    statistics
        Of many windows, merged.
    edges
        The bins they were counted over; none for a text.

    Examples
    --------
    >>> reference_from(Statistics(count=3, mean=0.5, m2=0.02, counts=(0, 3, 0)), (0.0, 1.0)).stddev
    0.1
    """
    return Reference(
        rows=statistics.count,
        null_rate=statistics.nulls / statistics.count if statistics.count else 0.0,
        mean=statistics.mean if edges and statistics.values else None,
        stddev=statistics.stddev if edges else None,
        edges=edges,
        counts=statistics.counts,
        texts=statistics.texts,
        other=statistics.other,
    )
