"""The histogram of delays as a picture, with matplotlib, which the extra `plots` brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.clock import show_duration
from headrace.errors import MachineError, UsageError, shown

KINDS = (".png", ".svg")
Bucket = tuple[int | None, int | None, int]


def refuse(file: Path) -> None:
    """Refuse a picture that cannot be made, before anything is read."""
    if file.suffix.lower() not in KINDS:
        hint = "Name a file that ends in .png or .svg."
        raise UsageError("bad-usage", "A picture of that kind cannot be written.", got=shown(str(file)), hint=hint)
    if not file.resolve().parent.is_dir():
        hint = "Make the folder first, or name another."
        raise UsageError("bad-usage", "The folder for the picture is not there.", got=shown(str(file)), hint=hint)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        message = "Pictures are drawn by matplotlib, which is not installed."
        hint = "Install it: `pip install 'headrace[plots]'`."
        raise MachineError("missing-package", message, hint=hint) from None


def draw(file: Path, title: str, buckets: Sequence[Bucket], marks: Mapping[str, int]) -> None:
    """Write a picture of the buckets, with a line for each mark.

    Parameters
    ----------
    file
        Where to; its ending says whether PNG or SVG.
    buckets
        As `Delays.histogram` gives them.
    marks
        Delays to mark, by what to call them.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    shares, total = [count for *_, count in buckets], sum(count for *_, count in buckets)
    axes.bar(range(len(buckets)), [100 * share / total for share in shares], width=0.95, align="edge", color="#4c78a8")
    axes.set_yscale("log")
    axes.set_ylabel("records, % (logarithmic)")
    axes.set_xlabel("arrived after it happened")
    axes.set_title(title)
    axes.set_xticks(range(len(buckets)), [_edge(start) for start, *_ in buckets])
    for at, (name, delay) in enumerate(marks.items()):
        axes.axvline(axis_position(buckets, delay), color=f"C{at + 1}", linestyle="--", label=name)
    if marks:
        axes.legend()
    options: dict[str, Any] = {"metadata": {"Date": None}} if file.suffix.lower() == ".svg" else {"dpi": 150}
    figure.savefig(file, **options)


def _edge(start: int | None) -> str:
    return "ahead" if start is None else show_duration(start)


def axis_position(buckets: Sequence[Bucket], delay: int) -> float:
    """Where a delay stands on the axis of the buckets.

    >>> axis_position([(None, 0, 1), (0, 10, 1), (10, 20, 1)], 15)
    2.5
    """
    for at, (start, end, _) in enumerate(buckets):
        if end is None or delay < end:
            inside = 0.5 if start is None or end is None else (delay - start) / (end - start)
            return at + max(0.0, inside)
    return float(len(buckets))
