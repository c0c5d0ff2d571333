"""A definition that is edited while the project is up: status, supervisor and page say what differs from what runs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.cli.main import main
from headrace.config import config as configuration
from headrace.log import MemoryLog
from headrace.processes import state_folder
from headrace.processes.state_folder import StateFolder
from headrace.supervisor.file_changes import EditWatch
from headrace.supervisor.plan_record import record_plan
from headrace.supervisor.supervisor import Supervisor

EDITED = [
    {"kind": "tile set", "name": "payments.by_card", "change": "changed"},
    {"kind": "tile set", "name": "payments.by_country", "change": "added"},
    {"kind": "view", "name": "card_activity", "change": "changed"},
    {"kind": "view", "name": "countries", "change": "added"},
]
SAYS = (
    "What runs (spark) is older than what is written: tile set payments.by_card changed, tile set payments.by_country "
    "added, view card_activity changed, view countries added. `headrace down` and `headrace up` run what is written."
)


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Iterator[configuration.Config]:
    """A project one of whose processes runs: this one."""
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    loaded = project.load()
    where = state_folder.find_state_folder(loaded.config)
    record_plan(where, "spark", loaded.plan())
    with state_folder.locked(where):
        me = state_folder.holder(where)
        state_folder.write_status(where, {"state": "ready", "processes": {"spark": {"state": "ready", **me._asdict()}}})
        yield loaded.config


def edit(shop: configuration.Config) -> None:
    text = shop.features.read_text().replace('hr.sum("amount", over="1h")', 'hr.max("amount", over="1h")')
    shop.features.write_text(
        text + '\ncountries = hr.view("countries", payments, by="country", features={"n": hr.count(over="1h")})\n'
    )


def definitions(capsys) -> Any:
    main(["status", "--json"])
    return json.loads(capsys.readouterr().out)["definitions"]


def test_status_says_what_was_edited_since_the_processes_started(shop, capsys):
    assert definitions(capsys) == {"older": [], "changes": [], "error": None, "says": ""}
    edit(shop)
    assert definitions(capsys) == {"older": ["spark"], "changes": EDITED, "error": None, "says": SAYS}
    main(["status"])
    assert SAYS in capsys.readouterr().out.splitlines()


def test_status_of_definitions_that_no_longer_load_says_so_and_shows_the_rest(shop, capsys):
    shop.features.write_text("import headrace as hr\n1 / 0\n")
    found = definitions(capsys)
    assert found["error"] == "The features file raised while it was loaded. 'ZeroDivisionError: division by zero'"
    assert main(["status"]) == 0
    assert f"cannot be loaded as they are written now: {found['error']}" in capsys.readouterr().out


def test_a_process_that_was_started_after_the_edit_is_not_older(shop, capsys):
    edit(shop)
    record_plan(state_folder.find_state_folder(shop), "spark", project.load().plan())
    assert definitions(capsys)["older"] == []


class Files:
    """A file that is edited, and a command that answers with what is in another."""

    def __init__(self, folder) -> None:
        self.file, self.answer = folder / "features.py", folder / "answer.json"
        self.file.write_text("")
        self.command = [sys.executable, "-S", "-c", f"print(open({str(self.answer)!r}).read())"]

    def edit(self, definitions: dict[str, object]) -> None:
        self.answer.write_text(json.dumps({"definitions": definitions}))
        self.file.write_text(self.file.read_text() + "#")


def test_the_supervisor_tells_the_page_what_was_edited_and_that_it_was_taken_back(tmp_path):
    files, said, log = Files(tmp_path), list[str](), MemoryLog()
    log.create_topic("status", compacted=True)
    now = iter(range(1_000_000))
    supervisor = Supervisor([], StateFolder(tmp_path / "data"), say=said.append)
    supervisor.was_ready = True
    edited = {"older": ["spark"], "changes": EDITED, "error": None, "says": SAYS}
    with EditWatch(lambda: [files.file], files.command, "status", said.append, lambda: next(now)) as watch:
        for definitions, line in ((edited, SAYS), (edited | {"says": ""}, "everything runs what is written")):
            watch.look(supervisor, log)
            files.edit(definitions)
            deadline = time.monotonic() + 30
            while line not in said and time.monotonic() < deadline:
                watch.look(supervisor, log)
            assert said[-1] == line
            last = log.read("status", 0, log.end_offsets("status")[0] - 1, limit=1)[0]
            assert (last.key, json.loads(last.value)) == (b"definitions", definitions)


def test_a_watch_that_ends_leaves_no_process_behind(tmp_path):
    files, log = Files(tmp_path), MemoryLog()
    log.create_topic("status", compacted=True)
    supervisor = Supervisor([], StateFolder(tmp_path / "data"), say=print)
    supervisor.was_ready = True
    now = iter(range(1_000_000))
    command = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    with EditWatch(lambda: [files.file], command, "status", print, lambda: next(now)) as watch:
        watch.look(supervisor, log)
        files.edit({})
        watch.look(supervisor, log)
        assert watch._asked is not None
        pid = watch._asked[0].pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
