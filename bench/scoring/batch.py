"""Part 3: a whole table in Spark, two million rows of twenty features, with the scorer of the other parts.

Spark is a process of its own (`bench.scoring.table`), on two cores; counted is from the call to the last row, with
Spark making the rows up, and without its start. Nothing is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness import ROOT, Result, measured
from bench.scoring.champion import promoted, shop

ROWS, QUICK_ROWS, ROUNDS = 2_000_000, 200_000, 3


def batch(quick: bool) -> list[Result]:
    """Rows a second, the median of three times."""
    rows = QUICK_ROWS if quick else ROWS
    with tempfile.TemporaryDirectory() as folder:
        made = shop(Path(folder))
        promoted(made)
        command = [sys.executable, "-m", "bench.scoring.table", str(made.config.root), str(rows), str(ROUNDS)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    if ran.returncode:
        raise RuntimeError(f"scoring a table failed with {ran.returncode}")
    seconds = json.loads(ran.stdout.strip().splitlines()[-1])["seconds"]
    return [measured("batch.max_per_s", [rows / each for each in seconds], "higher", 200_000.0)]
