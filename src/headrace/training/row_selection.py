"""Which rows of a spine become rows of a training set, and in which part: samples, negatives left out, splits by time.

What becomes of a row depends on the row's own keys and time and on the seed, through a hash: the same rows are chosen
however they are spread over tasks, and rows of one key and time stay together. Everything is a Spark expression; what
is here is text, and runs in `spark.training.spine`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from headrace.clock import micros, parse_timestamp, show_time
from headrace.errors import DataError, UsageError, shown

WEIGHT, SPLIT = "weight", "split"
"""The columns that downsampling and splitting add."""
PARTS = {2: ("train", "test"), 3: ("train", "validation", "test")}
BUCKETS = 1 << 16
"""Into so many spans of time rows are counted at once when a moment is looked for."""
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_UNIT = float(1 << 53)


def quoted(name: str) -> str:
    """A column's name in SQL.

    >>> quoted("card no")
    '`card no`'
    """
    return f"`{name}`"


def text(value: str) -> str:
    """A text in SQL.

    >>> text("it's")
    "'it\\\\'s'"
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def rate_of(given: Any, what: str) -> float:
    """A share above 0 and at most 1.

    >>> rate_of("0.25", "a sample")
    0.25
    """
    found = float(given) if _NUMBER.fullmatch(str(given)) and not isinstance(given, bool) else 0.0
    if not 0 < found <= 1:
        hint = "As in 0.1 for a tenth."
        raise UsageError("bad-usage", f"The rate of {what} lies above 0 and at most at 1.", got=shown(given), hint=hint)
    return found


def chance(seed: int, what: str, columns: Sequence[str]) -> str:
    """A number from 0 to below 1 that is a row's own, as an expression over the columns that tell rows apart."""
    cells = ", ".join([f"{seed}L", text(what), *map(quoted, columns)])
    return f"(shiftrightunsigned(xxhash64({cells}), 11) / {_UNIT!r}D)"


@dataclass(frozen=True)
class Downsample:
    """Of the rows whose column has a value only a share stays, and each stands for several.

    >>> downsample("label=0:0.1").written
    'label=0:0.1'
    """

    column: str
    value: str
    rate: float

    @property
    def written(self) -> str:
        """As a user writes it."""
        return f"{self.column}={self.value}:{self.rate!r}"

    def matches(self, kind: str) -> str:
        """Whether a row is one of those, as an expression; `kind` is the column's type as Spark shows it."""
        column, value = quoted(self.column), text(self.value)
        same = f"{column} = {value}" if kind == "string" else "false"
        if kind == "boolean":
            same = f"{column} = try_cast({value} AS BOOLEAN)"
        elif kind == "string" and self.value.lower() in ("true", "false"):
            same = f"lower({column}) = '{self.value.lower()}'"
        elif _NUMBER.fullmatch(self.value.removeprefix("-")):
            same = f"({same} OR try_cast({column} AS DOUBLE) = {float(self.value)!r}D)"
        return f"coalesce({same}, false)"

    def keep(self, kind: str, seed: int, columns: Sequence[str]) -> str:
        """Whether a row stays."""
        return f"NOT {self.matches(kind)} OR {chance(seed, 'downsample', columns)} < {self.rate!r}D"

    def weight(self, kind: str) -> str:
        """How many rows a row that stayed stands for."""
        return f"CASE WHEN {self.matches(kind)} THEN {1 / self.rate!r}D ELSE 1.0D END"


def downsample(given: str) -> Downsample:
    """Read `COLUMN=VALUE:RATE`."""
    left, colon, rate = given.rpartition(":")
    column, equals, value = left.partition("=")
    if not (colon and equals and column):
        hint = "Write it as label=0:0.1, to keep a tenth of the rows whose label is 0."
        raise UsageError("bad-usage", "Downsampling takes a column, a value and a rate.", got=shown(given), hint=hint)
    return Downsample(column, value, rate_of(rate, "downsampling"))


