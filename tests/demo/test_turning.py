"""Weeks in which thieves change their ways, as a project and as records in the order in which they arrive."""

from __future__ import annotations

import json

from headrace import project
from headrace.cli.init import create
from headrace.clock import DAY, HOUR, micros
from headrace.log import MemoryLog
from headrace_demo import turning
from headrace_demo.command import DEMO_FILES
from headrace_demo.shop import HISTORY, LABELS


def shop(folder):
    create(folder, DEMO_FILES)
    turning.as_a_replay(folder)
    return project.load(folder)


def test_its_project_goes_by_the_times_of_its_records_and_is_watched(tmp_path):
    loaded = shop(tmp_path / "shop")
    plan = loaded.plan()
    assert {stream.name: stream.arrival.name for stream in loaded.streams} == {
        "payments": "arrived_at",
        "disputes": "at",
    }
    (label,) = plan.labels
    assert (label.model.name, label.window) == ("risk", loaded.config.drift.window)
    assert loaded.config.drift.labels_after < label.horizon


def test_what_is_known_before_is_in_files_and_the_rest_comes_by_arrival(tmp_path):
    world = turning.world_of(3)
    replay = turning.written(tmp_path, world)
    told = [json.loads(line) for line in (tmp_path / HISTORY).read_text().splitlines()]
    assert max(micros(each["arrived_at"]) for each in told) < turning.BEGIN
    known = [json.loads(line) for line in (tmp_path / LABELS).read_text().splitlines()]
    assert max(micros(each["at"]) for each in known) < turning.BEGIN
    arrivals = []
    for stream, message in turning.records(replay):
        try:
            record = json.loads(message.value)
        except ValueError:
            continue
        arrivals.append(micros(record["arrived_at" if stream == "payments" else "at"]))
    assert arrivals == sorted(arrivals)
    assert turning.BEGIN <= arrivals[0] < arrivals[-1] < world.start
    # All that a window needs to be judged comes while it is replayed: labels take five days.
    assert world.start - replay.turned >= 6 * DAY


def test_thieves_are_as_busy_as_before(tmp_path):
    replay = turning.written(tmp_path, turning.world_of(3))
    before = [each for each in replay.payments if each.sent_at < replay.turned]
    after = [each for each in replay.payments if each.sent_at >= replay.turned + HOUR]
    assert {each.story for each in after if each.is_fraud} == {"patient"}
    assert "patient" not in {each.story for each in before}
    shares = [sum(each.is_fraud for each in some) / len(some) for some in (before, after)]
    assert abs(shares[0] - shares[1]) < 0.005


def test_everything_is_sent_once(tmp_path):
    loaded = shop(tmp_path / "shop")
    replay = turning.written(tmp_path / "shop", turning.world_of(3))
    few = turning.Replay(replay.payments[:500], replay.labels[:300], replay.turned)
    log, said = MemoryLog(), list[int]()
    for topic in ("payments", "disputes"):
        log.create_topic(topic)
    turning.send(loaded, log, few, 1_000_000.0, said.append)
    assert {topic: log.end_offsets(topic)[0] for topic in ("payments", "disputes")} == {
        "payments": 500,
        "disputes": 300,
    }
    assert said[-1] == 500
