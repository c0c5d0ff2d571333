"""What `make prove` says in the end: each thing, how often, with which seeds, and how to see a failure again."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from scripts import prove
from scripts.prove import Round, describe

KILLS, READ, OTHER = "tests/test_k.py::test_kills", "tests/store/test_s.py::test_read", "tests/store/test_s.py::test_o"


def test_it_says_how_often_each_thing_was_proved_and_with_which_seeds():
    first = Round(5, 0, ((KILLS, True, "passed"), (READ, False, "passed"), (OTHER, False, "passed")))
    second = Round(6, 0, ((KILLS, True, "skipped"), (READ, False, "passed"), (OTHER, False, "passed")))
    assert list(describe([first, second])) == [
        "proved:",
        "    2 x  properties of tests/store/test_s.py  (seeds 5 to 6)",
        f"    1 x  {KILLS}  (seed 5)",
    ]


def test_a_failure_is_said_with_the_command_that_repeats_it():
    lines = list(describe([Round(7, 1, ((READ, False, "failed"), (KILLS, True, "passed")))]))
    assert lines[0:2] == ["proved:", f"    1 x  {KILLS}  (seed 7)"]
    assert lines[2].startswith(f"FAILED {READ} with seed 7; again: .venv/bin/python -m pytest '{READ}' ")
    assert lines[2].endswith("--hypothesis-profile prove --hypothesis-seed 7")
    assert lines[3] == "FAILED round with seed 7: pytest exited with 1"


@pytest.fixture
def rounds(monkeypatch, tmp_path):
    """Rounds that take ten minutes each of a clock of their own; gives what pytest was asked for."""
    now, commands = [0.0], []

    def call(command, **_):
        commands.append(command)
        now[0] += 600
        entry = {"name": KILLS, "is_prove": True, "outcome": "passed"}
        prove.REPORT.write_text(json.dumps({"entries": [entry]}))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(prove, "ROOT", tmp_path)
    monkeypatch.setattr(prove, "REPORT", tmp_path / "report.json")
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(subprocess, "run", call)
    return commands


@pytest.mark.parametrize(("minutes", "count"), [(0, 1), (15, 2), (20, 2), (21, 3)])
def test_rounds_go_on_with_successive_seeds_until_the_time_is_over_and_the_first_one_is_whole(rounds, minutes, count):
    found = prove.run_rounds(minutes, 40, [])
    assert [each.seed for each in found] == [40 + number for number in range(count)]
    assert ["--until" in command for command in rounds] == [False] + [True] * (count - 1)
    assert all(str(60 * minutes) in " ".join(command) for command in rounds[1:])


def test_a_run_that_ends_without_a_report_is_the_last_and_a_failure(rounds, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 4))
    (only,) = prove.run_rounds(60, 1, [])
    assert (only.code, only.outcomes) == (4, ())
