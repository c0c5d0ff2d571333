"""What the demo shows while payments come: a picture that moves on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.cli.output import talk

if TYPE_CHECKING:
    from headrace_demo.traffic import Alarm, Seen

EVERY, REDRAWN = 5.0, 0.25
"""Seconds between two lines, and between two pictures."""
LATEST = 1_000
"""From how many of the newest scores the latency is taken."""

Show = Callable[["Seen"], None]


@contextlib.contextmanager
def screen() -> Iterator[Show]:
    """Something to show how live traffic stands, as often as one likes."""
    if not sys.stderr.isatty():
        yield _at_most_every(EVERY, lambda seen: talk(line(seen)))
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield _at_most_every(REDRAWN, lambda seen: live.update(picture(seen), refresh=True))


def _at_most_every(seconds: float, show: Show) -> Show:
    shown_at = [time.monotonic()]

    def now_and_then(seen: Seen) -> None:
        if time.monotonic() - shown_at[0] >= seconds:
            shown_at[0] = time.monotonic()
            show(seen)

    return now_and_then


def line(seen: Seen) -> str:
    """How it stands, in a line."""
    return (
        f"{seen.done:>7,} sent {len(seen.scored):>7,} scored {seen.alarms:>5,} alarms, "
        f"{seen.caught:,} of {seen.frauds:,} frauds among them{_latency(seen)}"
    )


def _latency(seen: Seen) -> str:
    newest = sorted(each.latency_ms for each in list(seen.scored.values())[-LATEST:])
    return f"; scored {newest[len(newest) // 2]:.0f} ms after arrival" if newest else ""


def picture(seen: Seen) -> Any:
    """How it stands, with the newest alarms."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    alarms = Table("card", "amount", "where", "score", "in 10 min", "km/h", "in truth", box=None, pad_edge=False)
    for alarm in reversed(seen.newest):
        alarms.add_row(*_row(alarm))
    return Group(line(seen), ProgressBar(total=len(seen.sent), completed=seen.done, width=60), "", alarms)


def _row(alarm: Alarm) -> list[str]:
    event, features = alarm.sent.event, alarm.scored.features
    speed = features["km_per_hour"]
    return [
        event["card"],
        f"{event['amount']:,.2f}",
        event["country"],
        f"{alarm.scored.score:.2f}",
        str(features["payments_10m"]),
        "-" if speed is None else f"{speed:,.0f}",
        alarm.sent.story if alarm.sent.is_fraud else "honest",
    ]
