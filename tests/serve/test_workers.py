"""Several processes that answer: one store, one port, one set of numbers; and what happens when one of them dies."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from multiprocessing import Pipe
from pathlib import Path

import pytest

from headrace.errors import MachineError
from headrace.serve import worker_pipe as module
from headrace.serve.limits import Behind
from headrace.serve.metrics_folder import MEMORY
from headrace.serve.status_view import ANSWERED
from headrace.serve.worker_pipe import StatusMessage, WorkerReport, WorkerStatusView
from headrace.serve.workers import Worker, Workers
from tests.serve.conftest import World
from tests.serve.process import served, until

pytestmark = pytest.mark.xdist_group("live")

READS = 40


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    with served(tmp_path_factory.mktemp("shop"), 'workers = 2\nsample = 1.0\ndrain = "2s"\n') as process:
        yield process


def workers(process):
    """The pids of the processes that answer."""
    threads = Path(f"/proc/{process.child.pid}/task").glob("*/children")
    children = [pid for thread in threads for pid in thread.read_text().split()]
    lines = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    return sorted(pid for pid, line in lines.items() if b"headrace.serve.worker" in line)


def told(process, name):
    """A number of the metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/metrics", timeout=30) as answer:
        found = re.search(rf"^{re.escape(name)} (\S+)$", answer.read().decode(), re.MULTILINE)
    return 0.0 if found is None else float(found[1])


def test_both_answer_and_every_number_is_the_sum(shop):
    assert len(workers(shop)) == 2
    reads = 'headrace_reads_total{view="users"}'
    before = told(shop, reads)
    for _ in range(READS):
        assert shop.ask("/v1/features/users/ann")[0] == 200
    assert told(shop, reads) == before + READS
    # Each counts in files of its own: with forty connections none had all of them.
    counters = list(MEMORY.glob("headrace-*/counter_*.db"))
    assert {int(file.stem.partition("_")[2]) for file in counters} >= set(workers(shop))
    until(lambda: shop.ask("/status.json")[1]["requests"]["features"] >= before + READS)


def test_whoever_is_asked_says_the_same_of_how_things_stand(shop):
    # One may hear later than the other that all is ready.
    until(lambda: all(shop.ask("/ready")[0] == 200 for _ in range(16)))
    for _ in range(8):
        status, said = shop.ask("/ready")
        assert (status, said["ready"], said["caught_up"]) == (200, True, True)
        assert shop.ask("/status.json")[1]["views"]["users"]["run"] == "1"
    assert told(shop, "headrace_ready") == 1.0


