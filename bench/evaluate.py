"""How fast predictions are joined with their labels and whether a long horizon costs memory.

Part 1: thirty simulated days with a horizon of thirty days. Every day predictions are made, labels of earlier days
come, both are archived, and a look is taken; in the end everything is looked at once more from the beginning. Part 2:
the drift bench (`bench.drift`), streams with known changes and streams without, beside raw detectors at their defaults.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sklearn.metrics import roc_auc_score

import headrace as hr
from bench.harness import Result, measured, run
from bench.realtime.compare import SPAWN, spawned
from headrace import project
from headrace.cli.init import create
from headrace.clock import DAY, HOUR, SECOND, show_time
from headrace.config.config import Config, names
from headrace.define.label import Label
from headrace.evaluation.cells import Cells
from headrace.evaluation.evaluation_pass import take_a_look
from headrace.evaluation.metrics import figures
from headrace.lake.location import open_lake
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.spark.archive.archive import StreamArchive
from headrace.spark.session import local_session
from headrace.testing import FakeClock
from headrace.topics import create as create_topics
from headrace.topics import topics
from tests.evaluation.predicted import predicted

BEGIN = 1_767_225_600 * SECOND
DAYS, PER_DAY = 30, 40_000
LABELLED = 0.6
WARM = 5
"""Days before memory counts: by then Java has compiled what a look runs."""

payments = hr.stream(
    "payments", fields={"id": str, "card": str, "amount": float, "at": hr.Timestamp}, event_id="id", event_time="at"
)
cards = hr.view("cards", payments, by="card", features={"spend_1h": hr.sum("amount", over="1h")})
risk = hr.model("risk", hr.feature_set("habits", [cards]), stream=payments)
disputes = hr.stream(
    "disputes", fields={"id": str, "payment": str, "fraud": bool, "at": hr.Timestamp}, event_id="id", event_time="at"
)
chargeback = hr.label(
    "chargeback", disputes, of=risk, on="payment", value="fraud", horizon="30d", default=False, window="1h"
)
again = replace(chargeback, name="again")
PLAN = build([payments, cards, risk, disputes, chargeback])


Truths = dict[int, list[tuple[float, bool]]]
"""Of each window, the scores and whether each was of a fraud that gets a label."""


class World:
    """A month of predictions, and labels that come up to thirty days later; times are simulated, the rest is real.

    It has a process of its own (`living`): what it remembers is none of the state that looks need.
    """

    def __init__(self, config: Config, days: int, per_day: int) -> None:
        self.clock, session = FakeClock(BEGIN), local_session("bench-evaluate-world")
        self.log = EmbeddedLog(names(config).path("log"), clock=self.clock)
        create_topics(self.log, topics(PLAN, names(config), 1))
        self._days, self._per_day, self._chance = days, per_day, random.Random(7)
        self._due: dict[int, list[tuple[str, bool]]] = {}
        self.truths: Truths = {}
        self._archives = [
            StreamArchive(stream, stream.name, self.log, open_lake(config, stream), session, self.clock)
            for stream in (risk.predictions, disputes)
        ]

    def day(self, number: int) -> None:
        """What happens on a day, and all of it in the lake."""
        begin = BEGIN + number * DAY
        made = [self._prediction(number, at, begin + at * DAY // self._per_day) for at in range(self._per_day)]
        self.log.append_batch(risk.predictions.name, made)
        self.clock.advance(f"{begin + DAY - self.clock.now()}us")
        due = self._due.pop(number, [])
        self.log.append_batch("disputes", [self._label(number, at, *each) for at, each in enumerate(due)])
        self.clock.advance("1m")  # an append may take a moment to be seen
        for archive in self._archives:
            while archive.step(200_000):
                pass

    def _prediction(self, day: int, number: int, at: int) -> Message:
        chance, name = self._chance, f"p{day}-{number}"
        score = round(chance.random() ** 4, 6)
        fraud, due = chance.random() < score, day + min(28, int(chance.lognormvariate(1.0, 1.0)))
        labelled = chance.random() < LABELLED and due < self._days
        if labelled:
            self._due.setdefault(due, []).append((name, fraud))
        self.truths.setdefault(at - at % HOUR, []).append((score, fraud and labelled))
        return predicted(name, score, at, card=f"c{number % 5_000}", features={"spend_1h": 12.5})

    def _label(self, day: int, number: int, payment: str, fraud: bool) -> Message:
        at = show_time(BEGIN + day * DAY + DAY // 2)
        return Message(json.dumps({"id": f"d{day}-{number}", "payment": payment, "fraud": fraud, "at": at}).encode())


def living(root: Path, days: int, per_day: int, line: Connection) -> None:
    """A world's process: a day whenever one is asked for, its truths when they are."""
    world = World(project.load(root).config, days, per_day)
    while (day := line.recv()) is not None:
        world.day(day)
        line.send(world.clock.now())
    line.send(world.truths)


