"""The embedded stack under a steady load: memory and open files stop growing after the warm-up, and counts add up.

Events come late, ahead, doubled and broken, at the same rate all the time, and features are read meanwhile. It takes
three minutes; `SOAK_MINUTES=60 make prove` makes it an hour.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.clock import SystemClock, micros
from headrace.log.record import Message
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.meaning.verdict_names import VERDICTS
from headrace.processes import process_identity, state_folder
from headrace.topics import open_log
from headrace_demo import stack
from tests.flow import flow, message
from tests.test_end_to_end import headrace, served, settled, until

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.xdist_group("live")]

MINUTES = float(os.environ.get("SOAK_MINUTES", "3"))
WARM_UP = 60.0
"""Seconds in which every process starts, compiles and fills its caches."""
PER_SECOND, COPIES, READS = 200, 5, 5
"""Events in a second; copies among them of events of any age; reads beside them."""
EVERY = 2.0
"""Seconds between two looks at the processes."""
GROWTH = {"python": 48 * 2**20, "java": 384 * 2**20, "files": 40}
"""How much more of each there may be in the last third than in the first: bytes of memory, and open files.

Java gets most because its heap takes a quarter of an hour to find its size, which is bounded.
"""
SETTINGS = """
[log]
partitions = 1
"""


@dataclass(frozen=True)
class Usage:
    """What all processes of a project use at a moment: bytes of memory of Python and of Java, and open files."""

    python: int
    java: int
    files: int


def read_usage(where: state_folder.StateFolder) -> Usage:
    """Add up what the processes use that the supervisor started, however far down."""
    memory, files = {"python": 0, "java": 0}, 0
    for identity in process_identity.marked(state_folder.MARK, where.mark):
        folder = Path("/proc") / str(identity.pid)
        try:
            lines = (folder / "smaps_rollup").read_text().splitlines()
            files += len(os.listdir(folder / "fd"))
        except OSError:  # it has just ended
            continue
        # Pages of files are left out: the system takes them back when it wants to.
        kilobytes = sum(int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
        program = identity.command.split()[0].rpartition("/")[2]
        memory["java" if program == "java" else "python"] += kilobytes * 1024
    return Usage(memory["python"], memory["java"], files)


class Producer:
    """Appends events at a steady rate, some of them copies of events of any age."""

    def __init__(self, log, seed: int) -> None:
        self._log, self._seed, self._chance = log, seed, random.Random(seed)
        self._seconds, self._earlier = 0, list[Message]()
        self.sent = 0

    def send_second(self) -> None:
        """Append the events of the next second."""
        self._seconds += 1
        first = self._seconds * PER_SECOND
        made = flow(PER_SECOND, seed=self._seed + self._seconds, partitions=1, now=datetime.now(UTC), first=first)
        fresh = [message(record) for record in made]
        copies = self._chance.sample(self._earlier, min(COPIES, len(self._earlier)))
        self._log.append_batch("payments", [*fresh, *copies])
        self._earlier += fresh[:COPIES]
        self.sent += len(fresh) + len(copies)


def test_memory_and_open_files_stop_growing_under_a_steady_load_and_the_counts_add_up(tmp_path, seed):
    folder, chance = tmp_path / "shop", random.Random(seed)
    create(folder)
    with (folder / "headrace.toml").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    shop = project.load(folder)
    (view,), where = shop.views, state_folder.find_state_folder(shop.config)
    headrace(folder, "up", "--detach", "--port", "0")
    try:
        with open_log(shop.config) as log, closing(stack.Reader(served(shop.config))) as reader:
            producer = Producer(log, seed)
            usages = list(soak(producer, reader, view, where, chance))
            third = len(usages) // 3
            for name, most in GROWTH.items():
                first, last = (
                    median(getattr(usage, name) for usage in part) for part in (usages[:third], usages[-third:])
                )
                assert last - first <= most, f"{name} grew from {first:,.0f} to {last:,.0f}"

            stack.included(reader, view, "card-0", SystemClock().now())
            told = until(lambda: settled(reader), "the counts did not settle")
            outcome = ReferenceResult(shop.plan(), stack.everything(log, "payments", "payments"))
            judged = Counter(each.verdict for each in outcome.judged["payments"])
            assert told["read"] == judged.total() == producer.sent
            assert told["verdicts"] == {verdict: judged[verdict] for verdict in VERDICTS}
            assert min(told["verdicts"].values()) > 0, "the flow must have records of every verdict"
            for key in chance.sample(sorted(outcome.keys(view)), 50):
                answer = reader.features(view, key)
                assert differences(outcome, view, key, (micros(answer["at"]),), answer["features"]) == []
        processes = (state_folder.read_status(where) or {})["processes"]
        assert {name: each["restarts"] for name, each in processes.items()} == dict.fromkeys(processes, 0)
        components = processes["spark"]["components"]
        assert {name: each["restarts"] for name, each in components.items()} == dict.fromkeys(components, 0)
    finally:
        headrace(folder, "down")


def soak(producer, reader, view, where, chance):
    """Send and read for the whole time; gives what the processes use, from the end of the warm-up on."""
    begin = time.monotonic()
    next_second = next_look = 0.0
    while (passed := time.monotonic() - begin) < 60 * MINUTES:
        if passed >= next_second:
            next_second += 1.0
            producer.send_second()
            for _ in range(READS):
                assert "features" in reader.features(view, f"card-{chance.randrange(300)}")
        if passed >= max(WARM_UP, next_look):
            next_look = passed + EVERY
            yield read_usage(where)
        time.sleep(0.05)
