"""Count the files on the way of one event: from `headrace send` to the answer over HTTP.

A new project is started as a user would start it. Once it is ready, one event is sent and read over HTTP. The
processes on its way note in which files a function was called: `send` after it has loaded the project, `run spark`
with the pipeline alone, Spark's Python workers, `run serve` and its workers. It takes about a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "headrace"
DEADLINE = 120.0
"""Seconds within which the event must be served."""
EVENT = {"id": "path-1", "card": "path", "amount": 12.5, "country": "DE"}

RECORDER = """
import atexit, os, sys, threading, time
FOLDER, SOURCE = os.environ["EVENT_PATH_FOLDER"], os.environ["EVENT_PATH_SOURCE"]
FLAG, found = os.path.join(FOLDER, "recording"), set()
OPTIMIZED = 1  # the bodies of classes and modules are not

def note(frame, event, argument):
    code = frame.f_code
    if event == "return" and not loaded and code.co_name == "load" and code.co_filename == SOURCE + "project.py":
        loaded.append(True)
        found.clear()
    if event == "call" and code.co_flags & OPTIMIZED and code.co_filename.startswith(SOURCE):
        found.add(code.co_filename)

def watch():
    recording = False
    while True:
        if os.path.exists(FLAG) != recording:
            recording = not recording
            if recording:
                found.clear()
        if recording:
            with open(os.path.join(FOLDER, f"{os.getpid()}.files"), "w") as file:
                file.write("\\n".join(sorted(found)))
        time.sleep(0.1)

def begin():
    threading.setprofile(note)
    sys.setprofile(note)
    threading.Thread(target=watch, daemon=True).start()
    atexit.register(write)

with open("/proc/self/cmdline") as file:
    words = file.read().split("\\0")
ON_THE_WAY = ({"run", "serve"}, {"run", "spark"}, {"send"}, {"headrace.spark.worker_host"}, {"headrace.serve.worker"})
loaded = [] if "send" in words else [True]
if any(way <= set(words) for way in ON_THE_WAY):
    os.register_at_fork(after_in_child=begin)
    begin()
"""
"""Loaded by every Python process through `sitecustomize`; forked workers begin anew."""


def run_verb(folder: Path, environment: dict[str, str], *arguments: str) -> str:
    """Run a verb in the project's folder; what it printed."""
    command = [sys.executable, "-m", "headrace.cli.main", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"headrace {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


@contextmanager
def start_project(folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    """A new project that is up and has served an event before, so that nothing is done for the first time."""
    run_verb(folder, environment, "init", "shop")
    project = folder / "shop"
    separate = {"HEADRACE_PROCESSES_SEPARATE": "archive,late,evaluate"}
    run_verb(project, environment | separate, "up", "--detach", "--port", "0")
    try:
        yield project
    finally:
        run_verb(project, environment, "down")


def send_and_read(project: Path, environment: dict[str, str], card: str) -> None:
    """Send one event of a card, and read the card until the event is in its features."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    (project / "one.jsonl").write_text(json.dumps({**EVENT, "id": f"path-{card}", "card": card, "at": at}) + "\n")
    run_verb(project, environment, "send", "payments", "one.jsonl")
    served = json.loads((project / ".headrace" / "run" / "serve.json").read_text("utf-8"))
    url, deadline = f"http://127.0.0.1:{served['port']}", time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{url}/v1/features/card_activity/{card}") as answer:
            if not json.load(answer)["missing"]:
                return
        time.sleep(0.2)
    raise SystemExit("The event was not served in time.")


def find_files() -> list[str]:
    """The files of the package that one event goes through."""
    with tempfile.TemporaryDirectory(prefix="event-path-") as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(RECORDER, encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": name,
            "EVENT_PATH_FOLDER": name,
            "EVENT_PATH_SOURCE": f"{SOURCE}{os.sep}",
        }
        with start_project(folder, environment) as project:
            send_and_read(project, environment, "first")
            (folder / "recording").touch()
            send_and_read(project, environment, "second")
            (folder / "recording").unlink()
        noted = {line for file in folder.glob("*.files") for line in file.read_text("utf-8").splitlines()}
    return sorted(Path(line).relative_to(SOURCE).as_posix() for line in noted)


def main() -> None:
    """Print the files and how many there are."""
    files = find_files()
    sys.stdout.write("\n".join([*files, f"{len(files)} files on the way of one event"]) + "\n")


if __name__ == "__main__":
    main()
