"""Part 2: from a payment to its prediction, at 500 and 1,000 payments a second over 5,000 cards, and the most.

Over Kafka in real-time mode, `headrace run pipeline`, `headrace run serve` and `headrace run score` are processes of
their own, the producer and whoever receives predictions are two more. The time measured at 1,000 holds the end of a
batch, at which tiles pause; what they lack is folded in from the log. How many payments have no prediction when sending
ends says whether all of it keeps up. Then the scorer is stopped, a backlog is appended, and when the tiles have it the
scorer is started again. In the end every payment must have one prediction.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench.harness import Result
from bench.realtime import load
from bench.realtime.compare import SPAWN, checkpoint, spawned, started, until
from bench.realtime.processes import ended
from bench.realtime.recovery import prepared
from bench.scoring.champion import MODEL, promoted, shop
from bench.scoring.predictions import (
    Floats,
    Numbers,
    Seen,
    Standing,
    backlog_per_s,
    payments_in,
    receive,
    refuse_not_once,
    seen,
    steady,
)
from bench.serving.content import card, prepare
from bench.serving.served import served
from headrace.clock import SystemClock
from headrace.config.config import names
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.processes import broker, jars
from headrace.project import Project
from headrace.read.reader import Reader
from headrace.store.open import look_into
from headrace.topics import broker_folder, open_log

KEYS = 5_000
STARTING, LONGEST = 180.0, 3_600.0
SLOWEST = 200
"""Predictions a second of a backlog below which it is not waited for."""
CHUNK = 10_000
TARGETS = {("1k", 50): 5.0, ("1k", 99): 25.0}


@dataclass(frozen=True)
class Load:
    """So many payments a second, and the seconds of the warm-up and of what counts."""

    name: str
    rate: int
    warm: float
    seconds: float


@dataclass(frozen=True)
class Size:
    """Loads one after the other, and payments of the backlog."""

    loads: tuple[Load, ...]
    backlog: int


@dataclass(frozen=True)
class Sent:
    """A load that was sent.

    Parameters
    ----------
    first
        The number of its first payment.
    moments
        When each was sent.
    begin
        From when on they count.
    events
        How many there are without copies.
    behind
        How many of all had no prediction in the end.
    """

    load: Load
    first: int
    moments: Numbers
    begin: int
    events: int
    behind: int

    @property
    def after(self) -> int:
        """The number after its last payment."""
        return self.first + len(self.moments)


FULL = Size((Load("500", 500, 60.0, 120.0), Load("1k", 1_000, 30.0, 300.0)), 100_000)
QUICK = Size((Load("500", 500, 15.0, 15.0), Load("1k", 1_000, 10.0, 20.0)), 20_000)


def instream(quick: bool) -> list[Result]:
    """Latencies under steady loads, then a backlog."""
    prepared()
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder, on_kafka(Path(folder)) as (made, brokers):
        sent, found = _measure(made, brokers, size)
    results: list[Result] = []
    for each in sent:
        took, counted = steady(found, each.moments, each.begin, each.first)
        shown = np.percentile(took, [50, 95, 99, 99.9, 100]).round(1)
        print(f"{len(took):,} payments, {each.load.rate} a second: {shown} ms", file=sys.stderr)
        results += told(each.load.name, took, counted)
        results.append(Result(f"instream.{each.load.name}.behind", each.behind, "lower"))
    return [*results, Result("instream.max_per_s", backlog_per_s(found, sent[-1].after), "higher", 5_000.0)]


def told(load: str, took: Floats, counted: Seen) -> list[Result]:
    """Latencies, how old the tiles were, and how many events were folded in beside them."""
    results = [
        Result(f"instream.{load}.p{share}_ms", float(np.percentile(took, share)), "lower", TARGETS.get((load, share)))
        for share in (50, 95, 99)
    ]
    # Of the load that is asked for everywhere, the age has no number in its name.
    name = "instream" if load == "1k" else f"instream.{load}"
    return [
        *results,
        Result(f"{name}.feature_age_p50_ms", float(np.median(counted.age)), "lower"),
        Result(f"{name}.folded_mean", float(np.mean(counted.folded)), "lower"),
    ]


@contextmanager
def on_kafka(folder: Path) -> Iterator[tuple[Project, str]]:
    """The project with its champion, its local broker and its topics."""
    made = shop(folder, '\n[log]\nkind = "kafka"\npartitions = 1\n', mode="real-time")
    # Before the first payment: those that came before a model's first version are history.
    promoted(made)
    for wanted in (jars.BROKER, jars.CONNECTOR):
        jars.fetch(wanted)
    up = broker.up(broker_folder(made.config))
    try:
        with closing(open_log(made.config)) as log:
            prepare(made, log)
        yield made, up.brokers
    finally:
        broker.down(broker_folder(made.config))


def _measure(made: Project, brokers: str, size: Size) -> tuple[list[Sent], Seen]:
    """What was sent, and all predictions."""
    file, over = made.config.root / "seen.npz", SPAWN.Event()
    standing = Standing(SPAWN.Value("q", 0), SPAWN.Value("q", 0))
    topic = names(made.config).topic(made.plan().model(MODEL).predictions.name)
    with ExitStack() as stack:
        pipeline = stack.enter_context(started(made))
        stack.enter_context(served(made))
        until((checkpoint(made) / "metadata").exists, "the tile query did not start", STARTING)
        log = stack.enter_context(closing(open_log(made.config)))
        tiles = stack.enter_context(_tiles(made))
        receiver = spawned(receive, brokers, topic, file, standing, over)
        stack.callback(receiver.terminate)
        sent = _steadily(made, brokers, size, log=log, tiles=tiles, standing=standing)
        _backlog(made, sent[-1].after, size.backlog, log=log, tiles=tiles, standing=standing)
        over.set()
        receiver.join(STARTING)
        if receiver.exitcode != 0 or pipeline.poll() is not None:
            raise RuntimeError(f"receiving ended with {receiver.exitcode}, the pipeline with {pipeline.returncode}")
        found = seen(file)
        refuse_not_once(payments_in(log, load.SOURCE), found.number)
        # The scorer has ended: there is nothing that the process which receives may not have had time for.
        written = log.end_offsets(topic)[0]
        if written != len(found.number):
            raise RuntimeError(f"{written:,} predictions were written, and {len(found.number):,} received")
        return sent, found


@contextmanager
def _tiles(made: Project) -> Iterator[Callable[[], int]]:
    """What says up to which offset all payments are in the tiles of the store."""
    (tile_set,) = made.plan().tile_sets
    with look_into(made.config) as store:
        reader = Reader(made.plan(), store)

        def reached() -> int:
            said = reader.progress(tile_set)
            return 0 if said is None else said.positions.get(0, 0)

        yield reached


def scoring(made: Project) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """`headrace run score` while the block runs."""
    root = made.config.root
    command = [sys.executable, "-P", "-m", "headrace.cli.main", "run", "score", "--project", str(root)]
    return ended(command, root / "score.log")


def _steadily(
    made: Project, brokers: str, size: Size, *, log: Log, tiles: Callable[[], int], standing: Standing
) -> list[Sent]:
    """Send one load after the other, each when all payments of the one before have predictions."""
    sent: list[Sent] = []

    def near() -> int:
        """A second before the newest payment of the first load."""
        return log.end_offsets(load.SOURCE)[0] - size.loads[0].rate

    def caught_up() -> None:
        if not sent:
            until(lambda: 0 < near() < tiles(), "the pipeline does not catch up with what came", STARTING)
            until(lambda: near() < standing.reached.value, "the scorer does not catch up with what came", STARTING)

    def behind() -> int:
        return log.end_offsets(load.SOURCE)[0] - standing.reached.value

    with scoring(made) as scorer:
        for each in size.loads:
            sent.append(_sent(made, brokers, each, sent[-1].after if sent else 0, caught_up, behind))
            wanted = sum(some.events for some in sent)
            longest = STARTING + sent[-1].behind / SLOWEST
            told = f"the {wanted:,} payments do not all get predictions"
            until(partial(_counted, standing, wanted), told, longest)
            if scorer.poll() is not None:
                raise RuntimeError(f"the scorer ended with {scorer.returncode}")
    return sent


def _counted(standing: Standing, wanted: int) -> bool:
    return standing.count.value >= wanted


def _sent(
    made: Project, brokers: str, wanted: Load, first: int, caught_up: Callable[[], None], behind: Callable[[], int]
) -> Sent:
    """Send a load until it is measured."""
    file, over = made.config.root / f"sent-{wanted.name}.npz", SPAWN.Event()
    with ExitStack() as stack:
        sender = spawned(load.send, brokers, wanted.rate, KEYS, LONGEST, file, over, first)
        stack.callback(sender.terminate)
        caught_up()
        time.sleep(wanted.warm)
        begin = time.time_ns()
        time.sleep(wanted.seconds)
        left = behind()
        over.set()
        sender.join(STARTING)
    if sender.exitcode != 0:
        raise RuntimeError(f"the sender ended with {sender.exitcode}")
    with np.load(file) as held:
        moments, copies = held["moments"], int(held["copies"])
    return Sent(wanted, first, moments, begin, len(moments) - copies, left)


def _backlog(made: Project, first: int, count: int, *, log: Log, tiles: Callable[[], int], standing: Standing) -> None:
    """Append payments while nobody scores, from number `first` on; then have them scored."""
    wanted, chance, clock = standing.count.value + count, random.Random(11), SystemClock()
    for start in range(first, first + count, CHUNK):
        now, messages = clock.now(), list[Message]()
        for number in range(start, min(start + CHUNK, first + count)):
            whose = chance.randrange(KEYS)
            messages.append(Message(load.payment(number, whose, now), card(whose).encode()))
        log.append_batch(load.SOURCE, messages)
    end = log.end_offsets(load.SOURCE)[0]
    until(lambda: tiles() >= end, "the tiles do not get the backlog", STARTING)
    with scoring(made) as scorer:
        all_there = lambda: _counted(standing, wanted) or scorer.poll() is not None  # noqa: E731
        until(all_there, f"the backlog of {count:,} payments is not scored", STARTING + count / SLOWEST)
        if scorer.poll() is not None:
            raise RuntimeError(f"the scorer ended with {scorer.returncode}")
