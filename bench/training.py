"""How long a training set takes, beside what others need for the same, and how it grows with history.

Data and features are in `bench.past`: a million rows over five million payments of 100,000 cards with Zipf's law, eight
features over four windows. Each contender is a process of its own, one after the other; counted is the job itself with
reading and writing, not the start of Spark. The others have one card in twenty, and their time is counted twenty times.
That is in their favour, since the busiest cards are not among them, and those cost the square of their payments.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.harness import Result, measured, run
from bench.past import against_feast
from bench.past.data import SLICE, History, made, sliced
from bench.weigh import Scales

EVENTS, ROWS, KEYS = 5_000_000, 1_000_000, 100_000
REPEAT = 3
GIVEN_UP = 600.0
"""Seconds after which a contender is not waited for any longer."""


def timed(who: str, history: History, mode: str = "as_known", longest: float | None = None) -> tuple[float, float]:
    """Seconds and the most MiB that a contender held; one that is given up has had `longest`, and would need more."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out.parquet"
        command = [sys.executable, "-m", "bench.past.side", who, str(history.folder), out, mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, Scales(process.pid) as scales:
            try:
                said, _ = process.communicate(timeout=longest)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                process.wait()
                return longest or 0.0, scales.peak
        if process.returncode:
            raise RuntimeError(f"{who} failed with {process.returncode}")
        return float(json.loads(said.strip().splitlines()[-1])["seconds"]), scales.peak


def compare(quick: bool) -> Sequence[Result]:
    """Everybody on the same history, the others on a slice of it."""
    share, repeat = (20, 1) if quick else (1, REPEAT)
    with tempfile.TemporaryDirectory() as folder:
        history = made(Path(folder) / "history", EVENTS // share, ROWS // share, KEYS // share)
        part = sliced(history, Path(folder) / "slice")
        known = [timed("ours", history) for _ in range(repeat)]
        happened = [timed("ours", history, "as_happened")[0] for _ in range(repeat)]
        newest = [timed("ours_newest", history, "as_happened")[0] for _ in range(repeat)]
        looked_up = [timed("duckdb_newest", history)[0] for _ in range(repeat)]
        framed = [timed("duckdb", part)[0] * SLICE for _ in range(repeat)]
        # Once, and not to its end: of the busiest card a single task makes all pairs of a row and a payment.
        joined = [timed("range_join", part, longest=GIVEN_UP)[0] * SLICE]
        feasts = [against_feast.newest(part) * SLICE for _ in range(repeat)]
    seconds, memory = ([each[at] for each in known] for at in (0, 1))
    ours = measured("set.1m_x_5m_s", seconds, "lower", None if quick else 60.0)
    happens = measured("set.as_happened_s", happened, "lower")
    join = measured("range_join.scaled_at_least_s", joined, "lower")
    frames = measured("duckdb.as_happened.scaled_s", framed, "lower")
    new = measured("newest_s", newest, "lower")
    fed = measured("feast.newest.scaled_s", feasts, "lower")
    return [
        ours,
        happens,
        new,
        join,
        Result("speedup_over_range_join", join.value / ours.value, "higher", None if quick else 10.0),
        frames,
        Result("speedup_over_duckdb.as_happened", frames.value / happens.value, "higher"),
        measured("duckdb.newest_s", looked_up, "lower"),
        fed,
        Result("speedup_over_feast.newest", fed.value / new.value, "higher"),
        Result("peak_rss_mb", max(memory), "lower"),
    ]


def growth(quick: bool) -> Sequence[Result]:
    """The same rows over ten times the history."""
    share = 20 if quick else 1
    seconds, memory = [], []
    for events in (1_000_000, 10_000_000):
        with tempfile.TemporaryDirectory() as folder:
            history = made(Path(folder) / "history", events // share, ROWS // share, KEYS // share)
            took = [timed("ours", history) for _ in range(1 if quick else REPEAT)]
            shutil.rmtree(history.folder)
        seconds.append(sorted(each[0] for each in took)[len(took) // 2])
        memory.append(max(each[1] for each in took))
    return [
        Result("set.1m_x_1m_s", seconds[0], "lower"),
        Result("set.1m_x_10m_s", seconds[1], "lower"),
        Result("growth_10x", seconds[1] / seconds[0], "lower", None if quick else 10.0),
        Result("peak_rss_mb.10m", memory[1], "lower"),
    ]


if __name__ == "__main__":
    sys.exit(run("training", compare, growth))
