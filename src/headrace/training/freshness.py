"""How old the newest event of a key was in the rows of a training set, for comparison with what is served."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.asof.lake import PLACE, PastEvents
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables
from headrace.meaning.exact import Key, Moment
from headrace.project import Project
from headrace.skew.freshness import Age, Ages
from headrace.training.manifest import DATA, read_manifest

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 5_000
"""Rows of a set that are looked at, drawn evenly."""


def trained_ages(project: Project, folder: Path) -> dict[str, list[Age]]:
    """By view, the ages in the rows of a training set."""
    told = read_manifest(folder)
    asked, plan = told["asked"], project.plan()
    names = sorted({each["view"] for each in told["features"].values() if "view" in each} & set(plan.versions))
    views = [plan.view(name)[0].view for name in names]
    rows = rows_of(
        folder, [asked["time"], *{name for view in views for name in view.by}], placed=asked["include_event"], most=MOST
    )
    found: dict[str, list[Age]] = {}
    for view in views:
        silver = find_tables(project.config, view.stream).get(SILVER)
        if silver is not None and set(view.by) <= set(rows.column_names):
            moments = moments_of(rows, asked["time"])
            keys: list[Key] = list(zip(*(rows.column(name).to_pylist() for name in view.by), strict=True))
            past = PastEvents.read(silver, view, [moment[0] for moment in moments], set(keys))
            found[view.name] = _ages(past, keys, moments, happened=asked["mode"] == "as_happened")
    return found


def _ages(past: PastEvents, keys: Sequence[Key], moments: Sequence[Moment], *, happened: bool) -> list[Age]:
    known = Ages(past)
    ages = (
        _happened(past, key, moment) if happened else known.at(key, moment)
        for key, moment in zip(keys, moments, strict=True)
    )
    return [age for age in ages if age is not None]


def rows_of(folder: Path, columns: Sequence[str], *, placed: Any, most: int | None = None) -> pa.Table:
    """Rows of a set, all or so many: keys, time, and where their events stand when they are events."""
    import pyarrow.dataset as ds

    data = folder / DATA
    if (data / "_delta_log").is_dir():
        from deltalake import DeltaTable

        source = ds.dataset(DeltaTable(str(data)).file_uris(), format="parquet")
    else:
        source = ds.dataset(str(data), format="parquet")
    wanted = [name for name in (*columns, *(PLACE if placed else ())) if name in source.schema.names]
    rows = source.to_table(columns=wanted)
    return rows if most is None else rows.take(list(range(0, rows.num_rows, max(1, rows.num_rows // most))))


def moments_of(rows: pa.Table, time: str) -> list[Moment]:
    """The moment of each row, with its event if it has one."""
    import pyarrow as pa

    def micros(name: str) -> list[int]:
        return list(rows.column(name).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist())

    if not set(PLACE) <= set(rows.column_names):
        return [(t,) for t in micros(time)]
    places = zip(micros(PLACE[0]), *(rows.column(name).to_pylist() for name in PLACE[1:]), strict=True)
    return [(arrived, partition, offset + 1) for arrived, partition, offset in places]


def _happened(past: PastEvents, key: Key, moment: Moment) -> Age | None:
    """The age by event time alone; when it arrived plays no part."""
    times = [event.event_time for event in past.held.get(key, ())]
    count = bisect_left(times, moment[0])
    if not count:
        return None
    age = moment[0] - times[count - 1]
    return Age(moment[0], age, age)
