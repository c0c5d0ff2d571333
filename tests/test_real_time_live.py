"""Real-time mode live on Kafka: killed and changed to the other mode and back, what is served is the reference.

The short test runs the pipeline alone on the broker that tests share; the long one runs the whole stack.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SECOND, SystemClock, micros
from headrace.config.config import names
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.read.reader import Reader
from headrace.spark.pipeline.runs import checkpoint_of
from headrace.spark.progress import last_batch_end
from headrace.status.records import PipelineStatus
from headrace.status.topic import read_status
from headrace.store import MemoryStore
from headrace.store.materializer import Materialiser
from headrace.tiles.run_choice import FIRST_RUN
from headrace.topics import STATUS, open_log, topics
from headrace.topics import create as create_topics
from headrace_demo import stack
from tests.flow import flow, message
from tests.processes.cluster import free_ports
from tests.test_end_to_end import headrace, pid_of, served, settled, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FEW = 400
"""Records of the short test: one half before the kill, the other after it."""
PER_SECOND, SECONDS, KILLS = 200, 20, 2
PATIENCE = 400.0
"""On a machine that is busy with other tests, three starts of Spark in a row take minutes."""
SETTINGS = """
[log]
kind = "kafka"
partitions = 1
"""
SHARED_BROKER = """
[kafka]
brokers = "{}"
"""


def make_project(folder: Path, settings: str, first_line: str = "") -> None:
    """Make a project in real-time mode."""
    create(folder)
    file = folder / "headrace.toml"
    real_time = file.read_text().replace('mode = "micro-batch"', 'mode = "real-time"\nreal_time_batch = "5s"')
    file.write_text(first_line + real_time + settings)


class PipelineProcess:
    """`headrace run pipeline` as a process group of its own, which is killed when the block ends."""

    def __init__(self, folder: Path, output: Path) -> None:
        self._command = [sys.executable, "-P", "-m", "headrace.cli.main", "run", "pipeline", "--project", str(folder)]
        self._output = output

    def __enter__(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output, start_new_session=True)

    def __exit__(self, *_: object) -> None:
        # Python and the JVM at once: neither can finish anything for the other.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class FoldedChangelog:
    """The changelog of the only tile set, folded into a store, and how far its pipeline is."""

    def __init__(self, shop, log) -> None:
        self._log, self._named = log, names(shop.config)
        (self._tile_set,) = shop.plan().tile_sets
        store = MemoryStore()
        self.reader = Reader(shop.plan(), store)
        self._materialiser = Materialiser(log, store, [self._named.topic(f"changelog.{self._tile_set.id}")])

    def read_progress(self):
        """Fold what has come; gives how far the rows are."""
        while self._materialiser.step():
            pass
        return self.reader.progress(self._tile_set)

    def is_ready(self) -> bool:
        """Whether the pipeline takes events."""
        told = json.loads(self._named.path("run", "pipeline.json").read_text())
        return bool(told["components"]["pipeline"]["ready"])

    def is_ahead_of_commits(self) -> bool:
        """Whether rows are written of a batch that Spark has not committed."""
        committed = last_batch_end(self._named.path("checkpoints", checkpoint_of(self._tile_set, FIRST_RUN)))
        return bool(self.read_progress().positions[0] > (committed or {0: 0})[0])

    def read_mode(self, since: int) -> str | None:
        """The mode of the query, from a status that is newer than `since`."""
        records = read_status(self._log, self._named.topic(STATUS), PipelineStatus)
        status = records.get(PipelineStatus)
        if status is None or records.arrived_at(PipelineStatus) <= since:
            return None
        return status.tile_sets[self._tile_set.id].mode


def test_a_pipeline_that_is_killed_within_a_real_time_batch_goes_on_and_every_value_is_the_reference(
    tmp_path, kafka, seed
):
    folder, output = tmp_path / "shop", tmp_path / "pipeline.log"
    make_project(folder, SETTINGS + SHARED_BROKER.format(kafka.brokers), 'prefix = "killed"\n')
    shop = project.load(folder)
    (view,), named = shop.views, names(shop.config)
    source, pipeline = named.topic("payments"), PipelineProcess(folder, output)
    try:
        with open_log(shop.config) as log:
            create_topics(log, topics(shop.plan(), named, 1))
            folded = FoldedChangelog(shop, log)
            with pipeline:
                until(folded.is_ready, "the pipeline takes no events")
                sent = [message(record) for record in flow(FEW, seed=seed, partitions=1, now=datetime.now(UTC))]
                log.append_batch(source, sent[: FEW // 2])
                until(folded.is_ahead_of_commits, "no row is written before its batch is committed")
            killed_at = SystemClock().now()
            with pipeline:
                log.append_batch(source, sent[FEW // 2 :])
                last = SystemClock().now()
                until(lambda: folded.read_progress().as_of > last, "the pipeline does not catch up")
                until(lambda: folded.read_mode(killed_at) == "real-time", "it does not go on event by event")
            outcome = ReferenceResult(shop.plan(), stack.everything(log, source, "payments"))
            now = SystemClock().now()
            assert len(outcome.judged["payments"]) == FEW
            for key in outcome.keys(view):
                assert differences(outcome, view, key, (now,), folded.reader.read(view.name, key, now).values) == []
    finally:
        # Shown when the test fails.
        sys.stderr.write(output.read_text()[-8_000:] if output.exists() else "")


@pytest.mark.prove
@pytest.mark.xdist_group("live")
def test_killed_in_real_time_and_changed_to_micro_batches_and_back_every_value_is_the_reference(tmp_path, seed):
    folder = tmp_path / "shop"
    make_project(folder, SETTINGS)
    headrace(folder, "kafka", "up", "--port", str(free_ports(1)[0]))
    chance = random.Random(seed)
    try:
        shop = project.load(folder)
        (view,) = shop.views
        assert view.name in shop.plan().features[0].id
        assert [tiles.mode for tiles in shop.plan().tile_sets] == ["real-time"]
        with open_log(shop.config) as log:
            for mode, kills in (("real-time", KILLS), ("micro-batch", 0), ("real-time", 1)):
                headrace(folder, "up", "--detach", "--port", "0", "--mode", mode)
                moments = sorted(chance.uniform(0.2, 0.9) for _ in range(kills))
                send(shop, log, moments, seed=len(mode) + kills)
                with closing(stack.Reader(served(shop.config))) as reader:
                    compared(shop, log, view, reader, mode)
                headrace(folder, "down")
    finally:
        # Shown when the test fails.
        sys.stderr.write((folder / ".headrace" / "logs" / "spark.log").read_text()[-8_000:])
        headrace(folder, "down")
        headrace(folder, "kafka", "down")


def send(shop, log, moments, seed):
    """Send payments while the pipeline is killed at some shares of them."""
    start = SystemClock().now() + SECOND
    sent = sample_payments.payments(PER_SECOND * SECONDS, seed=seed, start=start, per_second=PER_SECOND, cards=50)
    left = list(moments)

    def strike(done):
        if left and done >= left[0] * len(sent):
            left.pop(0)
            os.kill(until(lambda: pid_of(shop.config, "spark"), "no Spark process"), signal.SIGKILL)

    stack.send(log, "payments", sent, strike)
    assert not left


def compared(shop, log, view, reader, mode):
    """Everything that was sent is in every answer."""
    stack.included(reader, view, "card-000", SystemClock().now(), PATIENCE)
    records = stack.everything(log, "payments", "payments")
    outcome = ReferenceResult(shop.plan(), records)
    for (card,) in outcome.keys(view):
        answer = reader.features(view, card)
        assert answer["mode"] == mode
        assert differences(outcome, view, (card,), (micros(answer["at"]),), answer["features"]) == []
    told = until(lambda: settled(reader), "the counts did not settle")
    assert sum(told["verdicts"].values()) == told["read"] == len(records)
