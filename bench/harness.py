"""What every benchmark shares: samples become a median and a spread, held against a target, in one JSON file.

A benchmark is a module of this folder with a function `measure(quick) -> list[Result]` that ends in
`sys.exit(run("NAME", measure))`. `make bench-NAME` runs it and writes bench/results/NAME.json; a full run also writes
the table in docs/benchmarks.md. A benchmark of several such functions can be run in parts; what another part measured
at another commit stays, and says so. A missed target is shown, not hidden, and does not fail the run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headrace.machine import memory_bytes

ROOT = Path(__file__).resolve().parent.parent
Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Result:
    """One named number, its spread over the repetitions, and the target it is held against."""

    name: str
    value: float
    better: Better
    target: float | None = None
    spread: tuple[float, float] | None = None

    @property
    def ok(self) -> bool:
        """Whether the target is met; a number without a target cannot miss it."""
        if self.target is None:
            return True
        return self.value <= self.target if self.better == "lower" else self.value >= self.target

    def as_json(self) -> dict[str, Any]:
        """The result as the results file holds it."""
        base: dict[str, Any] = {"name": self.name, "value": rounded(self.value), "target": self.target}
        base |= {"better": self.better, "ok": self.ok}
        if self.spread is not None:
            base["spread"] = [rounded(end) for end in self.spread]
        return base


def measured(name: str, samples: Sequence[float], better: Better, target: float | None = None) -> Result:
    """A result from repeated samples: their median, with the least and the greatest as spread.

    >>> measured("read_s", [3.0, 1.0, 2.0], "lower", target=2.5)
    Result(name='read_s', value=2.0, better='lower', target=2.5, spread=(1.0, 3.0))
    """
    if not samples:
        raise ValueError(f"benchmark {name} has no samples")
    return Result(name, statistics.median(samples), better, target, (min(samples), max(samples)))


def rounded(value: float) -> float:
    """Four significant digits: more would be noise.

    >>> rounded(0.123456), rounded(98765.4)
    (0.1235, 98770.0)
    """
    return float(f"{value:.4g}")


def commit(root: Path = ROOT) -> str:
    """The short commit, marked when the code under test has changes that are in no commit."""
    name = _git(root, "rev-parse", "--short", "HEAD")
    if not name:
        return "unknown"
    return f"{name}-dirty" if _git(root, "status", "--porcelain", "--", "src", "bench/*.py") else name


def _git(root: Path, *arguments: str) -> str:
    try:
        ran = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def machine() -> str:
    """The machine in a few words, such as "2 cores, 24 GiB"."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = memory_bytes()
    return f"{cores} cores" + (f", {round(memory / 2**30)} GiB" if memory else "")


def report(benchmark: str, results: Sequence[Result], *, quick: bool = False) -> dict[str, Any]:
    """What goes into bench/results/NAME.json."""
    names = [result.name for result in results]
    if len(names) != len(set(names)) or not names:
        raise ValueError(f"benchmark {benchmark} needs results with different names, not {names}")
    base: dict[str, Any] = {
        "benchmark": benchmark,
        "command": f"make bench-{benchmark}" + (" QUICK=1" if quick else ""),
        "commit": commit(),
        "machine": machine(),
    }
    return base | ({"quick": True} if quick else {}) | {"results": [result.as_json() for result in results]}


def table(reports: Sequence[dict[str, Any]], notes: Mapping[str, str] | None = None) -> str:
    """docs/benchmarks.md from the results files, and what bench/notes/NAME.md has to say of each."""
    lines = ["# Benchmarks", "", "Written by `make bench-NAME`; the median over the repetitions, with the spread.", ""]
    for one in sorted(reports, key=lambda report: str(report["benchmark"])):
        lines += [f"## {one['benchmark']}", "", f"`{one['command']}` at {one['commit']} on {one['machine']}.", ""]
        lines += ["| name | value | spread | target | met |", "|---|---|---|---|---|"]
        for row in one["results"]:
            spread = " to ".join(f"{end:g}" for end in row.get("spread", ())) or "-"
            target = "-" if row["target"] is None else f"{row['better']} than {row['target']:g}"
            name = row["name"] + (f" (at {row['commit']})" if "commit" in row else "")
            lines.append(f"| {name} | {row['value']:g} | {spread} | {target} | {'yes' if row['ok'] else 'no'} |")
        said = (notes or {}).get(one["benchmark"], "").strip()
        lines += ["", *([said, ""] if said else [])]
    return "\n".join(lines)


def run(
    benchmark: str,
    *measures: Callable[[bool], Sequence[Result]],
    arguments: Sequence[str] | None = None,
    root: Path = ROOT,
) -> int:
    """Measure, write the results file (and after a full run the table), and say what came out."""
    parser = argparse.ArgumentParser(prog=f"bench.{benchmark}")
    parser.add_argument("--quick", action="store_true", help="a first look of at most three minutes")
    parser.add_argument("--part", type=int, choices=range(1, len(measures) + 1), help="only this part")
    given = parser.parse_args(arguments)
    wanted = measures if given.part is None else measures[given.part - 1 : given.part]
    folder = root / "bench" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{benchmark}.json"
    made = report(benchmark, [result for measure in wanted for result in measure(given.quick)], quick=given.quick)
    if given.part is not None and not given.quick and file.exists():
        made["results"] = _kept(json.loads(file.read_text(encoding="utf-8")), made) + made["results"]
    file.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    if not given.quick:
        write_table(root)
    for row in made["results"]:
        missed = "" if row["ok"] else f"  missed: target {row['target']:g}"
        print(f"{benchmark}.{row['name']}  {row['value']:g}{missed}", file=sys.stderr)
    return 0


def _kept(before: dict[str, Any], made: dict[str, Any]) -> list[dict[str, Any]]:
    """What other parts measured, each with the commit of then."""
    new = {row["name"] for row in made["results"]}
    return [{"commit": before["commit"], **row} for row in before["results"] if row["name"] not in new]


def write_table(root: Path = ROOT) -> None:
    """Write docs/benchmarks.md."""
    reports = [json.loads(file.read_text(encoding="utf-8")) for file in (root / "bench" / "results").glob("*.json")]
    notes = {file.stem: file.read_text(encoding="utf-8") for file in (root / "bench" / "notes").glob("*.md")}
    full = [one for one in reports if not one.get("quick")]
    (root / "docs" / "benchmarks.md").write_text(table(full, notes), encoding="utf-8")
