"""`headrace down`: end the project's processes. It returns when they are gone, and is content when there are none."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import options
from headrace.cli.output import talk
from headrace.plural import show_count


@click.command("down")
@options.project_options
@click.option("--all", "everything", is_flag=True, help="Stop the project's own Kafka broker and Redis too.")
def command(path: Path | None, env: str | None, everything: bool) -> None:
    """End the project's processes.

    Returns when all are gone. Processes that a killed `headrace up` left behind are ended too. The project's own Kafka
    broker and Redis go on, unless `--all` is given: what a broker holds stays in any case, a Redis is filled again.
    """
    from headrace.config import config
    from headrace.processes import state_folder
    from headrace.supervisor import services
    from headrace.supervisor import up as running

    loaded = config.load(path, env=env)
    ended = running.down(state_folder.find_state_folder(loaded))
    talk(f"Ended {show_count(ended, 'process', 'processes')}." if ended else "Nothing was running.")
    if everything:
        for name in services.stop(loaded):
            talk(f"Stopped {name}.")
    elif left := services.running(loaded):
        listed = ", ".join(f"{name} at {address}" for name, address in left.items())
        talk(f"Still up: {listed}. `headrace down --all` stops {'it' if len(left) == 1 else 'them'} too.")
