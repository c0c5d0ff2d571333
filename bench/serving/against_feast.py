"""Part 2: the same reads of mix A from Feast, which has all values computed before, in the same run.

Headrace merges tiles when it is asked; Feast looks up what somebody put there. The values are Headrace's own answers,
written to a Parquet file and loaded into Feast's Redis. Like is compared with like: HTTP with HTTP, at a rate that
Feast sustains, half of the most it does, and in-process reads with Feast's SDK, one after the other.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.harness import Result, measured
from bench.serving import feast
from bench.serving.content import A, Content, card, content, fill, shop
from bench.serving.open_loop import SPAWN, Asked, Request, Schedule, ask
from bench.serving.reads import ASKED, FEATURES, FULL, QUICK, RATE, Size, refuse_wrong, singles
from bench.serving.saturate import most_per_s
from bench.serving.served import served
from headrace import project
from headrace.clock import SystemClock
from headrace.project import Project
from headrace.read.reader import Reader
from headrace.store.open import look_into

SLICE = 500
SHARES = (50, 99)


def against_feast(quick: bool) -> list[Result]:
    """Both over HTTP in turns, then both in-process in turns."""
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = shop(folder, A)
        held = content(made, A, size.keys)
        fill(made, held)
        with served(made) as ours, feast.feast(folder / "feast") as theirs:
            ours.filled(held.rows)
            ours.at_rest()
            refuse_wrong(ours, held)
            theirs.load(_exported(made, held, folder / "cards.parquet"))
            cards = held.asked(ASKED)
            with theirs.server() as port:
                feast.refuse_wrong(port, cards[0], FEATURES)
                results = _over_http({"headrace": ours.port, "feast": port}, cards, size, folder)
            return results + _in_process(made, theirs, cards, size, folder)


def _exported(made: Project, held: Content, file: Path) -> Path:
    """The values of all keys, as Headrace answers them now."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list[dict[str, object]]()
    with look_into(made.config) as store:
        reader, now = Reader(made.plan(), store), SystemClock().now()
        for first in range(0, held.keys, SLICE):
            asked = [(card(number),) for number in range(first, min(first + SLICE, held.keys))]
            answers = reader.read_many("cards", asked, now)
            rows += [{"card": answer.key["card"], **answer.values} for answer in answers]
    table = pa.Table.from_pylist(rows)
    at = pa.array([datetime.now(UTC)] * len(rows), pa.timestamp("us", "UTC"))
    pq.write_table(table.append_column("event_timestamp", at), file)
    return file


def _over_http(ports: dict[str, int], cards: Sequence[str], size: Size, folder: Path) -> list[Result]:
    asked: dict[str, list[Request]] = {"headrace": singles(cards), "feast": feast.requests(cards)}
    most = most_per_s(ports["feast"], asked["feast"], max(3, size.saturated), folder)
    rate = min(RATE, max(10, int(most / 2)))
    print(f"Feast answers {most:.0f} requests a second at most; both are asked {rate} times a second", file=sys.stderr)
    schedule = Schedule(rate, size.seconds, size.warm)
    rounds = [
        {name: ask(port, asked[name], schedule, folder) for name, port in ports.items()} for _ in range(size.rounds)
    ]
    return [
        Result("feast.max_per_s", most, "higher"),
        Result("read_over_feast.rate", rate, "higher"),
        *_compared("read_over_feast", rounds, ("headrace.same_rate", "feast")),
    ]


def _in_process(made: Project, theirs: feast.Feast, cards: Sequence[str], size: Size, folder: Path) -> list[Result]:
    count = 2_000 if size is QUICK else 10_000
    rounds = [
        {
            "headrace": Asked(_timed(made, cards[:count], folder), 0, 0.0),
            "feast": Asked(theirs.timed(cards[:count]), 0, 0.0),
        }
        for _ in range(size.rounds)
    ]
    return _compared("inprocess_over_feast_sdk", rounds, ("inprocess", "feast.sdk"))


def _compared(name: str, rounds: Sequence[dict[str, Asked]], called: tuple[str, str]) -> list[Result]:
    """Ratios of each round, and the milliseconds behind them."""
    results = []
    for share in SHARES:
        ours, theirs = ([each[who].percentile(share) for each in rounds] for who in ("headrace", "feast"))
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        results.append(measured(f"{name}.p{share}", ratios, "lower", 1.0))
        results += [measured(f"{who}.p{share}_ms", ms, "lower") for who, ms in zip(called, (ours, theirs), strict=True)]
    return results


def _timed(made: Project, cards: Sequence[str], folder: Path) -> npt.NDArray[np.float64]:
    """Milliseconds of in-process reads, in a process of its own beside the one that fills the store."""
    file = folder / "timed.npy"
    reading = SPAWN.Process(target=_read, args=(made.config.root, list(cards), file), daemon=True)
    reading.start()
    reading.join(300)
    if reading.exitcode != 0:
        reading.terminate()
        raise RuntimeError(f"the reads ended with {reading.exitcode}")
    found: npt.NDArray[np.float64] = np.load(file)
    return found


def _read(root: Path, cards: list[str], file: Path) -> None:
    made, clock, ms = project.load(root), SystemClock(), np.zeros(len(cards))
    with look_into(made.config) as store:
        reader = Reader(made.plan(), store)
        for number, each in enumerate(cards):
            began = time.perf_counter()
            answer = reader.read("cards", (each,), clock.now())
            ms[number] = (time.perf_counter() - began) * 1_000
            if answer.missing:
                raise RuntimeError(f"{each} is not in the store")
    np.save(file, ms[500:])
