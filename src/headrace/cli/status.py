"""`headrace status`: what runs, what it has read, and how far behind it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, line, table
from headrace.clock import micros
from headrace.plural import show_count

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
        found = report(loaded, state_folder.place(loaded), log, now, lambda: project.load(path, env).plan())
    if as_json:
        data_json(found)
    else:
        show(found, now)
    return 0 if found["state"] == "ready" else NOT_READY


def show(found: dict[str, Any], now: int) -> None:
    """Print a report as people read it."""
    since = "" if found["since"] is None else f" for {_ago(now - micros(found['since']))}"
    data(f"{found['project']}: {found['state']}{since}{' at ' + found['url'] if found['url'] else ''}")
    if found["processes"]:
        data("")
        rows = [
            (name, each["state"], *(_text(each[column]) for column in ("pid", "port", "restarts")), _exit(each, now))
            for name, each in found["processes"].items()
        ]
        rows += [
            (f"{name}: {part}", each["state"], "", "", f"{each['restarts']}", each["error"])
            for name, process in found["processes"].items()
            for part, each in (process["components"] or {}).items()
        ]
        table(("process", "state", "pid", "port", "restarts", "last exit"), rows)
    if found["definitions"]["says"]:
        data(f"\n{found['definitions']['says']}")
    for name, stream in found["streams"].items():
        data(f"\nstream {name}: {_counts(stream)}")
    for name, kept in found["lake"].items():
        data(f"lake {name}: {_kept(kept)}")
    for name, tiles in found["tile_sets"].items():
        data(f"tiles {name}: {_tiles(tiles)}")
    for name, view in found["views"].items():
        data(f"view {name}: {_view(view)}")
    if found["skew"].get("compared"):
        data(f"skew: {_skew(found['skew'])}")
    for alarm in found["alarms"]:
        line(f"alarm for {_ago(now - micros(alarm['since']))}: {alarm['says']}")
    told = found["told_seconds_ago"]
    if found["state"] != "ready" and told:
        data(f"\nThe pipeline last spoke {_ago(int(told.get('pipeline', 0) * 1_000_000))} ago.")


def _counts(stream: dict[str, Any]) -> str:
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in stream.get("verdicts", {}).items() if count)
    lag = f"{show_count(stream.get('lag_events', 0), 'event')} and {stream.get('lag_seconds', 0):.1f} s behind"
    rate = f"{stream.get('rate_per_s', 0):,.1f}/s"
    return f"{stream.get('read', 0):,} read ({verdicts or 'none'}), {rate}, {lag}"


def _kept(kept: dict[str, Any]) -> str:
    """What the archive has put into the lake; its counts are exact."""
    known = (("duplicate", "duplicates"), ("late", "late"))
    parts = [f"{kept['verdicts'][verdict]:,} {name}" for verdict, name in known if kept["verdicts"].get(verdict)]
    wrong = (("conflict", "contradicting"), ("lost", "LOST"))
    parts += [f"{kept[name]:,} {word}" for name, word in wrong if kept[name]]
    listed = f" ({', '.join(parts)})" if parts else ""
    return f"{show_count(kept['archived'], 'record')}{listed}, {kept['lag_events']:,} not yet"


def _skew(skew: dict[str, Any]) -> str:
    """What the audit has found."""
    causes = ", ".join(f"{count:,} {cause}" for cause, count in skew["causes"].items() if count)
    compared, differ = show_count(skew["compared"], "value"), show_count(skew["mismatched"], "differs", "differ")
    return f"{compared} compared with the lake, {differ}{causes and f': {causes}'}"


def _tiles(tiles: dict[str, Any]) -> str:
    known = (
        ("batch", "batch {}"),
        ("batch_ms", "{:,} ms"),
        ("state_rows", "{:,} rows of state"),
        ("dropped_by_watermark", "{:,} dropped by the watermark"),
    )
    return ", ".join(text.format(tiles[name]) for name, text in known if tiles.get(name) is not None) or "no batch yet"


def _view(view: Any) -> str:
    if isinstance(view, dict) and view.get("freshness_ms") is not None:
        seconds = view["freshness_ms"] / 1_000
        return f"{seconds:.1f} s old" if seconds < MINUTE else f"{_ago(int(seconds * 1_000_000))} old"
    return "nothing yet"


def _ago(micros: int) -> str:
    """A length of time to its two largest units.

    >>> _ago(3_723_000_000)
    '1h2m'
    """
    from headrace import clock

    size = clock.SECOND if micros < clock.HOUR else clock.MINUTE
    return clock.show_duration(max(0, micros) // size * size)


def _exit(each: dict[str, Any], now: int) -> str:
    """How and when a process last exited, whether or not it was started again."""
    return "-" if each["exit"] is None else f"{each['exit_reason']}, {_ago(now - micros(each['exited_at']))} ago"


def _text(value: Any) -> str:
    return "-" if value is None else f"{value}"