def test_what_one_takes_is_appended_and_what_was_sampled_is_counted(shop):
    request = urllib.request.Request(
        f"http://127.0.0.1:{shop.port}/v1/events/clicks", data=b'{"user": "ann", "at": "2026-01-01T00:00:00Z"}'
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 202
    shop.ask("/v1/features/users/ann")
    until(lambda: told(shop, "headrace_samples_kept_total") > 0)
    assert told(shop, "headrace_samples_dropped_total") == 0


def test_a_worker_that_is_killed_is_replaced_and_what_it_counted_stays(shop):
    reads = 'headrace_reads_total{view="users"}'
    shop.ask("/v1/features/users/ann")
    before, pids = told(shop, reads), workers(shop)
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            where = stack.enter_context(shop.connect())
            assert shop.ask("/health", over=where)[0] == 200
        os.kill(pids[0], signal.SIGKILL)
        until(lambda: len(workers(shop)) == 2 and pids[0] not in workers(shop))
    for _ in range(8):
        assert until(lambda: shop.ask("/v1/features/users/ann"))[0] == 200
    assert told(shop, reads) >= before + 8
    # The one that died had connections: they are over.
    until(lambda: told(shop, "headrace_connections") == 1.0)
    until(lambda: told(shop, "headrace_http_in_flight") == 1.0)
    assert "starting another" in (shop.folder / "said").read_text()


def test_when_the_process_that_fills_the_store_dies_nobody_answers_any_more(tmp_path):
    with served(tmp_path, "workers = 2\n") as process:
        pids = workers(process)
        process.child.send_signal(signal.SIGKILL)
        process.child.wait()
        until(lambda: not any(_alive(pid) for pid in pids))
        said = (process.folder / "said").read_text()
        assert ("The process that fills the store has gone." in said, "Traceback" in said) == (True, False)


def test_asked_to_end_it_answers_what_was_asked_and_leaves_nobody_behind(tmp_path):
    with served(tmp_path, "workers = 3\n") as process:
        pids, answers = workers(process), []
        with process.connect() as where:
            head = "POST /v1/features HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n"
            where.sendall(head.encode())
            until(lambda: told(process, "headrace_http_in_flight") == 2.0)
            ending = threading.Thread(target=lambda: answers.append(process.end()))
            ending.start()
            time.sleep(0.5)
            body = b'{"view": "users", "keys": ["ann"]}'
            where.sendall(body + b" " * (40 - len(body)))
            assert where.recv(65_536).startswith(b"HTTP/1.1 200")
        ending.join(30)
        assert answers == [0]
        assert not any(_alive(pid) for pid in pids)
        assert not (process.folder / ".headrace" / "run" / "serve.json").exists()


def test_workers_that_cannot_live_end_it(tmp_path):
    with served(tmp_path, "workers = 2\n") as process:
        (process.folder / "features.py").write_text("import nothing_of_that_name\n")
        while process.child.poll() is None:
            for pid in workers(process) if process.child.poll() is None else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.child.wait(0.5)
        assert process.child.returncode == MachineError("start-failed", "").exit_code
        assert "in a row have ended as soon as" in (process.folder / "said").read_text()


def _alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_what_a_worker_says_again_counts_once(tmp_path):
    world = World()
    keeping = Workers([], lambda *_: None, world.serving.monitor, tmp_path, 1.0)
    one, other = (Worker(*[None] * 3) for _ in range(2))
    keeping._all += [one, other]
    nothing = dict.fromkeys(ANSWERED, 0)
    for worker, features in ((one, 3), (one, 5), (one, 5)):
        keeping._reply_to(worker, WorkerReport({**nothing, "features": features}, [1.0]))
    assert not keeping.up.is_set(), "one has not been heard yet"
    keeping._reply_to(other, WorkerReport({**nothing, "features": 2}, []))
    assert keeping.up.is_set()
    assert (world.serving.monitor.answered["features"], len(world.serving.monitor.reads)) == (7, 3)


# What a worker hears


def talking(answers):
    """A worker's ear, and somebody who answers with what is given, in turn; what was said to him."""
    mine, its = Pipe()
    said = []

    def answer():
        for each in answers:
            said.append(its.recv())
            its.send(each)

    threading.Thread(target=answer, daemon=True).start()
    return WorkerStatusView(mine), said, its


def test_a_worker_tells_what_it_has_done_and_hears_how_things_stand():
    word = StatusMessage({"log": True, "caught_up": False}, {"clicks": Behind(7, 1.5)}, 99)
    heard, said, _ = talking([word, {"at": "now"}])
    assert not all(heard.readiness().values())
    heard.reads.append(12.5)
    heard.answered["features"] += 3
    heard.beat()
    assert (heard.behind["clicks"].events, heard.free_disk, heard.readiness()) == (7, 99, word.readiness)
    assert heard.status() == {"at": "now"}
    assert said[0] == WorkerReport({**dict.fromkeys(heard.answered, 0), "features": 3}, [12.5])
    assert not heard.reads


def test_who_hears_nothing_for_a_while_is_not_ready(monkeypatch):
    heard, _, _ = talking([StatusMessage({"log": True})])
    heard.beat()
    assert all(heard.readiness().values())
    monkeypatch.setattr(module, "SILENCE", -1.0)
    assert not all(heard.readiness().values())


def test_an_answer_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "SILENCE", 0.05)
    heard, _, _ = talking([])
    with pytest.raises(MachineError, match="does not answer"):
        heard.beat()
    with pytest.raises(MachineError, match="has gone"):
        heard.status()


def test_when_the_other_side_has_gone_the_work_beside_ends_with_an_error():
    heard, _, its = talking([])
    its.close()
    with pytest.raises(MachineError, match="has gone"):
        heard.run(threading.Event())
