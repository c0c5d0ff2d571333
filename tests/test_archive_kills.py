"""The archive is killed again and again while records flow; a checker that knows nothing of Headrace looks afterwards.

The kills come at random: while it starts, while a batch is put down, while files are written, between the two commits.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.config.config import names
from headrace.topics import create as create_topics
from headrace.topics import open_log, topics
from tests.flow import flow, message

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.xdist_group("live")]

RECORDS, CHUNK, PARTITIONS, KILLS = 200_000, 2_000, 3, 20
SHARE, PAUSE = RECORDS // KILLS, 0.5
SETTINGS = """
[log]
partitions = 3

[archive]
every = "100ms"
most = 4000
"""
PATIENCE = 180.0


class Sender(threading.Thread):
    """Sends the flow while the archive lives and dies, a share for each life; what was sent is also in a file."""

    def __init__(self, config, file: Path) -> None:
        super().__init__(daemon=True)
        self.config, self.file = config, file
        self.lives = threading.Semaphore(0)

    def run(self) -> None:
        with open_log(self.config) as log, self.file.open("w", encoding="utf-8") as sent:
            for at in range(0, RECORDS, CHUNK):
                if at % SHARE == 0:
                    self.lives.acquire()
                made = list(flow(CHUNK, seed=at, partitions=PARTITIONS, now=datetime.now(UTC), first=at))
                for partition in range(PARTITIONS):
                    mine = [message(record) for record in made if record["partition"] == partition]
                    log.append_batch("payments", mine, partition=partition)
                sent.writelines(json.dumps(record) + "\n" for record in made)
                time.sleep(PAUSE)


def start(folder: Path, log: Path, **settings: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        command = [sys.executable, "-P", "-m", "headrace.cli.main", "run", "archive", "--project", str(folder)]
        environ = {**os.environ, **settings}
        return subprocess.Popen(command, stdout=output, stderr=output, env=environ, start_new_session=True)


def names_of(folder: Path, pattern: str) -> set[str]:
    return {path.name for path in folder.glob(pattern)}


POINTS = {
    "staging": "staging/*/*.arrow",
    "files": "bronze/day=*/*.parquet",
    "bronze": "bronze/_delta_log/*.json",
    "silver": "silver/_delta_log/*.json",
}


def reach(process: subprocess.Popen[bytes], lake: Path, point: str, chance: random.Random) -> bool:
    """Wait for the point at which to kill; false when the process ended by itself."""
    if point == "any":
        return not _ended(process, chance.uniform(0.5, 9.0))
    before, deadline = names_of(lake, POINTS[point]), time.monotonic() + PATIENCE
    while names_of(lake, POINTS[point]) <= before:
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return not _ended(process, chance.choice([0.0, 0.01, 0.1, 0.5]))


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_twenty_kills_at_random_points_lose_nothing_and_double_nothing(tmp_path, seed):
    folder, output = tmp_path / "shop", tmp_path / "archive.log"
    create(folder)
    with (folder / "headrace.toml").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    shop = project.load(folder)
    lake = names(shop.config).path("lake", "payments")
    with open_log(shop.config) as log:
        create_topics(log, topics(shop.plan(), names(shop.config), PARTITIONS))
    sender = Sender(shop.config, tmp_path / "sent.jsonl")
    sender.start()

    chance = random.Random(seed)
    points = [*POINTS, *POINTS, *["any"] * (KILLS - 2 * len(POINTS))]
    chance.shuffle(points)
    for point in points:
        sender.lives.release()
        process = start(folder, output)
        alive = reach(process, lake, point, chance)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert alive, f"the archive ended by itself with {process.returncode}: {output.read_text()[-3000:]}"

    sender.join(PATIENCE)
    assert not sender.is_alive()
    last = start(folder, output, HEADRACE_ARCHIVE_MOST="50000")
    try:
        with open_log(shop.config) as log:
            ends = log.end_offsets("payments")
        deadline = time.monotonic() + PATIENCE
        while archived(lake) < sum(ends.values()):
            assert last.poll() is None, output.read_text()[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        last.send_signal(signal.SIGTERM)
        last.wait(60)

    (stream,) = (stage.stream for stage in shop.plan().admissions)
    rules = [str(stream.allowed_lateness), str(stream.max_clock_skew)]
    checker = [sys.executable, str(Path(__file__).parent / "lake_checker.py"), str(tmp_path / "sent.jsonl"), str(lake)]
    told = subprocess.run([*checker, *rules], capture_output=True, text=True, check=True)
    found = json.loads(told.stdout)
    assert not any(found["findings"].values()), (found, points)
    assert sum(found["verdicts"].values()) == RECORDS
    assert len(found["verdicts"]) == 6, "the flow must have records of every verdict"


def archived(lake: Path) -> int:
    from deltalake import DeltaTable

    tables = [DeltaTable(str(lake / name)) for name in ("bronze", "silver")]
    counts = [
        sum(table.transaction_version(f"headrace.offset.{p}") or 0 for p in range(PARTITIONS)) for table in tables
    ]
    return min(counts)
