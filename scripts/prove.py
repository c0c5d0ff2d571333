"""`make prove`: what repeats at length, again and again with successive seeds, until the time is over.

The first round runs whole. A later one starts no test once the time is over. Tests marked `prove` are those that kill
at random or are long; property tests try ten times as many cases as in `make test`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "build" / "prove-report.json"
CHOSEN = ("--hypothesis-profile", "prove", "-m", "prove or hypothesis or generated")
PYTEST = (sys.executable, "-m", "pytest", "tests", *CHOSEN, "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder")


@dataclass
class Proof:
    """What became of one thing: the seeds with which it passed, and those with which it failed."""

    passed: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Round:
    """A run of everything chosen with one seed: pytest's exit code, and the outcome of each test."""

    seed: int
    code: int
    outcomes: tuple[tuple[str, bool, str], ...]


def run_round(seed: int, until: float | None, chosen: list[str]) -> Round:
    """Run everything once with this seed."""
    REPORT.unlink(missing_ok=True)
    options = ["--shuffle", "--hypothesis-seed", str(seed), "--account", str(REPORT.relative_to(ROOT))]
    if until is not None:
        options += ["--until", str(until)]
    code = subprocess.run([*PYTEST, *options, *chosen], cwd=ROOT, check=False).returncode
    entries = json.loads(REPORT.read_text(encoding="utf-8"))["entries"] if REPORT.exists() else []
    tests = [entry for entry in entries if not entry["name"].endswith("(fixture)")]
    return Round(seed, code, tuple((entry["name"], entry["is_prove"], entry["outcome"]) for entry in tests))


def collect(rounds: list[Round]) -> dict[str, Proof]:
    """What was proved: tests marked prove one by one, property tests file by file."""
    proofs: dict[str, Proof] = defaultdict(Proof)
    for each in rounds:
        seen: dict[str, bool] = {}
        for name, is_prove, outcome in each.outcomes:
            if outcome != "skipped":
                thing = name if is_prove or outcome == "failed" else f"properties of {name.partition('::')[0]}"
                seen[thing] = seen.get(thing, True) and outcome == "passed"
        for thing, passed in seen.items():
            (proofs[thing].passed if passed else proofs[thing].failed).append(each.seed)
    return dict(sorted(proofs.items()))


def describe(rounds: list[Round]) -> Iterator[str]:
    """What was proved, how often and with which seeds; and how to see a failure again."""
    yield "proved:"
    for thing, proof in collect(rounds).items():
        if proof.passed:
            yield f"  {len(proof.passed):3} x  {thing}  ({_span(proof.passed)})"
    for thing, proof in collect(rounds).items():
        for seed in proof.failed:
            yield f"FAILED {thing} with seed {seed}; again: {_again(thing, seed)}"
    for each in rounds:
        if each.code != 0:
            yield f"FAILED round with seed {each.seed}: pytest exited with {each.code}"


def _span(seeds: list[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _again(thing: str, seed: int) -> str:
    return f".venv/bin/python -m pytest '{thing}' --hypothesis-profile prove --hypothesis-seed {seed}"


def run_rounds(minutes: float, seed: int, chosen: list[str]) -> list[Round]:
    """Run round after round with successive seeds, until the time is over or nothing can be run."""
    until = time.time() + 60 * minutes
    rounds: list[Round] = []
    while not rounds or (time.time() < until and rounds[-1].outcomes):
        print(f"round {len(rounds) + 1}, seed {seed + len(rounds)}", flush=True)  # noqa: T201
        rounds.append(run_round(seed + len(rounds), until if rounds else None, chosen))
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts.prove", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("chosen", nargs="*", help="more options of pytest")
    given = parser.parse_args()
    rounds = run_rounds(given.minutes, given.seed, given.chosen)
    print("\n".join(describe(rounds)))  # noqa: T201
    sys.exit(any(each.code != 0 for each in rounds))


if __name__ == "__main__":
    main()
