"""`python -m tests.accounting --propose`: budgets from the report of a run, half as much again as it used."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from tests.accounting.report import Account, read_account
from tests.accounting.rules import LIMIT, sum_folders

MARGIN = 1.5
LEAST = 10


def propose(account: Account) -> str:
    """Budgets in the form of tests/budgets.toml; the reasons are for people to write."""
    entries = sorted((entry for entry in account.entries if not entry.is_prove), key=lambda entry: entry.name)
    tests = [
        f'"{entry.name}" = {{ seconds = {math.ceil(entry.seconds * MARGIN)}, reason = "" }}'
        for entry in entries
        if entry.seconds > LIMIT
    ]
    folders = [
        f'"{folder}" = {max(LEAST, math.ceil(cpu * MARGIN))}' for folder, cpu in sorted(sum_folders(entries).items())
    ]
    machine = ["[machine]", f"loop = {account.loop:.3f}"]
    return "\n".join(["[tests]", *tests, "", *machine, "", "[folders]", *folders]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.accounting", description=__doc__)
    parser.add_argument("--propose", action="store_true", required=True, help="print budgets")
    parser.add_argument("report", nargs="?", type=Path, default=Path("build/test-report.json"))
    sys.stdout.write(propose(read_account(parser.parse_args().report)))


if __name__ == "__main__":
    main()
