"""Parts 2 to 6 of the engine's benchmark: event by event, side by side with Flink, one load in one run.

Both engines read the same payments from a local Kafka broker, find copies, keep tiles of ten seconds by card in
RocksDB, and write every change to a compacted topic. Payments are sent by one process and rows received by another.
Latency is from just before a payment is handed to the producer to the arrival of the first row that has it. After a run
the newest rows of all tiles must hold every payment once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from bench.harness import ROOT, Result, measured
from bench.realtime.compare import FLINK, HEADRACE, Load, measure
from bench.realtime.latency import Latencies
from bench.realtime.plot import plot
from bench.realtime.recovery import catch_up, recoveries

LOADS = (Load(1_000, 5_000), Load(5_000, 5_000), Load(1_000, 100_000), Load(5_000, 100_000))
TARGETS = {"1k": {"p50": 10.0, "p99": 50.0, "p999": 250.0}}
RATIO = 1.0


def side_by_side(load: Load) -> Callable[[bool], Sequence[Result]]:
    """Both engines under a load, one after the other."""

    def measured_under(quick: bool) -> list[Result]:
        warm, seconds = (20.0, 20.0) if quick else (60.0, 660.0)
        found: dict[str, Latencies] = {}
        for engine in (HEADRACE, FLINK):
            found[engine.name] = measure(engine, load, warm, seconds)
            print(f"{engine.name} {load.name}: {found[engine.name].percentiles()}", file=sys.stderr)
        if not quick:
            plot(load.name, found, ROOT / "docs" / "images" / f"realtime-and-flink-{load.name}.png")
        return _compared(load.name, found)

    return measured_under


def after_a_stop(quick: bool) -> list[Result]:
    """What real-time mode does with a backlog, and after a kill."""
    count, before, again = (400_000, 200_000, 1) if quick else (1_000_000, 400_000, 2)
    rates = [catch_up(count, before) for _ in range(again)]
    pauses = recoveries(LOADS[0], 40.0, 5.0, 1) if quick else recoveries(LOADS[0], 60.0, 240.0, 2)
    return [
        measured("realtime.catchup_per_s", rates, "higher", 30_000.0),
        measured("recovery_s", pauses, "lower", 20.0),
    ]


def _compared(load: str, found: dict[str, Latencies]) -> list[Result]:
    whole = {engine: each.percentiles() for engine, each in found.items()}
    targets = TARGETS.get(load, {})
    results = [
        Result(f"{engine}.{load}.{name}_ms", ms, "lower", targets.get(name) if engine == "realtime" else None)
        for engine, values in whole.items()
        for name, ms in values.items()
    ]
    between = found["realtime"].percentiles(without_ends=True)
    results += [Result(f"realtime.{load}.between_ends.{name}_ms", ms, "lower") for name, ms in between.items()]
    for name in ("p50", "p99"):
        ratio = whole["realtime"][name] / whole["flink"][name]
        results.append(Result(f"realtime_over_flink.{load}.{name}", ratio, "lower", RATIO))
    return results
