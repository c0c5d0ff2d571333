"""Feast 0.67 with DuckDB as its offline store, in an environment of its own."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from bench.past.data import History
from bench.realtime.processes import finished
from bench.serving.feast import environment, install

SIDE = Path(__file__).with_name("feast_side.py")


def newest(history: History) -> float:
    """Seconds for the newest row of every card as of the spine's times."""
    python = install("duckdb") / "python"
    with tempfile.TemporaryDirectory() as folder:
        said = finished(
            [str(python), str(SIDE), folder, str(history.events), str(history.spine), folder], environment()
        )
    return float(json.loads(said.strip().splitlines()[-1])["seconds"])
