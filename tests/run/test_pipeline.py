"""The live pipeline on a log of its own, with a clock that stands still until it is told to move."""

from __future__ import annotations

import json
import time

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.letters.choose import Wanted
from headrace.letters.replay import Topics, Wish, replay
from headrace.testing import FakeClock
from headrace.watch import Seen

pytestmark = pytest.mark.spark

NOW = "2026-01-01T12:00:00Z"


def payment(id, at, amount="10.0"):
    return f'{{"id":"{id}","card":"42","amount":{amount},"country":"DE","at":"{at}"}}'.encode()


SENT = [
    payment("good", "2026-01-01T11:59:59Z"),
    payment("good", "2026-01-01T11:59:59Z"),
    payment("late", "2026-01-01T11:50:00Z"),
    payment("ahead", "2026-01-01T12:10:00Z"),
    payment("odd", "2026-01-01T11:59:59Z", amount='"a lot"'),
    b"{not json",
]


@pytest.fixture
def pipeline(spark, tmp_path):
    from headrace.run.pipeline import Pipeline
    from headrace.run.source import register

    register(spark)
    create(tmp_path / "shop")
    shop = project.load(tmp_path / "shop")
    running = Pipeline(shop.plan(), shop.config, spark, FakeClock(NOW))
    yield running
    running.stop()


def records(log, topic):
    (start,) = log.start_offsets(topic).values()
    return log.read(topic, 0, start, limit=10_000)


def settled(pipeline, read):
    """Beat until everything sent is counted; a beat moves the clock, because the status is told once a second."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        pipeline.clock.advance("1s")
        pipeline.beat()
        told = json.loads(records(pipeline.log, "headrace.status")[-1].value)["streams"]["payments"]
        if told["settled"] and told["read"] == read:
            return told
        pipeline.queries[0].awaitTermination(0.1)
    raise AssertionError(told)


def status(pipeline):
    return json.loads(records(pipeline.log, "headrace.status")[-1].value)


LETTERS = Topics("payments", "payments.dead")


def test_every_record_is_counted_once_and_the_refused_are_kept_with_their_reasons(pipeline):
    for value in SENT:
        pipeline.log.append("payments", value, key=b"42")
    told = settled(pipeline, len(SENT))
    assert told["verdicts"] == {"malformed": 1, "invalid": 1, "future": 1, "late": 1, "duplicate": 1, "admitted": 1}
    assert told["lag_events"] == 0

    dead = {dict(letter.headers)["verdict"]: letter for letter in records(pipeline.log, "payments.dead")}
    assert {verdict: letter.value for verdict, letter in dead.items()} == {
        b"malformed": SENT[5],
        b"invalid": SENT[4],
        b"future": SENT[3],
    }
    assert dict(dead[b"invalid"].headers)["reason"] == b"amount must be a finite number"
    assert dead[b"future"].key.endswith(b"/3")
    (late,) = records(pipeline.log, "payments.late")
    assert late.value == SENT[2]

    tiles = [json.loads(row.value) for row in records(pipeline.log, "changelog.payments.by_card")]
    assert [row["version"] for row in tiles if "version" in row] == [1]
    assert tiles[-1]["as_of"] > tiles[0]["max_arrived_at"]

    # The odd one is mended and replayed after its tile was closed: it is admitted by its first arrival, and left to
    # the late lane, so that the watermark has nothing to drop.
    pipeline.clock.advance("1h")
    odd = Wish(Wanted(verdict="invalid"), value=payment("odd", "2026-01-01T11:59:59Z"))
    done = replay(pipeline.log, pipeline.plan.admissions[0].stream, LETTERS, odd, pipeline.clock)
    assert [each.verdict for each in done.sent] == ["admitted"]
    told = settled(pipeline, len(SENT) + 1)
    assert (told["verdicts"]["admitted"], told["verdicts"]["invalid"]) == (2, 1)
    assert told["included"] == {str(p): end for p, end in pipeline.log.end_offsets("payments").items()}
    tiles = [json.loads(row.value) for row in records(pipeline.log, "changelog.payments.by_card")]
    assert [row["version"] for row in tiles if "version" in row] == [1]
    assert status(pipeline)["tile_sets"]["payments.by_card"]["dropped_by_watermark"] == 0

    assert status(pipeline)["alarms"] == []
    pipeline.admissions[0].watch.batch([Seen(0, 1, 0, 0, 9, 9, 5, 9)])
    pipeline.clock.advance("1s")
    pipeline.beat()
    alarms = status(pipeline)["alarms"]
    assert [(each["kind"], each["stream"]) for each in alarms] == [("arrival_went_back", "payments")]

    before = len(tiles)
    pipeline.clock.advance("10m")
    pipeline.beat()
    keys = [row.key for row in records(pipeline.log, "changelog.payments.by_card")]
    assert len(keys) == len(set(keys)) < before
