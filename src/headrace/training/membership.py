"""Which training sets have an event in their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.clock import micros
from headrace.define.stream import Stream
from headrace.errors import DataError
from headrace.meaning.event import Event
from headrace.project import Project
from headrace.skew.trace import Counting
from headrace.training.freshness import moments_of, rows_of
from headrace.training.manifest import FILE, read_manifest

DEEPEST = 3
"""How deep below the project's folder sets are looked for."""


def containing(project: Project, stream: Stream, event: Event) -> Iterator[dict[str, Any]]:
    """The training sets below a project's folder that have an event, with how many of their rows do."""
    for folder, told in _sets(project.config.root):
        if micros(told["created_at"]) <= event.arrived_at and told["asked"]["mode"] == "as_known":
            continue
        rows = sum(_rows(project, folder, told, stream, event).values())
        if rows:
            yield {"folder": str(folder.relative_to(project.config.root)), "mode": told["asked"]["mode"], "rows": rows}


def _rows(project: Project, folder: Path, told: dict[str, Any], stream: Stream, event: Event) -> dict[str, int]:
    """By view, in how many rows the event counts."""
    asked, plan, found = told["asked"], project.plan(), dict[str, int]()
    for name in {each["view"] for each in told["features"].values() if "view" in each} & set(plan.versions):
        view = plan.view(name)[0].view
        counting = Counting(view, stream, event)
        if counting.key is None:
            continue
        rows = rows_of(folder, [asked["time"], *view.by], placed=asked["include_event"])
        if not set(view.by) <= set(rows.column_names):
            continue
        keys = zip(*(rows.column(column).to_pylist() for column in view.by), strict=True)
        moments = moments_of(rows, asked["time"])
        found[name] = sum(counting.at(key, moment) for key, moment in zip(keys, moments, strict=True))
    return found


def _sets(root: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folders of training sets with their manifests."""
    for depth in range(1, DEEPEST + 1):
        for file in root.glob("/".join(["*"] * depth + [FILE])):
            try:
                yield file.parent, read_manifest(file.parent)
            except DataError:
                continue
