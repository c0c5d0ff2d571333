"""`headrace up`: start the project's processes and keep them running, or leave that to a process of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import talk
from headrace.config.config import SETTINGS
from headrace.config.settings import MODES
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.log.protocol import Log
    from headrace.status.streams import StreamStatus
    from headrace.supervisor.supervisor import Supervisor

INTERRUPTED = 130
LIVE_SECONDS = 1.0


@click.command("up")
@options.project_options
@click.option("--detach", is_flag=True, help="Return as soon as everything is ready; `headrace down` ends it.")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="N", help="Serve on this port; 0 takes a free one.")
@click.option("--mode", type=click.Choice(MODES), help="How the pipeline runs, in place of pipeline.mode.")
@click.option("--kafka", is_flag=True, help="Let Kafka be the log, in place of log.kind.")
@click.option("--redis", is_flag=True, help="Keep the store in Redis, in place of store.kind.")
def command(
    path: Path | None, env: str | None, detach: bool, port: int | None, mode: str | None, kafka: bool, redis: bool
) -> int:
    """Start the project's processes and keep them running.

    Where the settings ask for Kafka and name no brokers, the project's own broker is started first; so is a Redis,
    unless one answers at the usual address. They go on when everything else ends: see `headrace down --all`.

    Topics are created, then the Spark pipeline and serving are started; what exits is started again, after 1 s, 2 s,
    4 s and so on to 30 s, and given up after five exits within two minutes. Exits while the disk is full do not
    count: such a process is started when there is space. What each process says is in the project's data folder
    under logs/.

    Ctrl-C or SIGTERM ends everything within ten seconds; the exit code is 130 after Ctrl-C and 0 after SIGTERM.
    """
    from headrace import project
    from headrace.config.config import names
    from headrace.plan.capability import refuse_impossible_mode
    from headrace.processes import state_folder
    from headrace.supervisor import stack
    from headrace.supervisor import up as running
    from headrace.topics import STATUS

    for_once = {"pipeline.mode": mode, "log.kind": "kafka" if kafka else None, "store.kind": "redis" if redis else None}
    # As variables, so that every process that is started says the same.
    os.environ.update({SETTINGS[name].variable: value for name, value in for_once.items() if value is not None})
    loaded = project.load(path, env)
    refuse_impossible_mode(loaded.config)
    if detach:
        chosen = [] if port is None else ["--port", str(port)]
        again = stack.command("up", *chosen, path=path or loaded.config.root, env=loaded.config.env)
        return running.detach(again, state_folder.find_state_folder(loaded.config), talk)
    if sys.stderr.isatty():
        talk("Ctrl-C stops everything.")
    screen = Screen(names(loaded.config).topic(STATUS))
    interrupted = running.up(loaded, path=path, port=port, say=screen.say, watch=screen.watch)
    return INTERRUPTED if interrupted else 0


class Screen:
    """Lines that stay and, on a terminal, one below them that shows how it goes.

    `topic` is where the components say how they are doing.
    """

    def __init__(self, topic: str) -> None:
        self._live, self._topic = sys.stderr.isatty(), topic
        self._drawn, self._next = False, 0.0

    def say(self, line: str) -> None:
        """Write a line that stays."""
        self._clear()
        talk(line)

    def watch(self, supervisor: Supervisor, log: Log) -> None:
        """Draw the live line again, about once a second."""
        from headrace.status.records import ArchiveStatus, PipelineStatus
        from headrace.status.streams import merge_streams
        from headrace.status.topic import read_status

        with contextlib.suppress(OSError):
            # What could not be written while the disk was full.
            sys.stderr.flush()
        if not self._live or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LIVE_SECONDS
        self._clear()
        streams: Mapping[str, StreamStatus] = {}
        # A log that does not answer is no reason to end everything: it may be on its way back.
        with contextlib.suppress(HeadraceError):
            records = read_status(log, self._topic, PipelineStatus, ArchiveStatus)
            streams = merge_streams(records.get(PipelineStatus), records.get(ArchiveStatus))
        width = shutil.get_terminal_size().columns - 1
        click.echo(live_line(supervisor.status(), streams)[:width], err=True, nl=False)
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[2K", err=True, nl=False)
        self._drawn = False


def live_line(status: Mapping[str, Any], streams: Mapping[str, StreamStatus]) -> str:
    """The state of everything in one line.

    >>> processes = {"serve": {"state": "ready", "url": "http://127.0.0.1:8787"}}
    >>> from headrace.status.records import ArchiveProgress, ArchiveStatus, PipelineStatus, StreamProgress
    >>> from headrace.status.streams import merge_streams
    >>> tiles, archived = StreamProgress(rate_per_s=5.0), ArchiveProgress(archived=1234)
    >>> streams = merge_streams(PipelineStatus(streams={"clicks": tiles}), ArchiveStatus(streams={"clicks": archived}))
    >>> live_line({"state": "ready", "processes": processes}, streams)
    'ready | serve ready http://127.0.0.1:8787 | clicks 1,234 read, 5/s, 0.0 s behind'
    """
    parts = [str(status["state"])]
    for name, process in status["processes"].items():
        parts.append(" ".join(filter(None, (name, process["state"], process.get("url")))))
    for name, found in streams.items():
        parts.append(f"{name} {found.read:,} read, {found.rate_per_s:,.0f}/s, {found.lag_seconds:.1f} s behind")
    return " | ".join(parts)
