"""`headrace status`: what runs, what it has read, and how far behind it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, line, table
from headrace.clock import micros
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.status.records import ArchiveProgress, SkewStatus, TileSetStatus
    from headrace.status.serving import ViewStatus
    from headrace.status.streams import StreamStatus
    from headrace.supervisor.status_report import ProcessReport, ProjectReport

NOT_READY = 1
MINUTE = 60


@click.command("status")
@options.project_options
@options.as_json
def command(path: Path | None, env: str | None, as_json: bool) -> int:
    """Show what runs, what it reads, and how far behind it is.

    The exit code is 0 when everything is ready and 1 when it is not.
    """
    from headrace import project
    from headrace.clock import SystemClock
    from headrace.config import config
    from headrace.processes import state_folder
    from headrace.supervisor.status_report import report
    from headrace.topics import open_log

    loaded, now = config.load(path, env=env), SystemClock().now()
    with open_log(loaded) as log:
        found = report(loaded, state_folder.find_state_folder(loaded), log, now, lambda: project.load(path, env).plan())
    if as_json:
        data_json(found)
    else:
        show(found, now)
    return 0 if found.state == "ready" else NOT_READY


def show(found: ProjectReport, now: int) -> None:
    """Print a report as people read it."""
    since = "" if found.since is None else f" for {_ago(now - micros(found.since))}"
    data(f"{found.project}: {found.state}{since}{' at ' + found.url if found.url else ''}")
    if found.processes:
        _show_processes(found.processes, now)
    if found.definitions.says:
        data(f"\n{found.definitions.says}")
    for name, stream in found.streams.items():
        data(f"\nstream {name}: {_counts(stream)}")
    for name, kept in found.lake.items():
        data(f"lake {name}: {_archive_report(kept)}")
    for name, tiles in found.tile_sets.items():
        data(f"tiles {name}: {_tiles(tiles)}")
    for name, view in found.views.items():
        data(f"view {name}: {_view(view)}")
    if found.skew.compared:
        data(f"skew: {_skew(found.skew)}")
    for alarm in found.alarms:
        line(f"alarm for {_ago(now - micros(alarm.since))}: {alarm.says}")
    ages = found.told_seconds_ago
    if found.state != "ready" and ages:
        data(f"\nThe pipeline last spoke {_ago(int(ages.get('pipeline', 0) * 1_000_000))} ago.")


def _show_processes(processes: dict[str, ProcessReport], now: int) -> None:
    rows = [
        (name, _text(each.state), _text(each.pid), _text(each.port), _text(each.restarts), _exit(each, now))
        for name, each in processes.items()
    ]
    rows += [
        (f"{name}: {part}", each.state, "", "", f"{each.restarts}", each.error)
        for name, process in processes.items()
        for part, each in (process.components or {}).items()
    ]
    data("")
    table(("process", "state", "pid", "port", "restarts", "last exit"), rows)


def _counts(stream: StreamStatus) -> str:
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in stream.verdicts.items() if count)
    lag = f"{show_count(stream.lag_events, 'event')} and {stream.lag_seconds:.1f} s behind"
    return f"{stream.read:,} read ({verdicts or 'none'}), {stream.rate_per_s:,.1f}/s, {lag}"


def _archive_report(kept: ArchiveProgress) -> str:
    """What the archive has put into the lake; its counts are exact."""
    known = (("duplicate", "duplicates"), ("late", "late"))
    parts = [f"{kept.verdicts[verdict]:,} {name}" for verdict, name in known if kept.verdicts.get(verdict)]
    parts += [f"{count:,} {word}" for count, word in ((kept.conflict, "contradicting"), (kept.lost, "LOST")) if count]
    listed = f" ({', '.join(parts)})" if parts else ""
    return f"{show_count(kept.archived, 'record')}{listed}, {kept.lag_events:,} not yet"


def _skew(skew: SkewStatus) -> str:
    """What the audit has found."""
    causes = ", ".join(f"{count:,} {cause}" for cause, count in (skew.causes or {}).items() if count)
    compared, differ = show_count(skew.compared or 0, "value"), show_count(skew.mismatched or 0, "differs", "differ")
    return f"{compared} compared with the lake, {differ}{causes and f': {causes}'}"


def _tiles(tiles: TileSetStatus) -> str:
    known = (
        (tiles.batch, "batch {}"),
        (tiles.batch_ms, "{:,} ms"),
        (tiles.state_rows, "{:,} rows of state"),
        (tiles.dropped_by_watermark, "{:,} dropped by the watermark"),
    )
    return ", ".join(text.format(value) for value, text in known if isinstance(value, int))


def _view(view: ViewStatus) -> str:
    if view.freshness_ms is None:
        return "nothing yet"
    seconds = view.freshness_ms / 1_000
    return f"{seconds:.1f} s old" if seconds < MINUTE else f"{_ago(int(seconds * 1_000_000))} old"


def _ago(micros: int) -> str:
    """A length of time to its two largest units.

    >>> _ago(3_723_000_000)
    '1h2m'
    """
    from headrace import clock

    size = clock.SECOND if micros < clock.HOUR else clock.MINUTE
    return clock.show_duration(max(0, micros) // size * size)


def _exit(each: ProcessReport, now: int) -> str:
    """How and when a process last exited, whether or not it was started again."""
    return "-" if each.exited_at is None else f"{each.exit_reason}, {_ago(now - micros(each.exited_at))} ago"


def _text(value: str | int | None) -> str:
    return "-" if value is None else f"{value}"
