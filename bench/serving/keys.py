"""Part 4: whether a read takes longer with more keys: in-process reads of mix A, a million keys over ten thousand.

HTTP would hide the difference behind its own cost, so the reader is timed alone, over two stores that differ in nothing
but their keys, in turns. Every key has three tiles, and keys are drawn at random, so that a read finds nothing of the
one before in the processor's caches. What fills the stores is not under test: rows are applied without a log.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from bench.harness import Result, measured
from bench.serving.content import A, card, content, messages, shop
from headrace.clock import SystemClock
from headrace.plan.model import Plan
from headrace.read.reader import Reader
from headrace.store.lmdb.store import LmdbStore
from headrace.tiles.changelog import ProgressRow, Row
from headrace.tiles.changelog_format import decode
from headrace.tiles.fold import folds
from headrace.tiles.run_choice import FIRST_RUN

TILES, BATCH = 3, 20_000
ALIKE = replace(A, median=TILES, sigma=0.0)


def keys(quick: bool) -> list[Result]:
    """The median of a read in both stores, in turns."""
    few, many, rounds, times = (10_000, 50_000, 3, 2_000) if quick else (10_000, 1_000_000, 5, 10_000)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        made = shop(Path(folder), ALIKE)
        plan, held = made.plan(), {count: content(made, ALIKE, count) for count in (few, many)}
        readers = {}
        for count in (few, many):
            store = stack.enter_context(LmdbStore(Path(folder) / f"{count}"))
            store.fold_with(folds(plan))
            readers[count] = Reader(plan, store)
            _fill(store, plan, (decode(each.key, each.value) for each in messages(plan.tile_sets[0], held[count])))
        timed = [
            {count: _median(readers[count], count, times, turn) for count in (few, many)} for turn in range(rounds + 1)
        ]
    counted = timed[1:]
    return [
        measured("keys_1m_over_10k", [each[many] / each[few] for each in counted], "lower", 1.2),
        measured("inprocess.10k.p50_ms", [each[few] for each in counted], "lower"),
        measured("inprocess.1m.p50_ms", [each[many] for each in counted], "lower"),
    ]


def _fill(store: LmdbStore, plan: Plan, rows: Iterator[Row]) -> None:
    at = 0
    while batch := list(islice(rows, BATCH)):
        at += len(batch)
        store.apply(batch, "changelog", {0: at})
    said = ProgressRow(plan.tile_sets[0].fingerprint, FIRST_RUN, {0: at}, SystemClock().now())
    store.apply([said], "changelog", {0: at + 1})
    while store.compact():
        pass


def _median(reader: Reader, count: int, times: int, turn: int) -> float:
    """Milliseconds of a read of a key drawn at random."""
    chance, clock, took = random.Random(turn), SystemClock(), np.zeros(times)
    for number, each in enumerate([card(chance.randrange(count)) for _ in range(times)]):
        began = time.perf_counter()
        answer = reader.read("cards", (each,), clock.now())
        took[number] = time.perf_counter() - began
        if answer.missing:
            raise RuntimeError(f"{each} is not in the store")
    return float(np.median(took)) * 1_000
