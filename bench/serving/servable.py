"""Part 3: from an event to a value that has it, through the whole way, at 1,000 events a second over 5,000 cards.

The log, `headrace run pipeline` and `headrace run serve` are real processes, the load and the look are two more, all on
the same machine; the features are those of mix A. Over Kafka the pipeline runs in real-time mode, and the measured time
holds the end of a batch, at which output pauses; over the embedded log it runs in micro-batches. In the end the counts
that are served must hold every payment once.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.harness import Result
from bench.realtime import load
from bench.realtime.compare import SPAWN, checkpoint, spawned, started, until
from bench.realtime.recovery import prepared
from bench.serving.content import A, card, prepare, shop
from bench.serving.served import Served, served
from bench.serving.visible import latencies, watch
from headrace import project
from headrace.clock import SECOND
from headrace.log.record import Message
from headrace.processes import broker, jars
from headrace.project import Project
from headrace.tiles.latency import KEPT
from headrace.topics import broker_folder, open_log

RATE, KEYS, ASKED = 1_000, 5_000, 1_000
TICK = 0.01
STARTING = 180.0
LONGEST = 3_600.0
Sending = Callable[[Path, Event], BaseProcess]
"""Starts a process that sends until it is told to stop, and writes when it sent what."""


def servable(quick: bool) -> list[Result]:
    """Kafka in real-time mode, then the embedded log in micro-batches."""
    prepared()
    kafka, embedded = ((4.0, 5.0), (2.0, 4.0)) if quick else ((60.0, 300.0), (45.0, 60.0))
    with tempfile.TemporaryDirectory() as folder, _on_kafka(Path(folder)) as (made, brokers):

        def send(file: Path, over: Event) -> BaseProcess:
            return spawned(load.send, brokers, RATE, KEYS, LONGEST, file, over)

        results = _told("servable.kafka.1k", *_measure(made, send, *kafka), {50: 15.0, 99: 60.0})
    with tempfile.TemporaryDirectory() as folder:
        made = shop(Path(folder), A, "\n[log]\npartitions = 1\n")
        with closing(open_log(made.config)) as log:
            prepare(made, log)

        def append(file: Path, over: Event) -> BaseProcess:
            return spawned(send_embedded, made.config.root, file, over)

        return results + _told("servable.embedded", *_measure(made, append, *embedded), {50: 800.0})


def _told(
    name: str, ms: npt.NDArray[np.float64], own: dict[str, float | None], targets: dict[int, float]
) -> list[Result]:
    """Percentiles as they were seen, and what the serving process says of its own."""
    results = [
        Result(f"{name}.p{share}_ms", float(np.percentile(ms, share)), "lower", targets.get(share))
        for share in (50, 95, 99)
    ]
    said = {share: took for share in ("p50_ms", "p99_ms") if (took := own.get(share)) is not None}
    return results + [Result(f"{name}.told.{share}", took, "lower") for share, took in said.items()]


@contextmanager
def _on_kafka(folder: Path) -> Iterator[tuple[Project, str]]:
    made = shop(folder, A, '\n[log]\nkind = "kafka"\npartitions = 1\n', mode="real-time")
    for wanted in (jars.BROKER, jars.CONNECTOR):
        jars.fetch(wanted)
    up = broker.up(broker_folder(made.config))
    try:
        with closing(open_log(made.config)) as log:
            prepare(made, log)
        yield made, up.brokers
    finally:
        broker.down(broker_folder(made.config))


def _measure(
    made: Project, send: Sending, warm: float, seconds: float
) -> tuple[npt.NDArray[np.float64], dict[str, float | None]]:
    root = made.config.root
    sent, seen, sending, watching = root / "sent.npz", root / "seen.npy", SPAWN.Event(), SPAWN.Event()
    reached = SPAWN.Value("q", 0)
    with ExitStack() as stack:
        pipeline = stack.enter_context(started(made))
        server = stack.enter_context(served(made))
        until((checkpoint(made) / "metadata").exists, "the tile query did not start", STARTING)
        watcher = spawned(watch, root, seen, reached, watching)
        stack.callback(watcher.terminate)
        sender = send(sent, sending)
        stack.callback(sender.terminate)
        log = stack.enter_context(closing(open_log(made.config)))
        caught_up = lambda: 0 < log.end_offsets(load.SOURCE)[0] - RATE < reached.value  # noqa: E731
        until(caught_up, "the pipeline does not catch up with what came while it started", STARTING)
        time.sleep(warm)
        begin = time.time_ns()
        time.sleep(seconds)
        sending.set()
        sender.join(STARTING)
        if sender.exitcode != 0 or pipeline.poll() is not None:
            raise RuntimeError(f"the sender ended with {sender.exitcode}, the pipeline with {pipeline.returncode}")
        told = server.status()["latency"]["arrival_to_servable"]
        with np.load(sent) as held:
            wanted, end = len(held["moments"]) - int(held["copies"]), int(held["first"]) + len(held["moments"])
        until(lambda: reached.value >= end, "the last payments do not become servable", STARTING)
        until(lambda: _served(server) == wanted, f"the counts served do not hold the {wanted:,} payments", STARTING)
        watching.set()
        watcher.join(STARTING)
        ms = latencies(sent, seen, begin)
    print(f"{len(ms):,} events: {np.percentile(ms, [50, 95, 99, 99.9, 100]).round(1)} ms", file=sys.stderr)
    # It tells of the last minutes: where fewer were measured, of the start as well.
    return ms, told if seconds * SECOND >= KEPT else {}


def _served(server: Served) -> int:
    """How many payments the counts of all cards hold."""
    held = 0
    for first in range(0, KEYS, ASKED):
        keys = [{"card": card(number)} for number in range(first, first + ASKED)]
        answers = server.post("/v1/features", {"view": "cards", "keys": keys})["answers"]
        held += sum(answer["features"]["count_1d"] for answer in answers)
    return held


def send_embedded(root: Path, file: Path, over: Event) -> None:
    """Append payments to the embedded log at a steady rate until told to stop.

    When each was appended, in nanoseconds, goes to `file`. The topic has one partition and one writer, so offsets are
    in the order in which payments were sent.
    """
    made, chance, moments = project.load(root), random.Random(7), list[int]()
    with closing(open_log(made.config)) as log:
        began = time.perf_counter()
        while not over.is_set():
            now, numbers = time.time_ns(), range(len(moments), int((time.perf_counter() - began) * RATE))
            if numbers:
                values = (load.payment(number, chance.randrange(KEYS), now // 1_000) for number in numbers)
                log.append_batch(load.SOURCE, [Message(value) for value in values])
                moments += [now] * len(numbers)
            time.sleep(TICK)
    np.savez(file, first=0, moments=np.array(moments, dtype=np.int64), copies=0)
