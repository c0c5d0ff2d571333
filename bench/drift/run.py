"""Run the drift bench: `python -m bench.drift.run [--quick]` prints a table of every competitor on every stream.

The target: of the detectors of river that find at least as many of the abrupt changes as Headrace, the one with the
fewest false alarms on the seasonal streams has at least ten times as many as Headrace.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from bench.drift.competitors import COMPETITORS, OURS, RAW
from bench.drift.score import Score
from bench.drift.streams import FAMILIES, STREAMS, stream

FIRST_SEED, SEEDS, QUICK_SEEDS = 100, 5, 1
"""The seeds below the first are for trying things out: what is chosen by looking at a stream is not measured on it."""
Figures = dict[str, dict[str, dict[str, float | None]]]


def measure(quick: bool) -> dict[str, Any]:
    """Every competitor on every stream, and how far the target is met."""
    scores = {name: {each: Score() for each in STREAMS} for name in COMPETITORS}
    for seed in range(FIRST_SEED, FIRST_SEED + (QUICK_SEEDS if quick else SEEDS)):
        for each in STREAMS:
            made = stream(each, seed)
            for name, alarms in COMPETITORS.items():
                # KSWIN tests two samples at every step, and takes longer than all the others together.
                if not (quick and name == "KSWIN"):
                    scores[name][each].add(made, alarms(made))
            print(f"seed {seed}, {each}", file=sys.stderr)
    figures = {name: {each: score.as_json() for each, score in held.items()} for name, held in scores.items()}
    return {"figures": figures, "target": target(scores)}


def target(scores: dict[str, dict[str, Score]]) -> dict[str, Any]:
    """For errors and features, and each of our budgets: false alarms a month beside the best that finds as much."""
    told: dict[str, Any] = {}
    for about, (abrupt, seasonal) in FAMILIES.items():
        found = {name: _found(scores[name], abrupt) for name in (*OURS, *RAW)}
        false = {name: _false(scores[name], seasonal) for name in (*OURS, *RAW)}
        for ours in OURS:
            # Should nobody find as much as we do, those that find the most are good enough.
            enough = min(found[ours], max(found[name] for name in RAW))
            best = min((name for name in RAW if found[name] >= enough), key=lambda name: false[name])
            told[f"{about}, {ours}"] = {
                "found": found[ours],
                "false_per_month": false[ours],
                "best": best,
                "best_false_per_month": false[best],
                "met": false[ours] <= false[best] / 10,
            }
    return told


def _found(held: dict[str, Score], streams: tuple[str, ...]) -> float:
    required = sum(held[each].required for each in streams)
    return sum(len(held[each].delays) for each in streams) / required if required else 0.0


def _false(held: dict[str, Score], streams: tuple[str, ...]) -> float:
    months = sum(held[each].months for each in streams)
    return sum(held[each].false for each in streams) / months if months else 0.0


def table(measured: dict[str, Any]) -> str:
    """One block for each stream."""
    figures: Figures = measured["figures"]
    lines = []
    for each in STREAMS:
        lines += ["", each, f"  {'':26}{'missed':>8}{'delay h':>9}{'repeats':>9}{'false/month':>13}"]
        for name, held in figures.items():
            told = held[each]
            shown = [told["missed"], told["delay_median_h"], told["repeats"], told["false_per_month"]]
            cells = ["-" if value is None else f"{value:.2f}" for value in shown]
            lines.append(f"  {name:26}{cells[0]:>8}{cells[1]:>9}{cells[2]:>9}{cells[3]:>13}")
    for about, said in measured["target"].items():
        ours, best = said["false_per_month"], said["best_false_per_month"]
        lines += ["", f"{about}: finds {said['found']:.0%} of the abrupt changes; {ours:.3f} false a month"]
        lines += [f"  best of river that finds as many: {said['best']}, {best:.3f} a month; target met: {said['met']}"]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.drift.run")
    parser.add_argument("--quick", action="store_true", help="one seed, without KSWIN")
    print(table(measure(parser.parse_args().quick)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
