"""`headrace run serve` as a process of its own: started, filled, settled, and asked how it stands."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench.realtime.processes import ended
from bench.weigh import cpu_seconds
from headrace.config.config import names
from headrace.project import Project
from headrace.serve.server import READY_FILE

STARTING, FILLING = 60.0, 900.0
IDLE = 0.1
"""Seconds of a core in half a second below which a process may be at rest."""
CALM = 3
"""Looks in a row that must find it so."""


@dataclass(frozen=True)
class Served:
    """One that runs."""

    pid: int
    port: int

    def get(self, path: str) -> Any:
        """The JSON under a path."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return json.load(answer)

    def post(self, path: str, body: Any) -> Any:
        """The answer to a JSON body."""
        head = {"Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), head, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def status(self) -> dict[str, Any]:
        """What `/status.json` says."""
        told: dict[str, Any] = self.get("/status.json")
        return told

    def ready(self, within: float = STARTING) -> None:
        """Wait until it is."""
        deadline = time.monotonic() + within
        while True:
            try:
                if self.get("/ready")["ready"]:
                    return
            except urllib.error.HTTPError as error:
                error.close()
            if time.monotonic() > deadline:
                raise RuntimeError(f"serving is not ready: {self.status()['waiting_for']}")
            time.sleep(0.1)

    def filled(self, rows: int) -> float:
        """Wait until so many rows are in the store; how many were folded in a second."""
        deadline, seen = time.monotonic() + FILLING, list[tuple[float, int]]()
        while not seen or seen[-1][1] < rows:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the store is not full: {seen[-1:]} of {rows}")
            told = self.status()["materialiser"]
            if told["applied_at"] is not None:
                seen.append((datetime.fromisoformat(told["applied_at"]).timestamp(), told["tiles"]))
            time.sleep(0.2)
        self.ready()
        (began, before), (over, after) = seen[0], seen[-1]
        return (after - before) / (over - began) if over > began else float(after)

    def at_rest(self, within: float = FILLING) -> None:
        """Wait until there is nothing left to do: levels are made and what has expired is gone."""
        deadline, calm = time.monotonic() + within, 0
        used, held = cpu_seconds(self.pid), self.status()["store"]
        while calm < CALM:
            if time.monotonic() > deadline:
                raise RuntimeError("the serving process does not come to rest")
            time.sleep(0.5)
            before, then = used, held
            used, held = cpu_seconds(self.pid), self.status()["store"]
            # On a busy machine a process that works may have little of it: what it does shows in the store.
            calm = calm + 1 if used - before < IDLE and held == then else 0


@contextmanager
def served(made: Project, *, workers: int = 1) -> Iterator[Served]:
    """The process while the block runs; it listens, and perhaps is not ready."""
    root, file = made.config.root, names(made.config).path(READY_FILE)
    command = [sys.executable, "-P", "-m", "headrace.cli.main", "run", "serve", "--port", "0", "--project", str(root)]
    env = {**os.environ, "HEADRACE_SERVE_WORKERS": str(workers)}
    file.unlink(missing_ok=True)
    with ended(command, root / "serve.log", env) as process:
        deadline = time.monotonic() + STARTING
        while not file.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"serving did not start: {(root / 'serve.log').read_text('utf-8')[-2000:]}")
            time.sleep(0.05)
        yield Served(process.pid, json.loads(file.read_text("utf-8"))["port"])
