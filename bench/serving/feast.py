"""Feast 0.67 with Redis on this machine, in an environment of its own: installed once, loaded, served, and timed.

It is set up as its guide to fast online serving says: one feature view behind a feature service, Redis as the online
store, a registry that is kept in memory, two workers for each core and one more, no access log. Redis writes nothing to
the disk. What runs in Feast's environment is `feast_side`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.realtime.processes import ended, finished
from bench.serving.open_loop import Request
from headrace.machine import cache_folder
from headrace.processes.ports import free_ports

VERSION = "0.67"
STARTING = 90.0
SIDE = Path(__file__).with_name("feast_side.py")
SETTINGS = """project: cards
provider: local
registry:
  path: {folder}/registry.db
  cache_ttl_seconds: 3600
online_store:
  type: redis
  connection_string: "127.0.0.1:{port}"
offline_store:
  type: file
entity_key_serialization_version: 3
"""


def install(extra: str = "redis") -> Path:
    """The folder of Feast's environment with one of its extras, made once."""
    folder = cache_folder(os.environ) / "bench" / f"feast-{extra}-{VERSION}"
    if not (folder / "ready").exists():
        uv = [sys.executable, "-m", "uv"]
        finished([*uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)])
        wanted = f"feast[{extra}]=={VERSION}.*"
        finished([*uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), wanted])
        (folder / "ready").touch()
    return folder / "bin"


def environment() -> dict[str, str]:
    """Nothing of this environment is to be found in Feast's; it does not tell anybody that it is used."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"FEAST_USAGE": "False"}


@dataclass(frozen=True)
class Feast:
    """A feature repository over a Redis that runs."""

    bin: Path
    folder: Path

    def load(self, table: Path) -> None:
        """Define the features of a Parquet file, and put its rows into Redis."""
        self._side("load", str(self.folder), str(table))

    def timed(self, cards: Sequence[str]) -> npt.NDArray[np.float64]:
        """Milliseconds of a read of each card with Feast's SDK, in one process, one after the other."""
        asked, took = self.folder / "asked.json", self.folder / "took.npy"
        asked.write_text(json.dumps(list(cards)), encoding="utf-8")
        self._side("time", str(self.folder), str(asked), str(took))
        found: npt.NDArray[np.float64] = np.load(took)
        return found

    def _side(self, *arguments: str) -> None:
        # Its own folder is not to be searched: this module has the name of Feast's.
        finished([str(self.bin / "python"), "-P", str(SIDE), *arguments], environment())

    @contextmanager
    def server(self) -> Iterator[int]:
        """Feast's HTTP server while the block runs; its port."""
        (port,) = free_ports(1)
        command = [
            str(self.bin / "feast"),
            "--chdir",
            str(self.folder),
            "serve",
            "--port",
            str(port),
            "--workers",
            "-1",
        ]
        fast = ["--no-access-log", "--max-requests", "1000000", "--registry_ttl_sec", "300"]
        with ended([*command, *fast], self.folder / "serve.log", environment()) as process:
            deadline = time.monotonic() + STARTING
            while not _healthy(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (self.folder / "serve.log").read_text("utf-8", "replace")
                    raise RuntimeError(f"Feast's server did not start: {said[-2000:]}")
                time.sleep(0.2)
            yield port


@contextmanager
def feast(folder: Path) -> Iterator[Feast]:
    """A repository in a folder, and its Redis, while the block runs."""
    found, (port,) = install(), free_ports(1)
    folder.mkdir()
    (folder / "feature_store.yaml").write_text(SETTINGS.format(folder=folder, port=port), encoding="utf-8")
    nothing = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
    with ended(["redis-server", "--port", str(port), *nothing], folder / "redis.log"):
        yield Feast(found, folder)


def requests(cards: Sequence[str]) -> list[Request]:
    """What Feast's server is asked, one key each."""
    bodies = ({"feature_service": "cards", "entities": {"card": [card]}} for card in cards)
    return [Request("/get-online-features", json.dumps(body)) for body in bodies]


def refuse_wrong(port: int, card: str, features: int) -> None:
    """Refuse to measure answers that are not what was asked for."""
    (asked,) = requests([card])
    head = {"Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}{asked.path}"
    with urllib.request.urlopen(urllib.request.Request(url, asked.body.encode(), head), timeout=30) as answer:
        told = json.load(answer)
    present = [each["statuses"][0] == "PRESENT" for each in told["results"]]
    if sum(present) != features + 1:
        raise RuntimeError(f"Feast has not {features} features of {card}: {told}")


def _healthy(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True
