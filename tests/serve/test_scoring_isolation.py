"""A model does what it wants in a process of its own: reads go on, callers are told, and no process is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import msgspec
import pytest

from headrace.clock import SystemClock
from headrace.models import ModelColumn, ModelRegistry
from headrace.plan.model_inputs import inputs_of
from headrace.project import load
from headrace.serve.scoring import process as model_process
from headrace.serve.scoring.wire import Frames, ScoreReply, asking, read_told, row_of
from tests.client.conftest import running, until
from tests.serve.process import PROJECT, answer, served
from tests.serve.scoring_world import ScoreWorld

BLOCKED = "while row['clicks_1h'] and not os.path.exists({flag!r}): time.sleep(0.01)\nreturn 0.5"
HANGS = {
    "sleeps": "time.sleep(60) if row['clicks_1h'] else 0\nreturn 0.5",
    "spins": "while row['clicks_1h']: pass\nreturn 0.5",
    "spins in C": "__import__('re').match('(a+)+b', 'a' * 60) if row['clicks_1h'] else 0\nreturn 0.5",
}


def asked(url, user="ann", **more):
    body = {"key": {"user": user}, "request": {"budget": 10}} | more
    return httpx.post(f"{url}/v1/score/churn", json=body, timeout=30)


def gone(pid):
    """Whether there is no such process, or only what is left of one that nobody has asked about."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pids(world):
    return world.models.find("churn").status().processes


# a model that does not answer


@pytest.mark.parametrize("how", HANGS)
def test_a_model_that_hangs_is_killed_and_started_again_and_features_are_read_meanwhile(tmp_path, how):
    world = ScoreWorld(tmp_path, score_timeout=0.5)
    world.promote(HANGS[how])
    with running(world) as url, ThreadPoolExecutor() as threads:
        until(lambda: world.champion() == 1)
        before = pids(world)["1"]
        hanging, reads = threads.submit(asked, url), 0
        until(lambda: world.models.find("churn").in_flight or hanging.done())
        while not hanging.done():
            assert httpx.get(f"{url}/v1/features/users/ann").json()["features"]["clicks_1h"] == 2
            reads += 1
        assert reads > 0
        refused = hanging.result()
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "model-slow")
        assert refused.headers["retry-after"] == "1"
        until(lambda: asked(url, "nobody").status_code == 200)
        assert pids(world)["1"] != before
        assert gone(before)


def test_a_model_that_ends_its_process_is_started_again(tmp_path):
    world = ScoreWorld(tmp_path)
    world.promote("os._exit(3) if row['clicks_1h'] else 0\nreturn 0.5")
    with running(world) as url:
        until(lambda: world.champion() == 1)
        refused = asked(url)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "model-down")
        until(lambda: asked(url, "nobody").status_code == 200)


def test_a_process_that_is_killed_costs_nobody_more_than_a_moment(tmp_path):
    world = ScoreWorld(tmp_path)
    world.promote("return 0.5")
    with running(world) as url:
        until(lambda: world.champion() == 1)
        before = pids(world)["1"]
        os.kill(before, signal.SIGKILL)
        until(lambda: asked(url).status_code == 200 and pids(world)["1"] != before)


# how much is under way


def test_beyond_the_rows_that_a_version_takes_callers_come_back_later(tmp_path):
    flag = str(tmp_path / "go")
    world = ScoreWorld(tmp_path, score_timeout=30, score_queue=1)
    world.promote(BLOCKED.format(flag=flag))
    with running(world) as url, ThreadPoolExecutor() as threads:
        until(lambda: world.champion() == 1)
        first = threads.submit(asked, url)
        until(lambda: world.models.find("churn").in_flight == 1)
        busy = asked(url)
        assert (busy.status_code, busy.json()["error"]["code"]) == (503, "too-busy")
        assert busy.headers["retry-after"] == "1"
        (tmp_path / "go").touch()
        assert first.result().json()["answers"][0]["score"] == 0.5
        many = httpx.post(
            f"{url}/v1/score/churn", json={"keys": [{"user": "ann"}] * 7, "request": {"budget": 1}}, timeout=30
        )
        assert many.json()["errors"] == 0, "a few at a time"


