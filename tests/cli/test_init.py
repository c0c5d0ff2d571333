"""A new project: what is in it, and that its own tests pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace import project
from headrace.cli.init import FILES, create
from headrace.cli.main import main
from headrace.config import config
from headrace.testing import logged, run
from headrace.topics import open_log
from tests import documents
from tests.verbs import unknown_words


def test_init_writes_every_file_and_names_each_on_stdout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "shop"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"shop/{file}" for file in FILES]
    assert all((tmp_path / "shop" / file).is_file() for file in FILES)


def test_the_settings_of_a_new_project_can_be_read(tmp_path):
    create(tmp_path / "shop")
    assert config.load(tmp_path / "shop", {}).name == "shop"
    assert config.load(tmp_path / "shop", {}, env="staging").prefix == "staging"


def test_the_code_of_a_new_project_is_formatted_and_lints(tmp_path):
    create(tmp_path / "shop")
    for verb in (["format", "--check"], ["check", "--select", "E,F,I,B,UP"]):
        ruff = [sys.executable, "-m", "ruff", *verb, "--isolated", "--line-length", "120"]
        ran = subprocess.run(ruff, cwd=tmp_path / "shop", capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_events_of_a_new_project_have_a_late_one_and_a_copy(tmp_path, monkeypatch, capsys):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    assert main(["send", "payments", "events.jsonl", "--rebase"]) == 0
    loaded = project.load()
    with open_log(loaded.config) as log:
        verdicts = run(loaded.views, logged(log, loaded.streams[0])).verdicts
    assert {name: count for name, count in verdicts.items() if count} == {"admitted": 6, "late": 1, "duplicate": 1}
    assert capsys.readouterr().err.startswith("Sent 8 events to payments")


def test_the_readme_of_a_new_project_shows_what_happens_and_its_tests_pass(tmp_path):
    create(tmp_path / "shop")
    assert documents.run(tmp_path / "shop" / "README.md", tmp_path / "shop", long=False) == 1


@pytest.mark.spark
@pytest.mark.prove
@pytest.mark.xdist_group("live")
def test_the_readme_of_a_new_project_shows_what_happens_when_it_is_up(tmp_path):
    create(tmp_path / "shop")
    assert documents.run(tmp_path / "shop" / "README.md", tmp_path / "shop", long=True) == 2


def test_every_command_in_the_readme_of_a_new_project_exists(tmp_path):
    create(tmp_path / "shop")
    blocks = documents.blocks((tmp_path / "shop" / "README.md").read_text(encoding="utf-8"))
    assert [
        fault for block in blocks for line, _ in documents.commands(block.text) for fault in unknown_words(line)
    ] == []


def test_an_empty_folder_can_become_a_project(tmp_path, monkeypatch):
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    assert main(["init", "."]) == 0
    assert Path("headrace.toml").is_file()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "notes.txt").write_text("mine")
    assert main(["init", "shop"]) == 2
    assert "code: already-a-project" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "shop").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["Shop", "9lives", "my shop", "x" * 64])
def test_a_name_that_cannot_prefix_a_topic_is_refused(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert main(["init", name]) == 2
    assert "code: bad-name" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
