"""The live pipeline and the archive on a log of their own, with a clock that stands still until it is told to move."""

from __future__ import annotations

import json

import pytest

from headrace import project
from headrace.alarms import PartitionCounts
from headrace.cli.init import create
from headrace.ingest.dead_letters.replay import LetterTopics, ReplayOptions, replay
from headrace.ingest.dead_letters.selection import LetterSelection
from headrace.testing import FakeClock
from tests.spark.both import Both

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
def both(spark, tmp_path):
    create(tmp_path / "shop")
    running = Both(project.load(tmp_path / "shop"), spark, FakeClock(NOW))
    yield running
    running.stop()


def records(log, topic):
    (start,) = log.start_offsets(topic).values()
    return log.read(topic, 0, start, limit=10_000)


LETTERS = LetterTopics("payments", "payments.dead")


def test_every_record_is_counted_once_and_the_refused_are_kept_with_their_reasons(both):
    pipeline = both.pipeline
    for value in SENT:
        pipeline.log.append("payments", value, key=b"42")
    told = both.settled("payments", len(SENT))
    assert told.verdicts == {"malformed": 1, "invalid": 1, "future": 1, "late": 1, "duplicate": 1, "admitted": 1}
    assert told.lag_events == 0

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
    (tile,) = (row for row in tiles if "version" in row)
    assert tile["version"] == 1
    assert tiles[-1]["as_of"] > tile["max_arrived_at"]

    # The odd one is mended and replayed after its tile was closed: it is admitted by its first arrival, and left to
    # the late lane, so that the watermark has nothing to drop.
    pipeline.clock.advance("1h")
    odd = ReplayOptions(LetterSelection(verdict="invalid"), value=payment("odd", "2026-01-01T11:59:59Z"))
    done = replay(pipeline.log, pipeline.plan.admissions[0].stream, LETTERS, odd, pipeline.clock)
    assert [each.verdict for each in done.sent] == ["admitted"]
    told = both.settled("payments", len(SENT) + 1)
    assert (told.verdicts["admitted"], told.verdicts["invalid"]) == (2, 1)
    assert told.included == pipeline.log.end_offsets("payments")
    tiles = [json.loads(row.value) for row in records(pipeline.log, "changelog.payments.by_card")]
    assert [row["version"] for row in tiles if "version" in row] == [1]
    assert both.tile_sets["payments.by_card"].dropped_by_watermark == 0

    assert both.alarms == []
    both.archiving.archives["payments"].watch.batch([PartitionCounts(0, 1, 0, 0, 9, 9, 5, 9)])
    both.turn()
    assert [(each.kind, each.stream) for each in both.alarms] == [("arrival_went_back", "payments")]

    before = len(tiles)
    pipeline.clock.advance("10m")
    pipeline.step()
    keys = [row.key for row in records(pipeline.log, "changelog.payments.by_card")]
    assert len(keys) == len(set(keys)) < before
