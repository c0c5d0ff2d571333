"""`headrace logs`: the end of each process's log file, and what is added to it."""

from __future__ import annotations

import time
from pathlib import Path

import click

from headrace.cli import options
from headrace.cli.output import data, talk
from headrace.errors import UsageError, did_you_mean, shown
from headrace.safe_text import printable

LOOK = 0.2


@click.command("logs")
@click.argument("name", required=False, metavar="[NAME]")
@options.project_options
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(0, 1_000_000), default=50, show_default=True, help="How many lines of each."
)
def command(name: str | None, path: Path | None, env: str | None, follow: bool, lines: int) -> None:
    """Show what the processes have said.

    NAME is a process that `headrace status` lists, the project's own kafka and redis included, or supervisor (which
    writes a file after `up --detach`); without it all of them are shown, each line with its process in front.
    """
    from headrace.config import config
    from headrace.processes import log_file, state_folder
    from headrace.supervisor import services

    loaded = config.load(path, env=env)
    where = state_folder.find_state_folder(loaded)
    processes = (state_folder.read_status(where) or {}).get("processes") or ("spark", "serve")
    every = {known: where.log(known) for known in processes} | services.logs(loaded)
    every["supervisor"] = where.log("supervisor")
    if name is not None and name not in every:
        hint = did_you_mean(name, every)
        raise UsageError("bad-usage", "There is no such process.", got=shown(name), hint=hint)
    files = every if name is None else {name: every[name]}
    added = log_file.follow(files, _pause) if follow else iter(())
    for known, file in files.items():
        for line in log_file.last_lines(file, lines):
            data(_shown(known, line, named=name is not None))
    if not follow and not any(file.exists() for file in files.values()):
        talk("There are no logs yet: nothing was started.")
    for known, line in added:
        data(_shown(known, line, named=name is not None))


def _shown(name: str, line: str, *, named: bool) -> str:
    text = printable(line, "\t")
    return text if named else f"{name:<10} {text}"


def _pause() -> bool:
    time.sleep(LOOK)
    return False
