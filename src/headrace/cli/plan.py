"""`headrace plan`: what will run, over which tiles, in which mode. Printing it runs nothing."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import options
from headrace.cli.output import data, data_json


@click.command("plan")
@options.project_options
@options.as_json
def command(path: Path | None, env: str | None, as_json: bool) -> None:
    """Show what will run, where and in which mode."""
    from headrace import project
    from headrace.plan import explain

    loaded = project.load(path, env)
    loaded.check_schemas()
    plan = loaded.plan()
    if as_json:
        data_json(explain.as_json(plan))
    else:
        data(explain.text(plan).rstrip("\n"))
