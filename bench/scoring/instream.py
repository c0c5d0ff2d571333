"""Part 2: from a payment to its prediction, at 1,000 payments a second over 5,000 cards, and the most a second.

Over Kafka in real-time mode, `headrace run pipeline`, `headrace run serve` and `headrace run score` are processes of
their own, the producer and whoever receives predictions are two more. The measured time holds the end of a batch, at
which tiles pause; what they lack is folded in from the log. Then the scorer is stopped, a backlog is appended, and when
the tiles have it the scorer is started again. In the end every payment must have one prediction.
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
from headrace.config import names
from headrace.kafka import broker, jars
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.project import Project
from headrace.serve.reading import Reader
from headrace.store.opening import look_into
from headrace.topics import broker_folder, open_log

RATE, KEYS = 1_000, 5_000
STARTING, CATCHING_UP, LONGEST = 180.0, 600.0, 3_600.0
SLOWEST = 200
"""Predictions a second of a backlog below which it is not waited for."""
CHUNK = 10_000
TARGETS = {50: 5.0, 99: 25.0}


@dataclass(frozen=True)
class Size:
    """Seconds of the warm-up and of what counts, and payments of the backlog."""

    warm: float
    seconds: float
    backlog: int


FULL = Size(60.0, 300.0, 100_000)
QUICK = Size(20.0, 20.0, 20_000)


def instream(quick: bool) -> list[Result]:
    """Latencies under a steady load, then a backlog."""
    prepared()
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder, on_kafka(Path(folder)) as (made, brokers):
        sent, begin, found = _measure(made, brokers, size)
    took, counted = steady(found, sent, begin)
    print(f"{len(took):,} payments: {np.percentile(took, [50, 95, 99, 99.9, 100]).round(1)} ms", file=sys.stderr)
    return [*told(took, counted), Result("instream.max_per_s", backlog_per_s(found, len(sent)), "higher", 5_000.0)]


def told(took: Floats, counted: Seen) -> list[Result]:
    """Latencies, how old the tiles were, and how many events were folded in beside them."""
    results = [
        Result(f"instream.1k.p{share}_ms", float(np.percentile(took, share)), "lower", TARGETS.get(share))
        for share in (50, 95, 99)
    ]
    return [
        *results,
        Result("instream.feature_age_p50_ms", float(np.median(counted.age)), "lower"),
        Result("instream.folded_mean", float(np.mean(counted.folded)), "lower"),
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


def _measure(made: Project, brokers: str, size: Size) -> tuple[Numbers, int, Seen]:
    """When each payment of the steady load was sent, from when on they count, and all predictions."""
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
        sent, begin = _steadily(made, brokers, size, log=log, tiles=tiles, standing=standing)
        _backlog(made, len(sent), size.backlog, log=log, tiles=tiles, standing=standing)
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
        return sent, begin, found


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
) -> tuple[Numbers, int]:
    """Send at a steady rate until all is measured; when each payment was sent, and from when on they count."""
    file, over = made.config.root / "sent.npz", SPAWN.Event()

    def near() -> int:
        """A second before the newest payment."""
        return log.end_offsets(load.SOURCE)[0] - RATE

    with scoring(made) as scorer, ExitStack() as stack:
        sender = spawned(load.send, brokers, RATE, KEYS, LONGEST, file, over)
        stack.callback(sender.terminate)
        until(lambda: 0 < near() < tiles(), "the pipeline does not catch up with what came while it started", STARTING)
        until(lambda: near() < standing.reached.value, "the scorer does not catch up with what came", CATCHING_UP)
        time.sleep(size.warm)
        begin = time.time_ns()
        time.sleep(size.seconds)
        over.set()
        sender.join(STARTING)
        if sender.exitcode != 0 or scorer.poll() is not None:
            raise RuntimeError(f"the sender ended with {sender.exitcode}, the scorer with {scorer.returncode}")
        with np.load(file) as held:
            sent, wanted = held["moments"], len(held["moments"]) - int(held["copies"])
        until(lambda: standing.count.value >= wanted, f"the {wanted:,} payments do not all get predictions", STARTING)
    return sent, begin


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
        all_there = lambda: standing.count.value >= wanted or scorer.poll() is not None  # noqa: E731
        until(all_there, f"the backlog of {count:,} payments is not scored", STARTING + count / SLOWEST)
        if scorer.poll() is not None:
            raise RuntimeError(f"the scorer ended with {scorer.returncode}")