def test_rows_of_several_requests_that_wait_are_scored_together():
    sizes = []

    def score(rows):
        sizes.append(len(rows))
        return [row["n"] / 10 for row in rows]

    scorer = SimpleNamespace(manifest=SimpleNamespace(columns=[ModelColumn("n", "integer", "")]), score=score)
    mine, its = socket.socketpair()
    with mine, its:
        mine.sendall(b"".join(asking(number, [row_of([number])]) for number in range(5)))
        thread = threading.Thread(target=model_process.answer, args=(its, scorer))
        thread.start()
        frames, told = Frames(), list[ScoreReply]()
        while len(told) < 5:
            told += [read_told(frame) for frame in frames.feed(mine.recv(1 << 16))]
        mine.shutdown(socket.SHUT_RDWR)
        thread.join(30)
    assert [(each.number, each.results) for each in told] == [(number, [number / 10]) for number in range(5)]
    assert sizes == [5]


def test_a_row_goes_over_bit_by_bit():
    import decimal

    values = [0.1, -0.0, 2**63 - 1, None, True, "é", decimal.Decimal("1.50"), 1e308]
    from headrace.serve.scoring.wire import LENGTH, read_asked

    number, (row,) = read_asked(asking(3, [row_of(values)])[LENGTH.size :])
    assert (number, repr(row)) == (3, repr(values))
    with pytest.raises(ValueError, match=r".+"):
        row_of([2**70])
    with pytest.raises(TypeError):
        row_of([object()])
    assert isinstance(row_of([1]), msgspec.Raw)


# processes that end

MODEL = PROJECT + '\nchurn = hr.model("churn", hr.feature_set("habits", [users]))\n'


def shipped(folder, body):
    """A project's folder with a champion in it."""
    (folder / "features.py").write_text(MODEL)
    (folder / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (folder / "score.py").write_text(f"import os, time\ndef score(row):\n    {body}\n")
    plan, registry = load(folder).plan(), ModelRegistry(folder / ".headrace" / "models", SystemClock())
    columns = inputs_of(plan, plan.model("churn").features)
    registry.add("churn", folder / "score.py", features="habits", columns=columns, allow_code=True)
    registry.promote("churn", 1)


def scored(process, where, user="ann"):
    body = json.dumps({"key": {"user": user}})
    head = f"POST /v1/score/churn HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    where.sendall((head + body).encode())


def children(process):
    """The processes of models, of a server and its workers."""
    found, models = [], str(process.folder / ".headrace" / "models").encode()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            said = place.read_bytes().split(b"\0")
            if b"headrace.serve.scoring.process" in said and models in said:
                found.append(int(place.parent.name))
    return found


def test_told_to_end_it_answers_what_was_asked_and_leaves_no_process(tmp_path):
    stop, go = tmp_path / "stop", tmp_path / "go"
    waiting = f"os.path.exists({str(stop)!r}) and not os.path.exists({str(go)!r})"
    shipped(tmp_path, f"while {waiting}: time.sleep(0.01)\n    return 0.5")
    settings = 'score_timeout = "30s"\ndrain = "30s"\n'
    with served(tmp_path, settings, features=MODEL) as process, process.connect() as where:
        (pid,) = children(process)
        stop.touch()
        scored(process, where)
        until(lambda: process.ask("/status.json")[1]["models"]["churn"]["in_flight"] == 1)
        process.child.send_signal(signal.SIGTERM)
        until(lambda: not connects(process.port))
        go.touch()
        status, said = answer(where)
        assert (status, said["answers"][0]["score"]) == (200, 0.5)
        assert process.child.wait(60) == 0
        assert gone(pid)


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_processes_of_models_end_with_their_server_however_that_ends(tmp_path):
    shipped(tmp_path, "return 0.5")
    with served(tmp_path, "workers = 2\n", features=MODEL) as process:
        found = until(lambda: pair if len(pair := children(process)) == 2 else None)
        for _ in range(6):
            # A worker is ready when the first of them is.
            until(lambda: one(process) == 200)
        until(lambda: total(process) == 6.0)
        process.child.kill()
        until(lambda: all(gone(pid) for pid in found))


def one(process):
    with process.connect() as where:
        scored(process, where)
        return answer(where)[0]


def total(process):
    """What all workers have scored."""
    with socket.create_connection(("127.0.0.1", process.port)) as where:
        where.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b"".join(iter(lambda: where.recv(65_536), b"")).decode()
    lines = [line for line in text.splitlines() if line.startswith("headrace_scored_total{") and 'outcome="ok"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_a_process_whose_server_has_gone_does_not_begin(tmp_path):
    given = [str(tmp_path), "churn", "1", "0", "1"]
    command = [sys.executable, "-m", "headrace.serve.scoring.process", *given]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60, check=False).returncode == 0
