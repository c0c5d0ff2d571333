"""What a training set is asked to be, read and checked before anything starts, and as a manifest keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast, get_args

from headrace.errors import UsageError, did_you_mean, shown
from headrace.meaning.exact import Mode
from headrace.training.row_selection import SPLIT, WEIGHT, Downsample, Split, downsample, rate_of, split

Format = Literal["parquet", "delta"]
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class TrainingRequest:
    """What a training set is asked to be.

    Parameters
    ----------
    features
        Names of views and feature sets.
    time
        The spine's column that says when.
    include_event
        The stream whose events the spine's rows are; each then counts in its own row.
    sample
        The share of rows that stay.
    """

    features: tuple[str, ...]
    time: str = "t"
    mode: Mode = "as_known"
    include_event: str | None = None
    sample: float | None = None
    downsample: Downsample | None = None
    split: Split | None = None
    seed: int = 0
    format: Format = "parquet"

    @property
    def made(self) -> tuple[str, ...]:
        """The columns beside features that are added to the spine's."""
        return (*((WEIGHT,) if self.downsample else ()), *((SPLIT,) if self.split else ()))

    def as_json(self) -> dict[str, Any]:
        """As a manifest keeps it."""
        return {
            "features": list(self.features),
            "time": self.time,
            "mode": self.mode,
            "include_event": self.include_event,
            "sample": self.sample,
            "downsample": None if self.downsample is None else self.downsample.written,
            "split": None if self.split is None else self.split.written,
            "seed": self.seed,
            "format": self.format,
        }


def read_request(  # noqa: PLR0913
    features: Any,
    *,
    time: str = "t",
    mode: str = "as_known",
    include_event: str | None = None,
    sample: Any = None,
    downsample_by: str | None = None,
    split_by: str | Sequence[Any] | None = None,
    seed: int = 0,
    format: str = "parquet",
) -> TrainingRequest:
    """Read what a user asks for.

    >>> read_request("fraud", split_by="0.8,0.2").split.parts
    ('train', 'test')
    """
    given: Any = seed
    if isinstance(given, bool) or not isinstance(given, int) or abs(given) > LARGEST_SEED:
        hint = "Give a whole number such as 7."
        raise UsageError("bad-usage", "A seed is a whole number of 64 bits.", got=shown(seed), hint=hint)
    return TrainingRequest(
        _names(features),
        time,
        cast("Mode", _one_of("mode", mode, get_args(Mode))),
        include_event,
        None if sample is None else rate_of(sample, "a sample"),
        None if downsample_by is None else downsample(downsample_by),
        None if split_by is None else split(split_by),
        seed,
        cast("Format", _one_of("format", format, get_args(Format))),
    )


def wish_of(kept: Mapping[str, Any], format: str | None = None) -> TrainingRequest:
    """What a manifest keeps of a wish, perhaps in another format."""
    renamed = {"downsample": "downsample_by", "split": "split_by"}
    known = {each.name for each in fields(TrainingRequest)}
    given = {renamed.get(name, name): value for name, value in kept.items() if name in known}
    return read_request(**given | ({} if format is None else {"format": format}))


def _names(features: Any) -> tuple[str, ...]:
    given = list(features) if isinstance(features, list | tuple) else [] if features is None else [features]
    names = tuple(getattr(each, "name", each) for each in given)
    for name in names:
        if not isinstance(name, str):
            hint = "Give the name of a view or a feature set, or a list of them."
            raise UsageError("bad-usage", "Features are asked for by name.", got=shown(name), hint=hint)
    return names


def _one_of(what: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        message = f"There is no such {what} of a training set."
        raise UsageError("bad-usage", message, got=shown(given), hint=did_you_mean(given, known))
    return given
