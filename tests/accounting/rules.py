"""The limits of a run: seconds of a test, CPU-seconds of a folder, the least number of tests. A fault is one line.

Seconds are stretched by what others use of the machine meanwhile. Both are stretched on a machine that is slower than
the one on which the budgets were measured.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.accounting.expense import Expense

LIMIT = 20.0
"""Seconds that a test may take, set-up included."""
MOST_STRETCH = 4.0


@dataclass(frozen=True)
class Allowance:
    """Seconds that a test may take beyond the limit, and why."""

    seconds: float
    reason: str


@dataclass(frozen=True)
class Budgets:
    """Tests that may take longer, by the beginning of their names, and the CPU-seconds of each folder.

    `loop` is what `cpu.time_loop` gave on the machine of these budgets; None when they hold on every machine.
    """

    tests: Mapping[str, Allowance]
    folders: Mapping[str, float]
    loop: float | None = None

    def seconds_of(self, name: str) -> float:
        """The limit of a test."""
        return max((given.seconds for prefix, given in self.tests.items() if name.startswith(prefix)), default=LIMIT)


def read_budgets(file: Path) -> Budgets:
    """The budgets of a file; an allowance without a reason is an error."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    allowances = {name: Allowance(**given) for name, given in content.get("tests", {}).items()}
    silent = [name for name, given in allowances.items() if not given.reason.strip()]
    if silent:
        raise ValueError(f"{file.name}: say why these tests may take longer: {', '.join(silent)}")
    return Budgets(allowances, content.get("folders", {}), content.get("machine", {}).get("loop"))


def stretch(others: float) -> float:
    """How much longer a test may take when others use this share of the machine.

    >>> stretch(0.0), stretch(0.5), stretch(1.0)
    (1.0, 2.0, 4.0)
    """
    return 1 / max(1 - others, 1 / MOST_STRETCH)


def sum_folders(entries: Iterable[Expense]) -> dict[str, float]:
    """CPU-seconds of each folder, the dearest first."""
    sums: dict[str, float] = defaultdict(float)
    for entry in entries:
        sums[entry.folder] += entry.cpu
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


def slowness(loop: float, budgets: Budgets) -> float:
    """How many times as slow this machine is as that of the budgets; 1 for a faster one.

    >>> slowness(0.06, Budgets({}, {}, loop=0.04)), slowness(0.02, Budgets({}, {}, loop=0.04))
    (1.5, 1.0)
    """
    return 1.0 if budgets.loop is None else max(1.0, loop / budgets.loop)


def find_excess(entries: Iterable[Expense], budgets: Budgets, others: float, loop: float = 0.0) -> dict[str, str]:
    """What is over its limit: a test, a fixture or a folder, each with a sentence."""
    entries, found = [entry for entry in entries if not entry.is_prove], {}
    slow = slowness(loop, budgets)
    for entry in entries:
        limit = budgets.seconds_of(entry.name) * stretch(others) * slow
        if entry.seconds > limit:
            found[entry.name] = (
                f"took {entry.seconds:.1f} s, and may take {limit:.1f} s. Make it shorter, mark it prove, "
                "or list it in tests/budgets.toml with a reason."
            )
    for folder, used in sum_folders(entries).items():
        if folder not in budgets.folders:
            found[folder] = f"used {used:.1f} CPU-seconds, and has no budget in tests/budgets.toml."
        elif used > (budget := budgets.folders[folder] * slow):
            found[folder] = f"used {used:.1f} CPU-seconds, and its budget is {budget:.3g}."
    return found


def find_missing(entries: Iterable[Expense], file: Path) -> dict[str, str]:
    """One line when the run had fewer tests than a file says; the file holds one number."""
    least, count = int(file.read_text(encoding="utf-8")), sum(not entry.is_fixture for entry in entries)
    if count >= least:
        return {}
    line = f"too few tests: {count} of at least {least}. Find those that were lost, or lower {file} on purpose."
    return {"number of tests": line}
