"""A real query whose state was cut off: the pipeline begins the run anew, and every event counts once."""

from __future__ import annotations

import contextlib
import time

import pytest
from pyspark.errors import StreamingQueryException

from headrace import project
from headrace.cli.init import create
from headrace.errors import HeadraceError
from headrace.log.record import Message
from headrace.spark.pipeline import state_damage
from headrace.spark.pipeline.checkpoint_damage import ASIDE
from headrace.spark.progress import last_batch, last_batch_end
from headrace.testing import FakeClock
from tests.spark.test_query_state import NOW, events_in_tiles, payment, started, status

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(tmp_path):
    create(tmp_path / "shop")
    return project.load(tmp_path / "shop")


def send(pipeline, first, last):
    now = pipeline.clock.now()
    sent = [payment(f"p{number}", now, card=f"c{number}") for number in range(first, last)]
    pipeline.log.append_batch("payments", [Message(value) for value in sent])


def step_until_read(pipeline):
    """Step until everything in the log is committed; a query that fails is an error."""
    deadline = time.monotonic() + 120
    (tile,) = pipeline.runs.serving
    while last_batch_end(tile.place.checkpoint) != pipeline.log.end_offsets("payments"):
        assert time.monotonic() < deadline, status(pipeline)
        pipeline.clock.advance("1s")
        pipeline.step()
        with contextlib.suppress(StreamingQueryException):  # the next step says it
            tile.query.awaitTermination(0.05)
    pipeline.step()


def test_a_run_begins_anew_when_spark_cannot_load_its_state(spark, shop, monkeypatch):
    clock = FakeClock(NOW)
    with started(spark, shop, clock) as pipeline:
        send(pipeline, 0, 5)
        step_until_read(pipeline)
        checkpoint = pipeline.runs.serving[0].place.checkpoint
        version = (last_batch(checkpoint) or 0) + 1
    (changelog,) = checkpoint.joinpath("state", "0", "0").glob(f"{version}_*.changelog")
    # Without sums nobody but Spark can tell that a file was cut off.
    changelog.write_bytes(changelog.read_bytes()[:60])
    for sums in list(changelog.parent.glob("*.crc")):
        sums.unlink()

    monkeypatch.setattr(state_damage, "FAILURES", 1)
    with started(spark, shop, clock) as pipeline:
        assert pipeline.renewals == []
        send(pipeline, 5, 6)
        with pytest.raises(HeadraceError) as caught:
            step_until_read(pipeline)
        assert caught.value.code == "spark-failed"

    with started(spark, shop, clock) as pipeline:
        send(pipeline, 6, 8)
        step_until_read(pipeline)
        (alarm,) = status(pipeline)["alarms"]
        assert alarm["kind"] == "checkpoint_damaged"
        assert "Spark failed to load its state" in alarm["says"]
        assert events_in_tiles(pipeline.log, "1") == 8
    assert (checkpoint.parent / ASIDE / checkpoint.name / changelog.relative_to(checkpoint)).exists()
