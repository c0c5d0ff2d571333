"""One engine under one load: started, warmed up, measured over the ends of two batches, and its tiles counted."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.realtime import flink, load
from bench.realtime.latency import Latencies, latencies
from bench.realtime.processes import ended
from headrace import project
from headrace.cli.init import create
from headrace.config.config import names
from headrace.log.kafka.log import KafkaLog
from headrace.processes import broker, jars
from headrace.project import Project
from headrace.spark.pipeline.runs import checkpoint_of
from headrace.spark.progress import last_batch_end
from headrace.tiles.run_choice import FIRST_RUN
from headrace.topics import broker_folder, open_log, topics
from headrace.topics import create as create_topics

HERE = Path(__file__).parent
SETTLING = 60.0
SPAWN = multiprocessing.get_context("spawn")
SETTINGS = """
[log]
kind = "kafka"
partitions = 1
"""


@dataclass(frozen=True)
class Engine:
    """What is compared: how it is started over a project's broker, where its rows go, and what they look like."""

    name: str
    running: Callable[[Project, str], AbstractContextManager[None]]
    changelog: str
    row: bytes


@dataclass(frozen=True)
class Load:
    """Events a second, and how many cards they are spread over."""

    rate: int
    keys: int

    @property
    def name(self) -> str:
        """As results are called.

        >>> Load(1_000, 5_000).name, Load(5_000, 100_000).name
        ('1k', '5k.keys_100k')
        """
        return f"{self.rate // 1000}k" + ("" if self.keys == USUAL else f".keys_{self.keys // 1000}k")


USUAL = 5_000


@contextmanager
def shop(mode: str = "real-time") -> Iterator[tuple[Project, str]]:
    """A project with the view of the comparison, its local broker and its topics."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "shop"
        create(root)
        shutil.copy(HERE / "features.py", root / "features.py")
        file = root / "headrace.toml"
        text = file.read_text("utf-8").replace('mode = "micro-batch"', f'mode = "{mode}"') + SETTINGS
        file.write_text(text, encoding="utf-8")
        made = project.load(root)
        for wanted in (jars.BROKER, jars.CONNECTOR):
            jars.fetch(wanted)
        up = broker.up(broker_folder(made.config))
        try:
            with open_log(made.config) as log:
                create_topics(log, topics(made.plan(), names(made.config), made.config.log.partitions))
                assert isinstance(log, KafkaLog)  # noqa: S101
                log.create_topic(FLINK.changelog, compacted=True)
            yield made, up.brokers
        finally:
            broker.down(broker_folder(made.config))


@contextmanager
def pipeline(made: Project, _: str) -> Iterator[None]:
    """The whole `headrace run pipeline`, with all it does beside the tiles."""
    with started(made):
        until((checkpoint(made) / "metadata").exists, "the tile query did not start")
        yield


def started(made: Project) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """The pipeline's process."""
    command = [sys.executable, "-P", "-m", "headrace.cli.main", "run", "pipeline", "--project", str(made.config.root)]
    return ended(command, made.config.root / "pipeline.log")


def included(made: Project) -> int:
    """Records that are in the tiles."""
    return sum((last_batch_end(checkpoint(made)) or {}).values())


def caught_up(made: Project, count: int, warm: int) -> float:
    """Events a second of a backlog of `count`, after the first `warm`."""
    began, before = 0.0, 0
    with started(made) as process:
        while (done := included(made)) < count:
            if process.poll() is not None:
                raise RuntimeError(f"the pipeline ended with {process.returncode}")
            if not began and done >= warm:
                began, before = time.perf_counter(), done
            time.sleep(0.02)
        return (count - before) / (time.perf_counter() - began)


def checkpoint(made: Project) -> Path:
    """The tile query's checkpoint."""
    (tiles,) = made.plan().tile_sets
    return names(made.config).path("checkpoints", checkpoint_of(tiles, FIRST_RUN))


def until(holds: Callable[[], bool], otherwise: str, within: float = SETTLING) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(otherwise)
        time.sleep(0.05)


@contextmanager
def flink_job(made: Project, brokers: str) -> Iterator[None]:
    """The same in Flink SQL."""
    given = {"brokers": brokers, "source": load.SOURCE, "changelog": FLINK.changelog}
    with flink.job(made.config.root / "flink", given):
        yield


HEADRACE = Engine(
    "realtime", pipeline, "changelog.payments.by_card", rb'^\{"version":(\d+),.*"positions":\{"0":(\d+)\}'
)
FLINK = Engine("flink", flink_job, "tiles", rb'"n":(\d+),.*"next_offset":(\d+)')


def measure(engine: Engine, under: Load, warm: float, seconds: float) -> Latencies:
    """Latencies of an engine under a load; refused when its tiles do not hold every payment once."""
    with shop() as (made, brokers), ExitStack() as stack:
        folder = made.config.root
        sending, receiving = SPAWN.Event(), SPAWN.Event()
        receiver = spawned(load.receive, brokers, engine.changelog, engine.row, folder / "rows.npy", receiving)
        stack.callback(receiver.terminate)
        stack.enter_context(engine.running(made, brokers))
        sent = folder / "sent.npz"
        sender = spawned(load.send, brokers, under.rate, under.keys, warm + seconds, sent, sending)
        stack.callback(sender.terminate)
        sender.join(warm + seconds + SETTLING)
        with np.load(sent) as held:
            wanted = len(held["moments"]) - int(held["copies"])
        all_there = lambda: load.events_in_tiles(brokers, engine.changelog, engine.row) == wanted  # noqa: E731
        until(all_there, f"{engine.name}: the tiles do not hold the {wanted:,} payments that were sent, each once")
        receiving.set()
        receiver.join(SETTLING)
        return latencies(sent, folder / "rows.npy", warm, _ends(made))


def spawned(target: Callable[..., None], *arguments: object) -> multiprocessing.process.BaseProcess:
    started = SPAWN.Process(target=target, args=arguments, daemon=True)
    started.start()
    return started


def _ends(made: Project) -> list[float]:
    """When batches of the tile query ended."""
    return [file.stat().st_mtime for file in (checkpoint(made) / "commits").glob("[0-9]*")]
