"""`headrace kafka`: a broker on this machine for development, the jars that Kafka needs, how the cluster is doing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, show_status, talk

if TYPE_CHECKING:
    from headrace.config.config import Config


@click.group("kafka")
def command() -> None:
    """Run a local Kafka broker, and fetch what Kafka needs."""


@command.command("up")
@options.project_options
@click.option("--port", type=click.IntRange(1, 65_535), metavar="N", help="Listen here; otherwise on a free port.")
def up(path: Path | None, env: str | None, port: int | None) -> None:
    """Start a Kafka broker for this project and print its address.

    One node on the loopback, its data under the project's data folder; it goes on until `headrace kafka down`. A
    project with log.kind = "kafka" that names no brokers uses it, and `headrace up` starts it by itself.
    """
    from headrace.config import config
    from headrace.processes import broker
    from headrace.topics import broker_folder

    loaded = config.load(path, env=env)
    folder = broker_folder(loaded)
    found = broker.running(folder)
    if found is not None and port in (None, int(found.brokers.rpartition(":")[2])):
        talk(f"The broker is already up (pid {found.pid}).")
    else:
        if found is None:
            _fetch("broker")
        found = broker.up(folder, port=port)
        talk(f"The broker is up (pid {found.pid}).")
        if loaded.log.kind != "kafka":
            talk('Set kind = "kafka" in [log] of headrace.toml, and the project uses it.')
    data(found.brokers)


@command.command("down")
@options.project_options
def down(path: Path | None, env: str | None) -> None:
    """Stop the project's broker; its data stays."""
    from headrace.config import config
    from headrace.processes import broker
    from headrace.topics import broker_folder

    stopped = broker.down(broker_folder(config.load(path, env=env)))
    talk("Stopped the broker." if stopped else "No broker was running.")


@command.command("jars")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def jars(as_json: bool) -> None:
    """Fetch the pinned jars through Maven, each checked by its SHA-256, and print where they are.

    Jars that are there already are checked, not fetched. Maven's own settings say where they come from.
    """
    found = {use: _fetch(use) for use in ("connector", "broker")}
    if as_json:
        data_json({use: [str(file) for file in files] for use, files in found.items()})
    else:
        data("\n".join(str(file) for files in found.values() for file in files))


@command.command("status")
@options.project_options
@options.as_json
def status(path: Path | None, env: str | None, as_json: bool) -> int:
    """Show the project's cluster: where it is, whether it answers, what is in it.

    The exit code is 1 when it does not answer.
    """
    from headrace.config import config

    return show_status(_status(config.load(path, env=env)), as_json=as_json)


def _status(loaded: Config) -> dict[str, Any]:
    from headrace.errors import HeadraceError
    from headrace.processes import broker
    from headrace.topics import broker_folder, cluster

    local = broker.running(broker_folder(loaded))
    told: dict[str, Any] = {
        "log": loaded.log.kind,
        "brokers": loaded.kafka.brokers or (None if local is None else local.brokers),
        "answers": False,
        "topics": None,
        "problem": None,
        "local": None if local is None else {"brokers": local.brokers, "pid": local.pid},
        "jars": {use: _has_jars(use) for use in ("connector", "broker")},
    }
    try:
        with cluster(loaded) as log:
            told["topics"] = len(log.topics())
            told["answers"] = True
    except HeadraceError as error:
        told["problem"] = error.brief
    return told


def _has_jars(use: str) -> bool:
    from headrace.errors import MachineError
    from headrace.processes.jars import present

    try:
        present(use)
    except MachineError:
        return False
    return True


def _fetch(use: str) -> list[Path]:
    from headrace.processes import jars

    with _bar(f"jars of the {use}", len(jars.jars(use))) as tell:
        return jars.fetch(use, tell=tell)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(what, total=total)
        yield lambda done: drawn.update(task, completed=done)
