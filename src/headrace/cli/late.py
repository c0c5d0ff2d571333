"""`headrace late`: the late lane, published without the pipeline, and how it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data_json, table, talk

if TYPE_CHECKING:
    from headrace.status.records import LaneStatus

STANDS = "What was published stays; the next pass publishes the rest."


@click.group("late")
def command() -> None:
    """Publish and look at what came too late for the stream.

    Late events of streams whose policy is `update`, and all else that the stream could not have, are taken from the
    lake. A running project does that by itself, every `late.every`.
    """


@command.command("run")
@options.project_options
@options.as_json
def run(path: Path | None, env: str | None, as_json: bool) -> None:
    """Publish once what the lake has and the late lanes have not, and end."""
    from headrace import project
    from headrace.config.config import names
    from headrace.spark.late.component import publish_once
    from headrace.spark.session import quiet_session
    from headrace.topics import spark_jars

    loaded = project.load(path, env)
    config = loaded.config
    file = names(config).path("run", "late-spark.log")
    jars = spark_jars(config, loaded.plan())
    with if_interrupted(lambda: STANDS), quiet_session(f"headrace {config.name} late", file, jars) as session:
        lanes = publish_once(loaded.plan(), config, session)
    _show(lanes, as_json=as_json)


@command.command("status")
@options.project_options
@options.as_json
def status(path: Path | None, env: str | None, as_json: bool) -> None:
    """Show what the late lane has published since its start, and how long after its arrival."""
    from headrace.config import config as configuration
    from headrace.config.config import names
    from headrace.status.records import LateStatus
    from headrace.status.topic import read_status
    from headrace.topics import STATUS, open_log

    config = configuration.load(path, env=env)
    with open_log(config) as log:
        found = read_status(log, names(config).topic(STATUS), LateStatus).get(LateStatus)
    if found is None:
        talk("The late lane has not said anything yet: `headrace up` starts it.")
    _show({} if found is None else found.lanes, as_json=as_json)


def _show(lanes: dict[str, dict[str, LaneStatus]], *, as_json: bool) -> None:
    if as_json:
        data_json({"late": lanes})
        return
    rows = [
        (
            name,
            each.run,
            f"{each.events:,}",
            f"{each.tiles:,}",
            "-" if each.delay_seconds is None else f"{each.delay_seconds:.1f}",
        )
        for name, runs in lanes.items()
        for each in runs.values()
    ]
    table(("tiles", "run", "events", "tiles published", "delay in s"), rows)
