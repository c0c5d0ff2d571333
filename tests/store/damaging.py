"""Damages copies of a store's file at random places and reads each in a process of its own, which may die of it.

Run as `python -m tests.store.damaging FOLDER HOW COUNT SEED`; prints how often each outcome was seen. `wrong` is the
one that must not be.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import sys
from collections import Counter
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.store import LmdbStore
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.levels import EVER, Band
from tests.store.folds import GRAIN, Counting, told
from tests.store.rows import TOPIC

SET, KEYS, TILES = "aa11", 60, 90
OUTCOMES = {0: "right", 1: "wrong", 2: "refused", 3: "filled again"}


def partials(place: int) -> bytes:
    # Some are so large that they lie on pages of their own.
    return b'{"count_1":%d,"sketch_1":"%s"}' % (place, b"A" * (3_000 if place == 50 else place))


def make(folder: Path) -> None:
    """A store of many keys with levels."""
    with LmdbStore(folder) as store:
        store.fold_with({SET: Counting()})
        for key in range(KEYS):
            rows = [TileRow(SET, "1", (f"k{key}",), at * GRAIN, "on_time", 1, partials(at)) for at in range(TILES)]
            store.apply([*rows, ProgressRow(SET, "1", {0: key}, key)], TOPIC, {0: key})
            while store.compact():
                pass


def harm(file: Path, how: str, draws: random.Random) -> None:
    """Cut a file off, or overwrite some of it."""
    size = file.stat().st_size
    if how == "cut":
        os.truncate(file, draws.randrange(size))
        return
    with file.open("r+b") as opened:
        for _ in range(draws.choice([1, 1, 1, 5])):
            long = draws.choice([1, 2, 4, 16, 64, 512, 4_096])
            opened.seek(draws.randrange(size - long))
            opened.write(draws.choice([draws.randbytes(long), b"\0" * long, b"\xff" * long]))


def check(store: LmdbStore) -> int:
    """Read everything in two ways, and say whether it is all there."""
    wanted = {"total": sum(range(TILES)), "tiles": {str(at * GRAIN): 1 for at in range(TILES)}}
    keys = [(f"k{key}",) for key in range(KEYS)]
    if store.position(TOPIC) != {0: KEYS - 1} or store.progress(SET)["1"].as_of != KEYS - 1:
        return 1
    for layout in (Counting().layout, None):
        found = store.read(SET, keys, [Band(EVER, 10, 9), Band(10, 470, 9), Band(470, 2_000, 9)], layout=layout)
        if any(pieces is None or told(pieces) != wanted for pieces in found.keys):
            return 1
    lost = store.read(SET, [("nobody",), ("k",)], [Band(0, 10, 0)]).keys != [None, None]
    return int(lost or not all(store.holds(SET, "1", key) for key in keys))


def read(folder: Path, *, mend: bool) -> int:
    """How a reader of a damaged store ends."""
    try:
        with LmdbStore(folder, readonly=not mend, mend=mend) as store:
            if mend and not store.position(TOPIC):
                return 3 if store.stats().tiles == 0 else 1
            return check(store)
    except HeadraceError as error:
        return 2 if error.code in ("store-damaged", "store-format", "store-failed") else 1
    except Exception as error:
        sys.stderr.write(f"{error!r}\n")
        return 1


def main(folder: Path, how: str, count: int, seed: int) -> None:
    whole, outcomes = folder / "whole", Counter[str]()
    make(whole)
    for number in range(seed, seed + count):
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        harm(copy / "data.mdb", how, random.Random(number))
        child = os.fork()
        if not child:
            logging.disable()
            os._exit(read(copy, mend=number % 10 == 0))
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        outcome = OUTCOMES.get(ended, f"signal {-ended}")
        outcomes[outcome] += 1
        if outcome == "wrong":
            sys.stderr.write(f"seed {number}\n")
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
