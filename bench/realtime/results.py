"""Parts 2 and 3 of the engine's benchmark: event by event, side by side with Flink, in one run.

Both engines read the same payments from a local Kafka broker, find copies, keep tiles of ten seconds by card in
RocksDB, and write every change to a compacted topic. Payments are sent by one process and rows received by another.
Latency is from just before a payment is handed to the producer to the arrival of the first row that has it. After a run
the newest rows of all tiles must hold every payment once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.harness import ROOT, Result, measured
from bench.realtime.compare import FLINK, HEADRACE, Load, measure
from bench.realtime.latency import Latencies
from bench.realtime.plot import plot
from bench.realtime.recovery import catch_up, recoveries

USUAL = (Load(1_000, 5_000), Load(5_000, 5_000))
MANY_KEYS = (Load(1_000, 100_000), Load(5_000, 100_000))
TARGETS = {"1k": {"p50": 10.0, "p99": 50.0, "p999": 250.0}}
RATIO = 1.0


def realtime(quick: bool) -> list[Result]:
    """Both engines under the usual loads, then what real-time mode does after a stop."""
    results = _side_by_side(USUAL, "realtime-and-flink.png", quick)
    count, before, again = (400_000, 200_000, 1) if quick else (1_000_000, 400_000, 2)
    rates = [catch_up(count, before) for _ in range(again)]
    pauses = recoveries(USUAL[0], 40.0, 5.0, 1) if quick else recoveries(USUAL[0], 60.0, 240.0, 2)
    results.append(measured("realtime.catchup_per_s", rates, "higher", 30_000.0))
    results.append(measured("recovery_s", pauses, "lower", 20.0))
    return results


def realtime_many_keys(quick: bool) -> list[Result]:
    """The same with twenty times as many cards."""
    return _side_by_side(MANY_KEYS, "realtime-and-flink-100k-keys.png", quick)


def _side_by_side(loads: Sequence[Load], picture: str, quick: bool) -> list[Result]:
    """Both engines under every load, one after the other."""
    warm, seconds = (20.0, 20.0) if quick else (60.0, 660.0)
    found: dict[str, dict[str, Latencies]] = {}
    results = []
    for load in loads[:1] if quick else loads:
        found[load.name] = {}
        for engine in (HEADRACE, FLINK):
            got = found[load.name][engine.name] = measure(engine, load, warm, seconds)
            print(f"{engine.name} {load.name}: {got.percentiles()} {got.ends}", file=sys.stderr)
        results += _compared(load.name, found[load.name])
    if not quick:
        plot(found, ROOT / "docs" / "images" / picture)
    return results


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
