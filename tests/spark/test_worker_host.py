"""The host of Spark's Python workers: what it forks behaves as a process that was started from nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.spark import worker_launcher

WORKER = "pyspark.headrace_probe"
PROBE = """
import os, sys
print("argv", sys.argv[1:], "word", os.environ.get("WORD"), "stdin", sys.stdin.readline().strip(), flush=True)
if sys.argv[1:2] == ["sleep"]:
    import time
    time.sleep(600)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "python" / "pyspark").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def host(folder):
    """A host with a module among PySpark's that says what it was given; nothing of Spark is imported for it."""
    text = (
        "import sys, types; from headrace.spark import worker_host;"
        "worker_host.preload = lambda: None;"
        f"module = types.ModuleType({WORKER!r});"
        "worker_host.main(sys.argv[1])"
    )
    package = folder / "python" / "pyspark"
    (package / "__init__.py").write_text("")
    (package / "headrace_probe.py").write_text(PROBE)
    environment = {**os.environ, "PYTHONPATH": str(folder / "python")}
    command = [sys.executable, "-c", text, str(folder / "socket")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    deadline = time.monotonic() + 20
    while not (folder / "socket").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield process
    process.stdin.close()
    process.wait(20)


@pytest.fixture
def launch(folder):
    """Starts launchers, and closes what is left of them."""
    started = []

    def start(*arguments):
        command = [sys.executable, "-I", "-S", worker_launcher.__file__, sys.executable, str(folder / "socket")]
        environment = {**os.environ, "PYTHONPATH": str(folder / "python"), "WORD": "hello"}
        pipe = subprocess.PIPE
        started.append(subprocess.Popen([*command, *arguments], env=environment, text=True, stdin=pipe, stdout=pipe))
        return started[-1]

    yield start
    for launcher in started:
        launcher.kill()
        launcher.communicate()


def sleeping_worker(host, launch):
    """A worker that sleeps for ever: its launcher and its pid."""
    launcher = launch("-m", WORKER, "sleep")
    launcher.stdin.write("line\n")
    launcher.stdin.flush()
    launcher.stdout.readline()
    (worker,) = children(host.pid)
    return launcher, worker


def test_a_worker_has_the_arguments_environment_and_streams_of_its_launcher_and_its_exit_code(host, launch):
    launcher = launch("-m", WORKER, "7")
    said, _ = launcher.communicate("line\n", timeout=20)
    assert said == "argv ['7'] word hello stdin line\n"
    assert launcher.returncode == 7


def test_a_worker_ends_with_its_launcher(host, launch):
    launcher, worker = sleeping_worker(host, launch)
    launcher.kill()
    launcher.wait(20)
    wait_until_gone(worker)


def test_workers_end_with_the_driver(host, launch):
    launcher, worker = sleeping_worker(host, launch)
    host.stdin.close()
    assert host.wait(20) == 0
    wait_until_gone(worker)
    assert launcher.wait(20) == 1


def test_without_a_host_the_launcher_becomes_a_python_of_its_own(folder, launch):
    package = folder / "python" / "pyspark"
    (package / "__init__.py").write_text("")
    (package / "headrace_probe.py").write_text(PROBE)
    launcher = launch("-m", WORKER, "3")
    said, _ = launcher.communicate("line\n", timeout=20)
    assert said == "argv ['3'] word hello stdin line\n"
    assert launcher.returncode == 3


def test_what_is_no_worker_is_run_by_a_python_of_its_own(host, launch):
    launcher = launch("-c", "import os; print(os.getppid())")
    said, _ = launcher.communicate(timeout=20)
    assert int(said) == os.getpid()


def test_a_host_outlives_a_worker_that_is_killed(host, launch):
    launcher, worker = sleeping_worker(host, launch)
    os.kill(worker, signal.SIGKILL)
    assert launcher.wait(20) == -signal.SIGKILL % 256
    again = launch("-m", WORKER, "0")
    again.communicate("line\n", timeout=20)
    assert again.returncode == 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.spark
def test_the_sources_of_all_streams_are_planned_by_one_process(spark, tmp_path):
    from headrace.log import EmbeddedLog
    from headrace.spark.source import register

    register(spark)
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("clicks", partitions=1)
        log.append("clicks", b"1")
    queries = []
    try:
        for number in range(3):
            stream = spark.readStream.format("headrace_log").options(path=str(tmp_path / "log"), topic="clicks").load()
            writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / f"c{number}"))
            queries.append(writer.start())
        for query in queries:
            query.processAllAvailable()
        forks = [pid for host in worker_hosts() for pid in children(host)]
        assert len([pid for pid in forks if threads_of(pid) > len(queries)]) == 1
        assert [query.lastProgress["numInputRows"] for query in queries] == [1, 1, 1]
    finally:
        for query in queries:
            query.stop()


def worker_hosts() -> list[int]:
    """The hosts that this process has started."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(os.getpid())}
    return [pid for pid, command in commands.items() if b"headrace.spark.worker_host" in command]


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
