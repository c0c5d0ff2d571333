"""The account of a run as a value, a file and lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.accounting.expense import Expense
from tests.accounting.rules import sum_folders

LONGEST = 10


@dataclass(frozen=True)
class Account:
    """What a run used.

    Attributes
    ----------
    seconds, cpu
        Of the whole run.
    load
        The load average at its start and at its end.
    others
        The share of the machine that other programs used, from 0 to 1.
    loop
        CPU-seconds of `cpu.time_loop` on this machine.
    """

    seed: int
    seconds: float
    cpu: float
    load: tuple[float, float]
    others: float
    loop: float
    entries: tuple[Expense, ...]

    def write(self, file: Path) -> None:
        """Write the account as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        folders = {name: round(cpu, 2) for name, cpu in sum_folders(self.entries).items()}
        file.write_text(json.dumps({**asdict(self), "folders": folders}, indent=1) + "\n", encoding="utf-8")

    def lines(self) -> Iterator[str]:
        """What people read: the longest entries, the folders, and the whole."""
        for entry in sorted(self.entries, key=lambda entry: -entry.seconds)[:LONGEST]:
            yield f"{entry.seconds:8.1f} s {entry.cpu:8.1f} CPU-s  {entry.name}"
        yield ""
        for folder, cpu in sum_folders(self.entries).items():
            yield f"{cpu:19.1f} CPU-s  {folder}"
        yield ""
        start, end = self.load
        yield f"load average {start:.1f} at the start, {end:.1f} at the end"
        yield f"others used {self.others:.0%} of the machine, whose loop took {self.loop:.3f} CPU-seconds"
        yield f"tests: {self.seconds:.0f} s, {self.cpu:.0f} CPU-seconds"


def read_account(file: Path) -> Account:
    """The account that `Account.write` wrote."""
    content = json.loads(file.read_text(encoding="utf-8"))
    del content["folders"]
    entries = tuple(Expense(**entry) for entry in content.pop("entries"))
    start, end = content.pop("load")
    return Account(**content, load=(start, end), entries=entries)
