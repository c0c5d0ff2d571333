"""Feast 0.67 with DuckDB as its offline store, in an environment of its own."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from bench.past.data import History
from bench.realtime.processes import finished
from headrace.machine import cache_folder

VERSION = "0.67"
SIDE = Path(__file__).with_name("feast_side.py")


def newest(history: History) -> float:
    """Seconds for the newest row of every card as of the spine's times."""
    python = _install()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"FEAST_USAGE": "False"}
    with tempfile.TemporaryDirectory() as folder:
        said = finished([str(python), str(SIDE), folder, str(history.events), str(history.spine), folder], env)
    return float(json.loads(said.strip().splitlines()[-1])["seconds"])


def _install() -> Path:
    """The interpreter of Feast's environment, made once."""
    folder = cache_folder(os.environ) / "bench" / f"feast-duckdb-{VERSION}"
    if not (folder / "ready").exists():
        uv = [sys.executable, "-m", "uv"]
        finished([*uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)])
        wanted = f"feast[duckdb]=={VERSION}.*"
        finished([*uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), wanted])
        (folder / "ready").touch()
    return folder / "bin" / "python"
