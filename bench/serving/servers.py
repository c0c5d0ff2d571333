"""Part 5: uvicorn against granian, the same application under both, for the record of the decision.

One worker each, reads of mix A, saturated by `wrk` on the other core. Granian is no dependency of Headrace: it is
installed beside, once, and found by its path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.harness import ROOT, Result, measured
from bench.realtime.processes import ended
from bench.serving.asgi import PROJECT
from bench.serving.content import A, content, fill, shop
from bench.serving.reads import ASKED, singles
from bench.serving.saturate import most_per_s
from bench.serving.served import served
from headrace.machine import cache_folder
from headrace.processes.ports import free_ports

GRANIAN = "granian==2.8.*"
STARTING = 30.0
APP = "bench.serving.asgi:made"
UVICORN = ["uvicorn", APP, "--factory", "--http", "httptools", "--loop", "uvloop", "--lifespan", "off"]
SERVERS = {
    "uvicorn": [*UVICORN, "--no-access-log", "--log-level", "warning"],
    "granian": ["granian", APP, "--factory", "--interface", "asginl", "--loop", "uvloop", "--no-ws", "--no-log"],
}


def servers(quick: bool) -> list[Result]:
    """Both servers in turns."""
    keys, rounds, seconds = (2_000, 1, 2) if quick else (20_000, 3, 8)
    beside = install()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = shop(folder, A)
        held = content(made, A, keys)
        fill(made, held)
        with served(made) as filling:
            filling.filled(held.rows)
            filling.at_rest()
        asked, most = singles(held.asked(ASKED)), {server: list[float]() for server in SERVERS}
        for _ in range(rounds):
            for server, command in SERVERS.items():
                with _running(command, made.config.root, beside) as port:
                    most_per_s(port, asked, 2, folder)
                    most[server].append(most_per_s(port, asked, seconds, folder))
    return [measured(f"server.{server}.max_per_s", found, "higher") for server, found in most.items()]


def install() -> Path:
    """The folder that granian is in; what it needs itself is here already."""
    folder = cache_folder(os.environ) / "bench" / GRANIAN.replace("==", "-").removesuffix(".*")
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), GRANIAN]
        ran = subprocess.run(pip, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"granian cannot be installed: {ran.stderr[-2000:]}")
        (folder / "ready").touch()
    return folder


@contextmanager
def _running(command: Sequence[str], root: Path, beside: Path) -> Iterator[int]:
    """A server while the block runs; its port."""
    (port,), log = free_ports(1), root / "server.log"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", ""), str(beside)]))
    env = {**os.environ, "PYTHONPATH": path, PROJECT: str(root)}
    whole = [sys.executable, "-m", *command, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    with ended(whole, log, env) as process:
        deadline = time.monotonic() + STARTING
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
            time.sleep(0.1)
        yield port


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True
