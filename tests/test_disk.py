"""A full disk as errors, verbs, small files and logs meet it: no defect, no end, and nothing is spoilt."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from headrace import disk, files
from headrace.cli import output
from headrace.cli.init import create
from headrace.cli.main import main
from headrace.disk import as_full, has_room, is_full
from headrace.errors import DataError, DiskFullError, MachineError
from headrace.files import write_atomically, write_or_overwrite
from headrace.processes import log_file

FULL = OSError(errno.ENOSPC, "No space left on device")
DEVICE = Path("/dev/full")
"""Linux's own full disk."""


def refuse(*_: object, **__: object) -> None:
    raise FULL


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"),
        RuntimeError("org.apache.spark.SparkException: Job aborted\njava.io.IOException: No space left on device"),
        RuntimeError(f"query failed: {DiskFullError('log-full', 'The log cannot grow.')}"),
        caused(DataError("lake-failed", "The lake's table cannot be used."), FULL),
    ],
)
def test_a_full_disk_is_known_by_what_any_library_says_of_it(error):
    found = as_full(error)
    assert is_full(error)
    assert (found.exit_code, found.http_status) == (4, 507)
    assert "\n" not in str(found.got)


@pytest.mark.parametrize(
    "error", [OSError(errno.EACCES, "Permission denied"), ValueError("28"), MachineError("no-java", "No Java."), None]
)
def test_other_trouble_is_no_full_disk(error):
    assert not is_full(error)


def test_a_folder_that_is_not_there_yet_has_the_room_of_the_one_above_it(tmp_path, monkeypatch):
    assert has_room(tmp_path / "not" / "there")
    monkeypatch.setattr(disk, "LEAST", 1 << 62)
    assert not has_room(tmp_path / "not" / "there")


# verbs


def test_a_verb_that_meets_a_full_disk_says_so_and_is_no_defect(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("headrace.cli.init.create", refuse)
    monkeypatch.setenv("HEADRACE_DEBUG", "1")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "shop"]) == 4
    said = capsys.readouterr().err
    assert "A disk is full or its quota used up." in said
    assert "code: disk-full" in said
    assert "defect" not in said


@pytest.mark.skipif(not DEVICE.exists(), reason="only Linux has a device that is always full")
def test_what_cannot_be_printed_on_a_full_disk_is_an_error_and_talk_is_not(monkeypatch, capsys):
    with DEVICE.open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        output.talk("all is well")
        monkeypatch.undo()
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["plan", "--help"]) == 4
        monkeypatch.undo()
        # What is left in its buffers is nobody's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert "disk-full" in capsys.readouterr().err


@pytest.mark.parametrize("detached", [(), ("--detach",)])
def test_up_is_refused_on_a_full_disk_before_anything_is_started(tmp_path, monkeypatch, capsys, detached):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setattr(disk, "LEAST", 1 << 62)
    assert main(["up", *detached]) == 4
    said = capsys.readouterr().err
    assert "The disk of the data folder is full." in said
    assert "hint: Free some space on that disk." in said
    assert not (tmp_path / "shop" / ".headrace").exists()


# small files


def test_a_file_that_did_not_fit_leaves_nothing_beside_the_old_one(tmp_path, monkeypatch):
    file = tmp_path / "status.json"
    write_atomically(file, "old")
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["status.json"]
    assert file.read_text() == "old"


def test_a_state_is_written_over_the_old_one_where_there_is_no_room_for_two(tmp_path, monkeypatch):
    file = tmp_path / "status.json"
    write_or_overwrite(file, json.dumps({"state": "ready", "more": "x" * 100}))
    monkeypatch.setattr(files, "write_atomically", refuse)
    write_or_overwrite(file, json.dumps({"state": "degraded"}))
    assert json.loads(file.read_text()) == {"state": "degraded"}
    with pytest.raises(OSError, match="No space left"):
        write_or_overwrite(file, "x" * (1 << 20))
    assert json.loads(file.read_text()) == {"state": "degraded"}
    with pytest.raises(OSError, match="No space left"):
        write_or_overwrite(tmp_path / "none.json", "{}")


# logs of processes


def test_a_log_is_turned_over_only_where_there_is_room_for_a_copy(tmp_path, monkeypatch):
    log = tmp_path / "spark.log"
    log.write_text("said\n" * 10)
    monkeypatch.setattr(log_file, "free_bytes", lambda _: 0)
    assert not log_file.rotate(log, largest=10)
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "copyfile", refuse)
    assert not log_file.rotate(log, largest=10)
    assert [each.name for each in tmp_path.iterdir()] == ["spark.log"]
    assert log.read_text() == "said\n" * 10


def test_a_mark_that_does_not_fit_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "open", refuse)
    log_file.mark(tmp_path / "spark.log", "spark starts")