class Looking:
    """Whoever looks: what a process of evaluation is, with a clock that follows the world's."""

    def __init__(self, root: Path) -> None:
        self.config: Config = project.load(root).config
        self.clock, self._session = FakeClock(BEGIN), local_session("bench-evaluate")
        self._log = EmbeddedLog(names(self.config).path("log"), clock=self.clock)

    def look(self, label: Label) -> float:
        """How long a look takes."""
        began = time.perf_counter()
        take_a_look(self._session, self.config, self._log, label, self.clock)
        return time.perf_counter() - began

    def held(self) -> float:
        """What Python and Spark hold once nobody needs anything, in bytes."""
        gc.collect()
        java: Any = self._session._jvm
        java.java.lang.System.gc()
        runtime = java.java.lang.Runtime.getRuntime()
        with Path(f"/proc/{os.getpid()}/statm").open() as told:
            pages = int(told.read().split()[1])
        return float(runtime.totalMemory() - runtime.freeMemory() + pages * os.sysconf("SC_PAGE_SIZE"))


def join(quick: bool) -> list[Result]:
    """A month of looks, and one at everything."""
    days, per_day = (8, 5_000) if quick else (DAYS, PER_DAY)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        root = Path(folder) / "shop"
        create(root)
        (root / "features.py").write_text("from bench.evaluate import *\n")
        line, far = SPAWN.Pipe()
        world = spawned(living, root, days, per_day, far)
        far.close()
        try:
            return _looked_at(Looking(root), line, days, per_day)
        finally:
            world.terminate()


def _looked_at(looking: Looking, line: Connection, days: int, per_day: int) -> list[Result]:
    held, took = [], []
    for day in range(days):
        line.send(day)
        looking.clock.advance(f"{line.recv() - looking.clock.now()}us")
        took.append(looking.look(chargeback))
        held.append(looking.held())
        print(f"day {day + 1}: look {took[-1]:.1f} s, {held[-1] / 1e6:,.0f} MB", file=sys.stderr)
    line.send(None)
    truths: Truths = line.recv()
    rates = [days * per_day / looking.look(replace(again, name=f"again{at}")) for at in range(2)]
    flat = max(held[-3:]) / max(held[WARM : WARM + 3])
    return [
        measured("join_per_s", rates, "higher", 50_000.0),
        Result("state_flat", flat, "lower", 1.1),
        Result("look_last_over_first", sum(took[-3:]) / sum(took[WARM : WARM + 3]), "lower"),
        Result("auc_error_max", max(_auc_errors(looking, truths)), "lower", 0.005),
    ]


def _auc_errors(looking: Looking, truths: Truths) -> Iterator[float]:
    """How far the AUC of each window that has both classes is from the exact one, once everything is known."""
    looking.clock.advance("40d")
    looking.look(chargeback)
    for cell, each in Cells(looking.config, chargeback).newest().items():
        told = figures(each.sums, "binary")
        known = truths[cell.window]
        scores, labels = [score for score, _ in known], [truth for _, truth in known]
        if (told["closed"], told["count"], told["positives"]) != (1.0, len(known), sum(labels)):
            raise RuntimeError(f"the window {cell.window} does not add up: {told['states']}")
        if told["auc"] is not None:
            yield abs(told["auc"] - float(roc_auc_score(labels, scores)))


def alarms(quick: bool) -> list[Result]:
    """The drift bench: our usual budget beside the raw detector with the fewest false alarms that misses no more."""
    from bench.drift import run as drift
    from bench.drift.competitors import OURS, RAW
    from bench.drift.streams import FAMILIES

    measured = drift.measure(quick)
    print(drift.table(measured), file=sys.stderr)
    abrupt = [stream for streams, _ in FAMILIES.values() for stream in streams]
    seasonal = [stream for _, streams in FAMILIES.values() for stream in streams]
    figures, ours = measured["figures"], next(iter(OURS))

    def over(name: str, streams: list[str], what: str) -> float:
        """The mean over streams; one that was not tried has missed everything."""
        told = [figures[name][stream][what] for stream in streams]
        return sum(1.0 if each is None else each for each in told) / len(streams)

    missed = {name: over(name, abrupt, "missed") for name in (ours, *RAW)}
    enough = [name for name in RAW if missed[name] <= missed[ours]] or [min(RAW, key=lambda name: missed[name])]
    best = min(over(name, seasonal, "false_per_month") for name in enough)
    print(f"those of river that miss no more: {', '.join(enough)}", file=sys.stderr)
    found = [
        Result("headrace.false_alarms_per_month", over(ours, seasonal, "false_per_month"), "lower", best / 10),
        Result("best_raw.false_alarms_per_month", best, "lower"),
        Result("headrace.delay_windows", over(ours, abrupt, "delay_median_h"), "lower"),
        Result("missed", missed[ours], "lower", 0.0),
    ]
    for about, (_, streams) in FAMILIES.items():
        for name in (ours, "ADWIN"):
            said = over(name, list(streams), "false_per_month")
            found.append(Result(f"{name.split(',')[0].lower()}.{about}.false_alarms_per_month", said, "lower"))
    return found


if __name__ == "__main__":
    sys.exit(run("evaluate", join, alarms))
