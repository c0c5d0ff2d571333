"""How fast the archive takes a backlog into the lake, from each log, and what it holds in memory meanwhile.

The backlog is appended before; the program under test is `headrace run archive` in a process of its own, and what it
has done is read from the lake. The first batches warm it up and are not counted. A broker, when there is one, runs on
the same machine and is not weighed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.harness import Result, run
from bench.weigh import Scales
from headrace import project
from headrace.cli.init import create
from headrace.clock import MINUTE, SystemClock, show_time
from headrace.config.config import names
from headrace.log.record import Message
from headrace.project import Project
from headrace.topics import create as create_topics
from headrace.topics import open_log, topics

CHUNK = 20_000
WARM = 1_000_000
PARTITIONS = 4


def backlog(count: int, now: int) -> Iterator[list[Message]]:
    """Payments with 3 % copies, 1 % late ones and 0.5 % that cannot be read."""
    fresh, late = show_time(now).encode(), show_time(now - 60 * MINUTE).encode()
    row = b'{"id":"p%d","card":"card-%05d","amount":%d.25,"country":"DE","at":"%s"}'
    for first in range(0, count, CHUNK):
        made = []
        for number in range(first, min(first + CHUNK, count)):
            kind, card = number % 200, number * 7919 % 50_000
            identity = number - 101 if kind in (150, 151, 152, 153, 154, 155) else number
            at = late if kind in (160, 161) else fresh
            value = b"{broken" if kind == 170 else row % (identity, card, number % 900, at)
            made.append(Message(value, b"card-%05d" % card))
        yield made


@contextmanager
def shop(settings: str = "") -> Iterator[Project]:
    """A new project with a topic of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "shop"
        create(root)
        with (root / "headrace.toml").open("a", encoding="utf-8") as file:
            file.write(f"\n[log]\npartitions = {PARTITIONS}\n{settings}")
        yield project.load(root)


def fill(made: Project, count: int) -> None:
    """Append a backlog."""
    with closing(open_log(made.config)) as log:
        create_topics(log, topics(made.plan(), names(made.config), PARTITIONS))
        for chunk in backlog(count, SystemClock().now()):
            log.append_batch("payments", chunk)


def done(lake: Path) -> int:
    """Records that are in bronze and in silver's progress."""
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(lake / "silver")):
        return 0
    table = DeltaTable(str(lake / "silver"))
    return sum(table.transaction_version(f"headrace.offset.{p}") or 0 for p in range(PARTITIONS))


def catch_up(made: Project, count: int, warm: int) -> tuple[float, float]:
    """Records per second after the warm-up, and the most MiB held."""
    lake = names(made.config).path("lake", "payments")
    command = [sys.executable, "-P", "-m", "headrace.cli.main", "run", "archive", "--project", str(made.config.root)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began, before = 0.0, 0
    try:
        with Scales(process.pid) as scales:
            while (now := done(lake)) < count:
                if process.poll() is not None:
                    raise RuntimeError(f"the archive ended with {process.returncode}")
                if not began and now >= warm:
                    began, before = time.perf_counter(), now
                time.sleep(0.05)
            took = time.perf_counter() - began
        return (count - before) / took, scales.peak
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def measure(quick: bool) -> list[Result]:
    """A large and a small backlog from the embedded log, and one from Kafka."""
    from headrace.processes import broker, jars

    small, large, warm = (400_000, 1_000_000, 200_000) if quick else (1_500_000, 5_000_000, WARM)
    with shop() as made:
        fill(made, small)
        _, little = catch_up(made, small, warm)
    with shop() as made:
        fill(made, large)
        embedded, much = catch_up(made, large, warm)
    with shop('kind = "kafka"\n') as made:
        folder = names(made.config).path("kafka")
        jars.fetch(jars.BROKER)
        jars.fetch(jars.CONNECTOR)
        broker.up(folder)
        try:
            fill(made, large)
            kafka, _ = catch_up(made, large, warm)
        finally:
            broker.down(folder)
    return [
        Result("embedded.catchup_per_s", embedded, "higher", 60_000.0),
        Result("kafka.catchup_per_s", kafka, "higher", 60_000.0),
        Result("peak_rss_mb", much, "lower"),
        Result("peak_rss_large_over_small_backlog", much / little, "lower", 1.2),
    ]


if __name__ == "__main__":
    sys.exit(run("archive", measure))