@dataclass(frozen=True)
class Split:
    """Parts in the order of time, by their shares of the rows or by the moments between them, in microseconds."""

    shares: tuple[Fraction, ...] = ()
    moments: tuple[int, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """What the parts are called."""
        return PARTS[len(self.shares) or len(self.moments) + 1]

    @property
    def written(self) -> str:
        """As a user writes it."""
        return ",".join([*(repr(float(share)) for share in self.shares), *map(show_time, self.moments)])

    def expression(self, time: str, moments: Sequence[int]) -> str:
        """The part a row is in; one at the very moment between two parts is in the later."""
        cases = zip(moments, self.parts[:-1], strict=True)
        when = " ".join(f"WHEN unix_micros({quoted(time)}) < {moment} THEN '{part}'" for moment, part in cases)
        return f"CASE {when} ELSE '{self.parts[-1]}' END"

    def ranks(self, rows: int) -> list[int]:
        """The first row of each part but the first, counted from 0 in the order of time."""
        return [int(sum(self.shares[: at + 1], Fraction()) * rows) for at in range(len(self.shares) - 1)]


def split(given: str | Sequence[Any]) -> Split:
    """Read shares that add up to 1, or moments between parts: two or three parts in all.

    >>> split("0.8,0.1,0.1").parts
    ('train', 'validation', 'test')
    >>> split("2026-01-01T00:00:00Z").parts
    ('train', 'test')
    """
    pieces = [piece.strip() for piece in given.split(",")] if isinstance(given, str) else list(given)
    if pieces and all(_NUMBER.fullmatch(str(piece)) for piece in pieces):
        shares = tuple(Fraction(str(piece)) for piece in pieces)
        if len(shares) in PARTS and all(shares) and abs(sum(shares, Fraction()) - 1) < Fraction(1, 10**9):
            return Split(shares=shares)
    elif pieces and all(not isinstance(piece, str) or parse_timestamp(piece) is not None for piece in pieces):
        moments = tuple(micros(piece, "a moment between parts") for piece in pieces)
        if len(moments) + 1 in PARTS and all(early < late for early, late in pairwise(moments)):
            return Split(moments=moments)
    hint = "Two or three shares that add up to 1, as in 0.8,0.1,0.1; or one or two moments, as in 2026-01-01T00:00:00Z."
    raise UsageError("bad-usage", "The split cannot be used.", got=shown(given), hint=hint)


Counts = Callable[[int, int, int], Mapping[int, int]]
"""How many rows are in each span of a width in [low, high]: given low, high and the width."""


def moments_of(chosen: Split, counts: Counts, low: int, high: int, rows: int) -> list[int]:
    """The moments between the parts, found by counting, so that memory does not grow with the rows.

    Rows of one moment are never parted: no part is larger than its share, but for the last. There are at most `rows`
    of them, between two moments.
    """
    if chosen.moments:
        return list(chosen.moments)
    first = _width(low, high, rows)
    held = counts(low, high, first)
    if not held:
        raise DataError("bad-spine", "No row of the spine is left to split.", hint="Sample more of them.")
    found = []
    for wanted in chosen.ranks(sum(held.values())):
        least, most, width, inside, rank = low, high, first, held, wanted
        while True:
            bucket, rank = _bucket(inside, rank)
            least, most = least + bucket * width, min(most, least + (bucket + 1) * width - 1)
            if width == 1:
                break
            width = _width(least, most, inside[bucket])
            inside = counts(least, most, width)
        found.append(least)
    return found


def _width(low: int, high: int, rows: int) -> int:
    """How long spans are: a microsecond where rows are so few that each may have a span of its own."""
    return 1 if rows <= BUCKETS else max(1, -(-(high - low + 1) // BUCKETS))


def _bucket(held: Mapping[int, int], rank: int) -> tuple[int, int]:
    """The span that has the row of a rank, and the row's rank within it."""
    for bucket in sorted(held):
        if rank < held[bucket]:
            return bucket, rank
        rank -= held[bucket]
    raise ValueError("rows went away while they were counted")
