"""`headrace state`: what the plan keeps, with what the pipeline last said of it."""

from __future__ import annotations

import json

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.config.config import names
from headrace.topics import open_log
from tests.cli.asking import asking

OPERATORS = {
    "deduplication": {"rows": 3_000, "memory_bytes": 1_050_720, "disk_bytes": 0},
    "tiles": {"rows": 300, "memory_bytes": 2_100_000, "disk_bytes": 64_000},
}
TOLD = {
    "batch": 12,
    "run": "1",
    "checkpoint": "here",
    "dropped_by_watermark": 3,
    "watermark": "2026-01-01T12:07:00Z",
    "newest": "2026-01-01T12:20:00Z",
    "operators": OPERATORS,
    "hot_keys": [{"key": {"card": "42"}, "share": 0.517}, {"key": {"card": "7"}, "share": 0.031}],
    "hot_keys_of": 12_345,
}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return project.load(tmp_path / "shop").config


@pytest.fixture
def ask(capsys):
    return asking(capsys, "state")


@pytest.fixture
def told(shop):
    with open_log(shop) as log:
        log.create_topic("headrace.status", compacted=True)
        said = {"component": "pipeline", "tile_sets": {"payments.by_card": TOLD}}
        log.append("headrace.status", json.dumps(said).encode(), key=b"pipeline")
    operator = names(shop).path("checkpoints", "here") / "state" / "1"
    (operator / "_metadata").mkdir(parents=True)
    about = {"operatorInfo": {"operatorId": 1, "operatorName": "dedupe"}}
    (operator / "_metadata" / "metadata").write_text(f"v1\n{json.dumps(about)}")
    (operator / "0").mkdir()
    (operator / "0" / "1.changelog").write_bytes(bytes(10_000))
    return shop


def test_state_shows_what_is_kept_how_long_and_which_keys_are_hot(told, ask, golden):
    code, out, err = ask()
    assert (code, err) == (0, "")
    golden("cli/state", out)


def test_state_as_json_has_all_of_it_durations_in_microseconds_and_sizes_in_bytes(told, ask):
    found = json.loads(ask("card_activity", "--json")[1])
    (tiles,) = found["tile_sets"].values()
    assert found["told_seconds_ago"] >= 0
    assert tiles["operators"]["tiles"] == {**OPERATORS["tiles"], "retention": 790_000_000, "checkpoint_bytes": None}
    assert tiles["operators"]["deduplication"]["retention"] == 780_000_000
    assert 10_000 < tiles["operators"]["deduplication"]["checkpoint_bytes"] < 10_200
    assert {name: tiles[name] for name in TOLD if name != "operators"} == {
        name: told for name, told in TOLD.items() if name != "operators"
    }


def test_before_the_pipeline_has_spoken_only_the_plan_is_known(shop, ask):
    code, out, err = ask()
    assert (code, err) == (0, "The pipeline has not said anything yet.\n")
    assert "payments.by_card  tiles          13m10s    -     -       -     -" in out
    assert out.endswith("payments.by_card: no batch yet\n")
    found = json.loads(ask("--json", "--inspect")[1])
    assert found["told_seconds_ago"] is None
    assert found["tile_sets"]["payments.by_card"]["operators"]["tiles"]["rows"] is None


def test_a_view_that_is_not_there_is_refused(shop, ask):
    code, out, err = ask("cards")
    assert (code, out) == (2, "")
    assert "There is no such view." in err
