"""`headrace run spark|serve|score|audit` and the parts of spark: one process in the foreground, as `up` runs it."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import talk

if TYPE_CHECKING:
    from headrace.project import Project

INTERRUPTED = 130
DRAIN = 30.0
"""Seconds in which a process must have ended after it was asked to."""


@click.group("run")
def command() -> None:
    """Run one process of the project in the foreground.

    SIGTERM ends it in order, with exit code 0; Ctrl-C as well, with exit code 130.
    """


@command.command("spark")
@options.project_options
def spark(path: Path | None, env: str | None) -> int:
    """Run the Spark process: pipeline, archive, late lane and evaluation.

    Parts that `processes.separate` names are left out; each runs by its own command.
    """
    return _run(path, env, "spark", "headrace.driver.application")


@command.command("pipeline")
@options.project_options
def pipeline(path: Path | None, env: str | None) -> int:
    """Run the pipeline alone: events in, tiles out."""
    return _run(path, env, "pipeline", "headrace.driver.application", only="pipeline")


@command.command("archive")
@options.project_options
@click.option("--accept-loss", is_flag=True, help="Go on after records that retention removed too early.")
def archive(path: Path | None, env: str | None, accept_loss: bool) -> int:
    """Run the archive alone: every record into the lake, once."""
    return _run(path, env, "archive", "headrace.driver.application", only="archive", accept_loss=accept_loss)


@command.command("late")
@options.project_options
def late(path: Path | None, env: str | None) -> int:
    """Run the late lane alone: late events from the lake into the tiles."""
    return _run(path, env, "late", "headrace.driver.application", only="late")


@command.command("serve")
@options.project_options
@click.option("--port", type=click.IntRange(0, 65_535), metavar="N", help="The port; 0 takes a free one.")
def serve(path: Path | None, env: str | None, port: int | None) -> int:
    """Run serving: tiles in, feature values over HTTP out."""
    loaded = _load(path, env, "serve")
    # Requests under way have their own time to end, which may be long.
    with stopping(max(DRAIN, loaded.config.serve.drain + DRAIN / 2)) as stop:
        from headrace.serve import server

        server.main(loaded, stop.event, port=port)
    return stop.code


@command.command("score")
@options.project_options
@click.option("--model", metavar="MODEL", hidden=True, help="Score this model alone.")
@click.option("--report", type=int, metavar="FD", hidden=True, help="Say there how it goes, not in the status topic.")
def score(path: Path | None, env: str | None, model: str | None, report: int | None) -> int:
    """Run scoring: events in, predictions out. Several models have a process each."""
    return _run(path, env, "score", "headrace.scoring.process", model=model, report=report)


@command.command("audit")
@options.project_options
def audit(path: Path | None, env: str | None) -> int:
    """Run the audit: what was served beside what was known."""
    return _run(path, env, "audit", "headrace.skew.process")


@command.command("evaluate")
@options.project_options
def evaluate(path: Path | None, env: str | None) -> int:
    """Run the evaluation alone: predictions beside the labels that have come."""
    return _run(path, env, "evaluate", "headrace.driver.application", only="evaluate")


def _run(path: Path | None, env: str | None, name: str, module: str, **chosen: Any) -> int:
    """Run a module's `main` as a process of the project until it is asked to end."""
    loaded = _load(path, env, name)
    with stopping() as stop:
        import_module(module).main(loaded.plan(), loaded.config, stop.event, **chosen)
    return stop.code


def _load(path: Path | None, env: str | None, name: str) -> Project:
    """Load the project for one of its processes, and leave behind what that runs."""
    from headrace import project
    from headrace.processes.state_folder import find_state_folder
    from headrace.supervisor.plan_record import record_plan

    loaded = project.load(path, env)
    record_plan(find_state_folder(loaded.config), name, loaded.plan())
    return loaded


class Stop:
    """A request to end: an event for whoever waits, and the exit code it leads to."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.code = 0


@contextlib.contextmanager
def stopping(drain: float = DRAIN) -> Iterator[Stop]:
    """While entered, SIGTERM and Ctrl-C ask to end. Whoever does not end in time is ended."""
    stop, over = Stop(), threading.Event()

    def ask(number: int, _: FrameType | None) -> None:
        stop.code = INTERRUPTED if number == signal.SIGINT else 0
        # In a thread: the interrupted one may hold the event's own lock.
        _thread.start_new_thread(stop.event.set, ())

    def watch() -> None:
        stop.event.wait()
        if not over.wait(drain):
            talk(f"It did not end within {drain:.0f} s of being asked to: ending it.")
            os._exit(1)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    threading.Thread(target=watch, name="stopping", daemon=True).start()
    try:
        yield stop
    finally:
        over.set()
        stop.event.set()
        for number, handler in before.items():
            signal.signal(number, handler)
