"""`headrace backfill`: a new run of the tiles from the history in the lake, which takes over when it has caught up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.bar import bar
from headrace.cli.output import data_json, table, talk
from headrace.errors import MachineError

if TYPE_CHECKING:
    from headrace.project import Project
    from headrace.run.backfill import Filled

LOOK = 0.5


@click.command("backfill")
@click.argument("view", required=False, metavar="[VIEW]")
@options.project_options
@click.option("--rate", type=options.FiniteRange(1), metavar="N", help="The most rows a second to write.")
@click.option("--wait", type=options.FiniteRange(0), metavar="SECONDS", help="Wait so long until the new run serves.")
@options.as_json
def command(
    view: str | None, path: Path | None, env: str | None, rate: float | None, wait: float | None, as_json: bool
) -> None:
    """Compute tiles anew from the history in the lake.

    Begins a new run beside the one that serves: tiles up to a moment come from the lake, later ones from the log. The
    running pipeline follows it, and when it has caught up it takes over; until then nothing that is served changes.
    Interrupted, it goes on where it was when it is run again. VIEW may be left out for all views.
    """
    from headrace import project
    from headrace.batch import backfill

    loaded = project.load(path, env)
    began = time.monotonic()
    with bar("backfilling", 1_000) as advance:

        def progress(done: Filled) -> None:
            made = done.hand_over
            whole = max(1, made.point - (done.first or made.point))
            share = 1_000 * ((made.filled or made.point) - (done.first or made.point)) // whole
            advance(share, None, f"run {made.run}: {done.rows:,} rows")

        filled = backfill(loaded, view, rate=rate, progress=progress)
    told = [_told(loaded, done) for done in filled]
    if wait is not None:
        _wait(loaded, filled, wait)
    if as_json:
        data_json({"runs": told, "seconds": round(time.monotonic() - began, 3)})
        return
    rows = [(each["tile_set"], each["run"], each["point"], f"{each['rows']:,}", f"{each['seconds']}") for each in told]
    table(("tiles", "run", "from the log since", "rows written", "seconds"), rows)
    talk("The pipeline follows these runs; each serves when it has caught up: see `headrace status`.")


def _told(loaded: Project, done: Filled) -> dict[str, Any]:
    from headrace.clock import show_time

    made = done.hand_over
    name = next(each.id for each in loaded.plan().tile_sets if each.fingerprint == made.tile_set)
    return {
        "tile_set": name,
        "run": made.run,
        "point": show_time(made.point),
        "rows": done.rows,
        "seconds": round(done.seconds, 1),
    }


def _wait(loaded: Project, filled: list[Filled], seconds: float) -> None:
    """Until every run serves; an error when that takes too long."""
    from headrace.config import names
    from headrace.run.runs import Runs
    from headrace.store.changelog import SERVING
    from headrace.topics import RUNS, open_log

    wanted = {done.hand_over.tile_set: done.hand_over.run for done in filled}
    deadline = time.monotonic() + seconds
    with open_log(loaded.config) as log:
        runs = Runs(log, names(loaded.config).topic(RUNS))
        while True:
            runs.look()
            held = [runs.of(each).get(wanted.get(each.fingerprint, "")) for each in loaded.plan().tile_sets]
            waiting = [each for each in held if each is not None and each.stage != SERVING]
            if not waiting:
                return
            if time.monotonic() > deadline:
                message = f"The new run did not take over within {seconds:g} s."
                hint = "Is the pipeline running? See `headrace status`; it takes over whenever it has caught up."
                raise MachineError("no-answer", message, hint=hint)
            time.sleep(LOOK)
