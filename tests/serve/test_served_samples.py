"""A sample of what was served: what an audit needs, at no cost to who reads."""

from __future__ import annotations

import json
import threading

import pytest

from headrace.config.serve_settings import ServeSettings
from headrace.errors import MachineError
from headrace.serve import served_samples as module
from headrace.serve.served_samples import Samples
from headrace.serve.server_options import ServerOptions
from headrace.tiles.changelog import ProgressRow
from tests.serve.conftest import NAMES, World, plan, users
from tests.streams import BASE


def served(world, view="users"):
    return [json.loads(record.value) for record in world.log.read(NAMES.topic(f"served.{view}"), 0, 0)]


@pytest.fixture
def world():
    made = World(terms=ServerOptions(settings=ServeSettings(sample=1.0)))
    made.pipeline({"id": "a", "user": "ann", "price": "1.50", "at": BASE}, {"id": "b", "user": "bob", "at": BASE})
    made.clock.advance("2s")
    return made


def test_a_sample_has_the_answer_and_all_that_was_read_for_it(world):
    answer = world.get("/v1/features/users/ann").json()
    world.serving.samples.step()
    (sample,) = served(world)
    (tiles,) = {planned.tile_set for planned in plan.view("users")}
    assert {name: sample[name] for name in answer} == answer
    assert (sample["plan"], sample["tile_set"], sample["run"]) == (plan.fingerprint, tiles.fingerprint, "1")
    assert sample["positions"] == {"0": 2}
    assert len(sample["version"]) == len(plan.fingerprint)


def test_each_key_of_a_batch_and_each_view_of_a_set_is_a_read(world):
    world.post(view="users", keys=["ann", "bob"])
    world.post(view="habits", keys=["ann"], request={"budget": 1})
    world.serving.samples.step()
    assert [sample["key"]["user"] for sample in served(world)] == ["ann", "bob", "ann"]
    assert len(served(world, "everyone")) == 1
    assert world.get("/status.json").json()["requests"]["samples_kept"] == 4


def test_a_read_that_met_new_progress_half_way_does_not_name_positions(world, monkeypatch):
    reader = world.serving.monitor._reader
    old = ProgressRow(plan.tile_sets[0].fingerprint, "1", {0: 1}, BASE - 1)
    real, calls = reader.progress, []

    def moving(tile_set):
        calls.append(tile_set)
        return old if len(calls) == 1 else real(tile_set)

    monkeypatch.setattr(reader, "progress", moving)
    world.get("/v1/features/users/ann")
    world.serving.samples.step()
    (sample,) = served(world)
    assert (sample["positions"], sample["run"], sample["as_of"]) == (None, None, "2026-01-01T00:00:00Z")


def test_a_share_of_the_reads_is_kept(world):
    chances = iter([0.05, 0.5, 0.099, 0.1, 0.9])
    made = Samples(plan, world.log, NAMES, 0.1, lambda: next(chances))
    assert [made.wanted() for _ in range(5)] == [True, False, True, False, False]


def test_without_a_share_chance_is_not_even_asked(world):
    assert not Samples(plan, world.log, NAMES, 0.0, lambda: 1 / 0).wanted()


def test_beyond_the_buffer_samples_are_dropped_and_counted_and_reads_go_on(world, monkeypatch):
    monkeypatch.setattr(module, "BUFFER", 2)
    for _ in range(5):
        assert world.get("/v1/features/users/ann").status_code == 200
    world.serving.samples.step()
    assert len(served(world)) == 2
    assert "headrace_samples_dropped_total 3" in world.get("/metrics").text
    assert world.get("/status.json").json()["requests"]["samples_dropped"] == 3


@pytest.mark.parametrize("error", [MachineError("log-full", "The disk is full."), OSError("gone")])
def test_a_log_that_takes_none_costs_samples_and_no_read(world, monkeypatch, caplog, error):
    def failing(topic, messages):
        raise error

    monkeypatch.setattr(world.log, "append_batch", failing)
    for _ in range(2):
        assert world.get("/v1/features/users/ann").status_code == 200
        world.serving.samples.step()
    answered = world.serving.monitor.answered
    assert (answered["samples_dropped"], answered["samples_kept"]) == (2, 0)
    assert caplog.text.count("samples of what was served are dropped") == 1


def test_what_is_left_at_the_end_is_still_kept(world):
    world.get("/v1/features/users/ann")
    stop = threading.Event()
    stop.set()
    world.serving.samples.run(stop)
    assert len(served(world)) == 1


def test_a_views_version_changes_with_its_features(world):
    import headrace as hr
    from headrace.plan.build import build
    from tests.serve.conftest import clicks

    changed = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="2h")})
    one, other = (Samples(each, world.log, NAMES, 1.0)._versions["users"] for each in (plan, build([changed])))
    assert one != other
    assert Samples(build([users]), world.log, NAMES, 1.0)._versions["users"] == one
