"""How fast what was served is compared with the lake, whether it finds nothing where nothing is, and what is injected.

Part 1: payments are imported and backfilled; a quarter of a million reads go through serving's own reader at moments of
their own and are kept as serving keeps them; then the audit runs over all of them, a million values and more. Part 2:
every kind of defect of the tests over many histories. Part 3: a wrong answer among right ones in a project that runs
with the usual settings, until the alarm.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.engine import shop
from bench.harness import Result, measured, run
from headrace.clock import DAY, HOUR, SECOND, SystemClock, show_time
from headrace.codec.json.rules import LATEST
from headrace.config.config import names
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.project import Project
from headrace.read.reader import Reader
from headrace.serve.served_samples import BUFFER, Samples
from headrace.skew.audit import audit
from headrace.spark.pipeline.runs import Runs
from headrace.store import Materialiser, MemoryStore
from headrace.tiles.changelog import ProgressRow
from headrace.topics import RUNS, open_log
from headrace_demo import stack

CARDS, EVENTS, READS = 50_000, 300_000, 250_000
SEEDS = 20
VIEW = "card_activity"


def verb(made: Project, *arguments: str) -> None:
    """A verb in a process of its own."""
    command = [sys.executable, "-P", "-m", "headrace.cli.main", *arguments, "--project", str(made.config.root)]
    subprocess.run(command, check=True, capture_output=True)


def write_history(file: Path, count: int, cards: int, now: int) -> None:
    """Payments of the last three days, one in a hundred an hour late."""
    chance = random.Random(7)
    with file.open("w") as out:
        for number in range(count):
            at = now - 3 * DAY + number * (3 * DAY - 2 * HOUR) // count
            arrived = at + (HOUR if number % 100 == 0 else chance.randrange(3 * SECOND))
            told = {
                "id": f"p{number}",
                "card": f"card-{chance.randrange(cards)}",
                "amount": chance.randrange(1, 90_000) / 100,
            }
            told |= {"country": chance.choice(["DE", "FR", "PL"]), "at": show_time(at), "received": show_time(arrived)}
            out.write(json.dumps(told) + "\n")


def serve(made: Project, log: Log, reads: int, cards: int) -> None:
    """Reads of cards at moments of their own through the reader, kept as serving keeps them."""
    plan, named = made.plan(), names(made.config)
    (tile_set,) = plan.tile_sets
    runs = Runs(log, named.topic(RUNS))
    runs.look()
    run_name = list(runs.of(tile_set))[-1]
    store = MemoryStore()
    reader = Reader(plan, store, {tile_set.id: run_name})
    filler = Materialiser(log, store, [named.topic(f"changelog.{tile_set.id}")])
    while filler.step():
        pass
    # Everything is there: the history was imported, and a backfill has taken all of it in.
    said = ProgressRow(tile_set.fingerprint, run_name, {0: 0}, SystemClock().now())
    store.apply([said], "said", {0: 1})
    samples, chance, view = Samples(plan, log, named, 1.0), random.Random(3), made.views[0]
    for first in range(0, reads, BUFFER):
        for _ in range(min(BUFFER, reads - first)):
            t = SystemClock().now() + chance.randrange(30 * SECOND)
            samples.offer(view, reader.read(VIEW, (f"card-{chance.randrange(cards)}",), t), said)
        samples.step()


def compare(quick: bool) -> Sequence[Result]:
    """Values compared in a second, and defects among all of them."""
    share, again = (20, 1) if quick else (1, 3)
    with shop() as made:
        write_history(made.config.root / "history.jsonl", EVENTS // share, CARDS // share, SystemClock().now())
        verb(
            made, "import", str(made.config.root / "history.jsonl"), "--stream", "payments", "--arrived-at", "received"
        )
        verb(made, "backfill")
        with open_log(made.config) as log:
            serve(made, log, READS // share, CARDS // share)
            rates = []
            for _ in range(again):
                began = time.perf_counter()
                found = audit(made.plan(), made.config, log, 0, LATEST).counts.total
                rates.append(found.compared / (time.perf_counter() - began))
    return [
        measured("compared_per_s", rates, "higher", 20_000.0),
        Result("compared", found.compared, "higher", None if quick else 1_000_000.0),
        Result("defects_in_1m", found.causes["defect"], "lower", 0.0),
        Result("mismatched_in_1m", found.mismatched, "lower"),
    ]


def injected(quick: bool) -> Sequence[Result]:
    """The share of injected defects that are found under their name."""
    from tests.skew.injected import INJECTED
    from tests.skew.world import World, history

    seeds = range(2 if quick else SEEDS)
    found = [
        (wrong := world.wrong(inject(world))) is not None and wrong.evidence is not None and wrong.evidence.kind == kind
        for kind, inject in INJECTED.items()
        for world in (World(history(seed=seed)) for seed in seeds)
    ]
    return [
        Result("injected", len(found), "higher"),
        Result("injected_caught_share", sum(found) / len(found), "higher", 1.0),
    ]


def alarm(_: bool) -> Sequence[Result]:
    """Seconds from a wrong answer to the alarm, with the usual settings."""
    with (
        shop("\n[serve]\nsample = 1.0\n") as made,
        stack.started(made, lambda _: None) as url,
        open_log(made.config) as log,
    ):
        now = SystemClock().now()
        told = {"id": "p1", "card": "42", "amount": 10.0, "country": "DE", "at": show_time(now)}
        log.append_batch("payments", [Message(json.dumps(told).encode(), b"42")])
        stack.included(stack.Reader(url), made.views[0], "42", now + SECOND)
        topic = names(made.config).topic(f"served.{VIEW}")
        wrong = _kept(log, topic)
        wrong["features"]["payments_10m"] += 5
        wrong["at"] = show_time(SystemClock().now())
        began = time.perf_counter()
        log.append_batch(topic, [Message(json.dumps(wrong).encode(), b"42")])
        while not any(each["kind"] == "skew" for each in _status(url)["alarms"]):
            if time.perf_counter() - began > 300:
                raise RuntimeError("no alarm was raised")
            time.sleep(0.5)
    return [Result("time_to_alarm_s", time.perf_counter() - began, "lower")]


def _kept(log: Log, topic: str) -> dict[str, Any]:
    """A sample that says what was in it, once there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for record in reversed(log.read(topic, 0, 0, limit=100_000)):
            told: dict[str, Any] = json.loads(record.value or b"{}")
            if told.get("as_of"):
                return told
        time.sleep(0.1)
    raise RuntimeError("no read was kept")


def _status(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/status.json", timeout=10) as answer:
        return dict(msgspec.json.decode(answer.read()))


if __name__ == "__main__":
    sys.exit(run("skew", compare, injected, alarm))
