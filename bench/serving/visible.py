"""When events can be read: a process that looks into the store as a worker does, and the latencies that follow.

The store says with every change up to which offset of the stream everything is in it, in the transaction that applies
the rows. Whoever reads after that moment has those events in the answer, so the moment an offset is seen to be included
is the moment its event is servable; a read over HTTP adds what `reads` measures. The looks are half a millisecond
apart, and use another clock than the program's own account of its latency, which is told beside it.
"""

from __future__ import annotations

import time
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.serving.open_loop import exact_timers
from headrace import project
from headrace.read.reader import Reader
from headrace.store.open import look_into

LOOK = 0.0005


def watch(root: Path, file: Path, reached: Synchronized[int], over: Event) -> None:
    """Look until told to stop; (the next offset that is not included, nanoseconds) of each change goes to `file`.

    How far it has come is in `reached`.
    """
    exact_timers()
    made = project.load(root)
    (tile_set,) = made.plan().tile_sets
    rows, last = list[tuple[int, int]](), 0
    with look_into(made.config) as store:
        reader = Reader(made.plan(), store)
        while not over.is_set():
            said = reader.progress(tile_set)
            at = 0 if said is None else said.positions.get(0, 0)
            if at > last:
                reached.value = last = at
                rows.append((at, time.time_ns()))
            time.sleep(LOOK)
    np.save(file, np.array(rows, dtype=np.int64).reshape(-1, 2))


def latencies(sent: Path, seen: Path, begin: int) -> npt.NDArray[np.float64]:
    """Milliseconds from just before each event was sent until it could be read, of those that were sent since `begin`.

    Parameters
    ----------
    sent
        `first`, the offset of the first event, and `moments`, when each was sent, in nanoseconds.
    seen
        What `watch` wrote.
    """
    with np.load(sent) as held:
        first, moments = int(held["first"]), held["moments"]
    rows = np.load(seen)
    offsets = first + np.arange(len(moments))
    places = np.searchsorted(rows[:, 0], offsets, side="right")
    if len(places) and places[-1] == len(rows):
        raise RuntimeError(f"{int(np.sum(places == len(rows)))} of {len(places)} events never became servable")
    took = (rows[places, 1] - moments) / 1e6
    found: npt.NDArray[np.float64] = took[moments >= begin]
    return found
