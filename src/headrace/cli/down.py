"""`headrace down`: end the project's processes. It returns when they are gone, and is content when there are none."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import options
from headrace.cli.output import talk


@click.command("down")
@options.project_options
def command(path: Path | None, env: str | None) -> None:
    """End the project's processes.

    Returns when all are gone. Processes that a killed `headrace up` left behind are ended too.
    """
    from headrace import config
    from headrace.supervisor import place
    from headrace.supervisor import up as running

    ended = running.down(place.place(config.load(path, env=env)))
    talk(f"Ended {ended} {'process' if ended == 1 else 'processes'}." if ended else "Nothing was running.")
