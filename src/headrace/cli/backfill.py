"""`headrace backfill`: a new run of the tiles from the history in the lake, which takes over when it has caught up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data_json, table, talk
from headrace.cli.progress_bar import bar_or_lines
from headrace.errors import MachineError
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.project import Project
    from headrace.spark.backfill.backfill import Filled
    from headrace.spark.backfill.step import StepTimes

LOOK = 0.5
WHOLE = 1_000
"""What the progress bar counts to."""
STANDS = "What serves is as it was, and the tiles that were written stay; the same command goes on with the rest."


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
    from headrace.spark.backfill.step import WAIT, BackfillStep, StepTimes

    times = StepTimes()
    loaded = project.load(path, env)
    with if_interrupted(lambda: STANDS), bar_or_lines("backfilling", WHOLE) as advance:

        def progress(step: BackfillStep) -> None:
            times.take(step)
            said = [show_count(step.rows, "row")] if step.rows else []
            said += [step.note] if step.note else []
            advance(round(WHOLE * step.share), None, f"{step.name}{': ' if said else ''}{', '.join(said)}")

        filled = backfill(loaded, view, rate=rate, progress=progress)
        if wait is not None:
            progress(BackfillStep(WAIT, share=1.0))
            _wait(loaded, filled, wait)
    times.end()
    _show(loaded, filled, times, as_json=as_json)


def _show(loaded: Project, filled: list[Filled], times: StepTimes, *, as_json: bool) -> None:
    """Every step with its seconds, which add up; of a tile set its run as well."""
    runs = {each["tile_set"]: each for each in (_backfill_json(loaded, done, times) for done in filled)}
    whole, rows = sum(times.seconds.values()), sum(times.rows.values())
    if as_json:
        steps = {name: round(seconds, 3) for name, seconds in times.seconds.items()}
        data_json({"runs": list(runs.values()), "steps": steps, "seconds": round(whole, 3)})
        return
    shown = [(name, times.rows.get(name, 0), seconds) for name, seconds in times.seconds.items()]
    cells = [
        (name, *_run(runs.get(name)), f"{written:,}" if written else "-", f"{seconds:.1f}")
        for name, written, seconds in [*shown, ("all", rows, whole)]
    ]
    table(("step", "run", "from the log since", "rows written", "seconds"), cells)
    talk("The pipeline follows these runs; each serves when it has caught up: see `headrace status`.")


def _run(told: dict[str, Any] | None) -> tuple[str, str]:
    return ("-", "-") if told is None else (told["run"], told["point"])


def _backfill_json(loaded: Project, done: Filled, times: StepTimes) -> dict[str, Any]:
    from headrace.clock import show_time

    made = done.hand_over
    name = next(each.id for each in loaded.plan().tile_sets if each.fingerprint == made.tile_set)
    return {
        "tile_set": name,
        "run": made.run,
        "point": show_time(made.point),
        "rows": done.rows,
        "seconds": round(times.seconds[name], 1),
    }


def _wait(loaded: Project, filled: list[Filled], seconds: float) -> None:
    """Until every run serves; an error when that takes too long."""
    from headrace.config.config import names
    from headrace.spark.pipeline.runs import Runs
    from headrace.tiles.changelog import SERVING
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
