"""Real-time mode after a stop: how fast it takes a backlog, and how soon it is fresh again after a kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing

import numpy as np

from bench.realtime import load
from bench.realtime.compare import HEADRACE, SPAWN, Load, caught_up, shop, spawned, started
from headrace.clock import SystemClock
from headrace.log.record import Message
from headrace.machine import find_java
from headrace.spark.classes import classes_file
from headrace.topics import open_log

FRESH = 1.0
"""Seconds below which a row is fresh."""
CHUNK = 10_000


def catch_up(count: int, warm: int, keys: int = 5_000) -> float:
    """Events a second of a backlog, after the first `warm`: what a pipeline in real-time mode does on its way there."""
    with shop() as (made, _):
        chance, clock = random.Random(7), SystemClock()
        with closing(open_log(made.config)) as log:
            for first in range(0, count, CHUNK):
                now = clock.now()
                values = (load.payment(number, chance.randrange(keys), now) for number in range(first, first + CHUNK))
                log.append_batch(load.SOURCE, [Message(value) for value in values])
        return caught_up(made, count, warm)


def recoveries(under: Load, warm: float, longest: float, times: int) -> list[float]:
    """Seconds from a SIGKILL at a random moment of a batch to the first fresh row of an event that was sent after it.

    After a kill as much time as the longest batch passes before the next, so that each is of its own.

    On a machine where `headrace prepare` was run, as one that is to recover soon would be.
    """
    prepared()
    chance, kills, gone = random.Random(3), [], []
    with shop() as (made, brokers), ExitStack() as stack:
        folder = made.config.root
        sending, receiving = SPAWN.Event(), SPAWN.Event()
        receiver = spawned(load.receive, brokers, HEADRACE.changelog, HEADRACE.row, folder / "rows.npy", receiving)
        sender = spawned(load.send, brokers, under.rate, under.keys, 3600.0, folder / "sent.npz", sending)
        for each in (receiver, sender):
            stack.callback(each.terminate)
        for turn in range(times + 1):
            with started(made) as process:
                time.sleep((longest if turn else 0.0) + warm)
                if turn < times:
                    time.sleep(chance.uniform(0, longest))
                    kills.append(time.time())
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    gone.append(time.time())
        sending.set()
        sender.join(60)
        receiving.set()
        receiver.join(60)
        with np.load(folder / "sent.npz") as held:
            first, moments = int(held["first"]), held["moments"]
        rows = np.load(folder / "rows.npy")
    fresh = [_fresh(moment, first, moments, rows) for moment in gone]
    found = [again - kill for kill, again in zip(kills, fresh, strict=True)]
    print("fresh again after", *(f"{seconds:.1f} s" for seconds in found), file=sys.stderr)
    return found


def prepared() -> None:
    """Keep Spark's classes, if they are not."""
    if not classes_file(find_java()).is_file():
        subprocess.run([sys.executable, "-P", "-m", "headrace.cli.main", "prepare"], capture_output=True, check=True)


def _fresh(gone: float, first: int, moments: np.ndarray, rows: np.ndarray) -> float:
    """When the first row came of an event that no process was there to see, at once."""
    came = rows[rows[:, 1] > gone * 1e9]
    sent = moments[np.clip(came[:, 0] - 1 - first, 0, len(moments) - 1)]
    fresh = (sent > gone * 1e9) & (came[:, 1] - sent < FRESH * 1e9)
    if not fresh.any():
        raise RuntimeError("nothing was fresh again after a kill")
    return float(came[fresh][0, 1] / 1e9)
