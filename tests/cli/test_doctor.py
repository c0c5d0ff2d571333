"""What `headrace doctor` finds, and what it says when something is missing."""

from __future__ import annotations

import json

import pytest

from headrace import disk, machine
from headrace.cli import doctor
from headrace.cli.main import main
from headrace.errors import MachineError


def test_a_machine_with_everything_is_well(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert {"Python", "Java", "memory", "disk", "pyspark"} <= {check["name"] for check in report["checks"]}


def no_java() -> machine.Java:
    raise MachineError("no-java", "No Java 17 or later was found.", got="PATH: 11.0.2", hint=machine.INSTALL_JAVA)


def test_a_machine_without_java_is_told_how_to_get_one_and_exits_3(capsys, monkeypatch):
    monkeypatch.setattr(machine, "find_java", no_java)
    assert main(["doctor"]) == 3
    shown = capsys.readouterr()
    assert "missing  Java" in shown.out
    assert "pip install 'headrace[java]'" in shown.out
    assert shown.err.startswith("error: This machine lacks: Java.\n")


def test_the_report_comes_as_json_too_when_something_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(machine, "find_java", no_java)
    assert main(["doctor", "--json"]) == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out)["ok"] is False
    assert json.loads(shown.err)["error"]["code"] == "doctor-failed"


def test_too_little_memory_and_disk_are_missing(capsys, monkeypatch):
    monkeypatch.setattr(machine, "memory_bytes", lambda: doctor.LEAST_MEMORY - 1)
    monkeypatch.setattr(disk, "free_bytes", lambda _: doctor.LEAST_DISK - 1)
    assert main(["doctor"]) == 3
    assert "lacks: memory, disk." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "need", "met"),
    [
        ("4.3.0", "==4.3.*", True),
        ("4.30.0", "==4.3.*", False),
        ("2.10", ">=2.9", True),
        ("2.2.3", "<3,>=2.2", True),
        ("3.0", "<3,>=2.2", False),
        ("3", "<3", False),
        ("1.0rc1", ">=1.0", True),
        ("1.0", "~=1.0", False),
    ],
)
def test_versions_are_compared_by_number(version, need, met):
    assert doctor.satisfies(version, need) is met
