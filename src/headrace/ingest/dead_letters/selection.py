"""Which letters are meant: by name, or by what they are like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.errors import DataError, shown
from headrace.spark.dead_letter import DeadLetter


@dataclass(frozen=True)
class LetterSelection:
    """A choice of letters; what is left out does not restrict it.

    Parameters
    ----------
    ids
        Names of letters.
    verdict
        Their verdict.
    reason
        A text that their reason contains, whatever its case.
    since
        The earliest arrival, in microseconds.

    Examples
    --------
    >>> letter = DeadLetter(0, 7, 5, "malformed", "it is not JSON", None, b"{", (), 1)
    >>> LetterSelection(verdict="malformed", reason="json").fits(letter), LetterSelection(since=6).fits(letter)
    (True, False)
    """

    ids: tuple[str, ...] = ()
    verdict: str | None = None
    reason: str | None = None
    since: int | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing restricts it."""
        return self == LetterSelection()

    def fits(self, letter: DeadLetter) -> bool:
        """Whether a letter is meant."""
        return (
            (not self.ids or letter.id in self.ids)
            and (self.verdict is None or letter.verdict == self.verdict)
            and (self.reason is None or self.reason.lower() in letter.reason.lower())
            and (self.since is None or letter.arrived_at >= self.since)
        )


def choose(letters: Mapping[str, DeadLetter], wanted: LetterSelection, gone: Iterable[str] = ()) -> list[DeadLetter]:
    """The letters that are meant, by arrival; a name that is not there is refused, unless it has just gone."""
    for name in wanted.ids:
        if name not in letters and name not in gone:
            hint = "See `headrace dead-letters list`; it may have been replayed or dropped before."
            raise DataError("no-letter", "There is no such dead letter.", got=shown(name), hint=hint)
    found = [letter for letter in letters.values() if wanted.fits(letter)]
    return sorted(found, key=lambda letter: (letter.arrived_at, letter.partition, letter.offset))


def reasons(letters: Iterable[DeadLetter]) -> list[tuple[str, str, int]]:
    """How many letters there are of each verdict and reason, the most frequent first; numbers in a reason are alike.

    >>> said = [f"dated {n} s after its arrival" for n in range(60, 63)]
    >>> reasons([DeadLetter(0, n, 5, "future", reason, None, b"", (), 0) for n, reason in enumerate(said)])
    [('future', 'dated N s after its arrival', 3)]
    """
    counts = Counter((letter.verdict, re.sub(r"\d+", "N", letter.reason)) for letter in letters)
    return [(*kind, count) for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
