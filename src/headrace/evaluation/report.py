"""The figures of a label: over everything, window by window, segment by segment, and how they were restated.

A window is told once it has closed: its end lies before what is known. Each has its estimate beside what came true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.clock import show_duration, show_time
from headrace.define.label import BINARY, Label
from headrace.evaluation.cells import Cells, Restated
from headrace.evaluation.estimate import ASSUMES, compare_estimates
from headrace.evaluation.metrics import Figures, figures
from headrace.meaning.sums import Sums, total
from headrace.spark.evaluation.outcome_sums import CellKey

MOVED = ("count", "coverage", "positive_rate", "precision", "recall", "auc", "log_loss", "brier", "mae", "rmse")
"""The figures whose restatements are told."""


def report(label: Label, cells: Cells, since: int | None = None) -> dict[str, Any]:
    """Everything that is known of a label, as JSON has it."""
    seen = cells.seen()
    until = None if seen is None else seen.known_until
    start = None if since is None else since - since % label.window
    history = [each for each in cells.history(start) if until is not None and _closed(each, label, until)]
    newest = {each.cell: each for each in history}
    return {
        "label": label.name,
        "model": label.model.name,
        "kind": label.kind,
        "horizon": show_duration(label.horizon),
        "window": show_duration(label.window),
        "known_until": None if until is None else show_time(until),
        "assumes": ASSUMES,
        "versions": _versions(label, newest.values()),
        "segments": _by(
            label,
            newest.values(),
            lambda cell: bool(cell.segment),
            lambda cell: (cell.version, cell.segment, cell.value),
        ),
        "windows": [_window(label, said) for cell, said in _by_cell(history).items() if not cell.segment],
    }


def overall(label: Label, cells: Cells) -> dict[str, Any]:
    """What is known of a label's versions by now, as in `report`; how it was stated before is not read for it."""
    seen = cells.seen()
    found = () if seen is None else cells.newest().values()
    newest = [each for each in found if seen is not None and _closed(each, label, seen.known_until)]
    return {
        "known_until": None if seen is None else show_time(seen.known_until),
        "versions": _versions(label, newest),
    }


def _versions(label: Label, newest: Iterable[Restated]) -> list[dict[str, Any]]:
    return _by(label, newest, lambda cell: not cell.segment, lambda cell: (cell.version,))


def _closed(each: Restated, label: Label, until: int) -> bool:
    return each.cell.window + label.window <= until


def _by(
    label: Label,
    restated: Iterable[Restated],
    wanted: Callable[[CellKey], bool],
    group: Callable[[CellKey], tuple[Any, ...]],
) -> list[dict[str, Any]]:
    """Figures of the windows taken together, of each version, or of each segment of one."""
    found: dict[tuple[Any, ...], list[Sums]] = {}
    for each in restated:
        if wanted(each.cell):
            found.setdefault(group(each.cell), []).append(each.sums)
    names = ("version", "segment", "value")
    return [
        dict(zip(names, key, strict=False)) | _figures_json(label, total(parts), estimated=len(key) == 1)
        for key, parts in sorted(found.items(), key=lambda item: tuple(map(str, item[0])))
    ]


def _figures_json(label: Label, sums: Sums, *, estimated: bool) -> Figures:
    told = figures(sums, label.kind)
    return told | {"estimate": compare_estimates(sums, told)} if estimated and label.kind == BINARY else told


def _by_cell(history: Iterable[Restated]) -> dict[CellKey, list[Restated]]:
    """What was said of each cell, in order."""
    found: dict[CellKey, list[Restated]] = {}
    for each in history:
        found.setdefault(each.cell, []).append(each)
    return {cell: found[cell] for cell in sorted(found)}


def _window(label: Label, said: list[Restated]) -> dict[str, Any]:
    """A window with its figures now and what was said of it before."""
    cell, sums = said[-1].cell, said[-1].sums
    return {
        "start": show_time(cell.window),
        "end": show_time(cell.window + label.window),
        "version": cell.version,
        **_figures_json(label, sums, estimated=True),
        "restatements": [_short(label, held) for held in said],
    }


def _short(label: Label, held: Restated) -> dict[str, Any]:
    told = figures(held.sums, label.kind)
    return {"known_until": show_time(held.known_until)} | {name: told[name] for name in MOVED if name in told}


def written(figure: Any) -> str:
    """A figure as people read it; what is not known is a dash.

    >>> written(1234), written(0.5), written(None)
    ('1,234', '0.5000', '-')
    """
    return "-" if figure is None else f"{figure:,}" if isinstance(figure, int) else f"{figure:.4f}"
