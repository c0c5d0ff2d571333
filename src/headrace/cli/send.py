"""`headrace send`: rows of a file or pipe into a stream. It writes to the log itself, whether or not anything runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data_json, talk
from headrace.cli.progress_bar import bar
from headrace.errors import UsageError
from headrace.plural import show_count

RATES = (0.001, 1_000_000)
"""The least and the most events in a second."""

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.ingest.files.source import Source
    from headrace.ingest.send.delivery import SendProgress


@click.command("send")
@click.argument("stream", metavar="STREAM")
@click.argument("file", metavar="FILE")
@options.project_options
@click.option("--format", type=click.Choice(["jsonl", "csv", "parquet"]), help="Otherwise the file's ending says.")
@click.option("--rate", type=options.FiniteRange(*RATES), metavar="N", help="Events in a second, evenly spaced.")
@click.option(
    "--batch-ms",
    type=click.IntRange(0, 60_000),
    default=100,
    metavar="N",
    help="Milliseconds that lines from a pipe may wait to be sent together; 100 when left out.",
)
@click.option("--rebase", is_flag=True, help="Shift event times so that the last is now; with --rate each is now.")
@click.option("--keep-going", is_flag=True, help="Leave out rows that do not fit instead of stopping at the first.")
@click.option("--raw", is_flag=True, help="Send lines as they are, unchecked: for poison on purpose.")
@options.as_json
def command(stream: str, file: str, path: Path | None, env: str | None, as_json: bool, **wishes: Any) -> None:
    """Send the rows of a file to a stream.

    FILE holds JSON lines, CSV with a header, or Parquet; - reads stdin, as JSON lines unless --format says otherwise.
    Every row is checked against the stream's fields before it is sent. What comes through a pipe is sent as it comes,
    unless it is Parquet, or is dated anew without a rate. The exit code is 0 when every row was sent or, with
    --keep-going, left out. Ctrl-C sends the whole lines that have come and says how many events were sent.
    """
    from headrace import project
    from headrace.codec.registry.ids import registry_of
    from headrace.config.config import names
    from headrace.define.stream import find_stream
    from headrace.ingest.send.delivery import SendOptions, SendRate, send
    from headrace.ingest.send.interruption import Interruption
    from headrace.ingest.send.pipe import open_source
    from headrace.topics import create, open_log, topics

    loaded = project.load(path, env)
    declared = find_stream(loaded.streams, stream).base
    format, linger = wishes.pop("format"), wishes.pop("batch_ms") / 1_000
    wish = SendOptions(**wishes, linger=linger, ids=registry_of(loaded.config, loaded.streams))
    interruption = Interruption()
    # The shift to now is known only when the last row is.
    as_it_comes = None if wish.rebase and not wish.rate else interruption
    given = open_source(file, format, interruption=as_it_comes, report=partial(report_column, declared))
    if wish.raw and (given.format != "jsonl" or wish.rebase):
        raise UsageError("bad-usage", "--raw takes lines as they are: JSON lines alone, and without --rebase.")
    topic = names(loaded.config).topic(declared.name)
    pace = SendRate(wish.rate, nap=interruption.wait, is_over=interruption.has_come)
    began = time.monotonic()
    with open_log(loaded.config) as log, progress_of(given) as progress:
        create(log, topics(loaded.plan(), names(loaded.config), loaded.config.log.partitions))
        with interruption:
            done = send(given, declared, log, topic, wish=wish, pace=pace, progress=progress)
    report_send(done, declared, topic, time.monotonic() - began, as_json=as_json)
    if interruption.has_come():
        raise click.Abort


def report_send(done: SendProgress, stream: Stream, topic: str, seconds: float, *, as_json: bool) -> None:
    """Say what was done."""
    for fault in done.faults:
        talk(f"left out: {fault.place}: {fault.reason} (got {fault.got})")
    if done.refused > len(done.faults):
        talk(f"left out: {done.refused - len(done.faults):,} more")
    rate = done.sent / seconds if seconds > 0 else 0.0
    refused = f", {done.refused:,} left out" if done.refused else ""
    talk(f"Sent {show_count(done.sent, 'event')} to {stream.name} in {seconds:.1f} s ({rate:,.0f}/s){refused}.")
    if as_json:
        told = {"stream": stream.name, "topic": topic, "sent": done.sent, "refused": done.refused}
        faults = [fault._asdict() for fault in done.faults]
        data_json(told | {"seconds": round(seconds, 3), "per_second": round(rate, 1), "faults": faults})


def report_column(stream: Stream, name: str) -> None:
    """Say that a column is left out."""
    talk(f"Column {name!r} is no field of {stream.name} and is left out.")


@contextlib.contextmanager
def progress_of(given: Source) -> Iterator[Callable[[int, SendProgress], None]]:
    """How many rows are sent and how fast, with a bar over the file; on a terminal, elsewhere nothing."""
    from headrace.ingest.files.rows import read_extent

    began = time.monotonic()
    with bar("sending", read_extent(given).size) as advance:

        def progress(done: int, sent: SendProgress) -> None:
            rate = sent.sent / max(time.monotonic() - began, 1e-6)
            advance(done, None, f"{show_count(sent.sent, 'row')}, {rate:,.0f}/s")

        yield progress
