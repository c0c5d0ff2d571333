"""`headrace training-set`: rows of keys, times and labels with the features that were known then, in a folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data_json, table, talk
from headrace.cli.progress_bar import Advance, bar
from headrace.errors import UsageError, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.project import Project

DEFAULTS: dict[str, Any] = {"time": "t", "mode": "as_known", "seed": 0, "format": "parquet"}


@click.command("training-set")
@click.argument("spine", required=False, metavar="[SPINE]")
@click.option("--out", required=True, metavar="DIR", help="A new folder for the set.")
@click.option("--features", multiple=True, metavar="NAME", help="A view or a feature set; may be given several times.")
@click.option("--mode", type=click.Choice(["as_known", "as_happened"]), help="as_known when left out.")
@click.option("--time", metavar="COL", help="The column that says when; t when left out.")
@click.option("--include-event", metavar="STREAM", help="The rows are events of the stream, and each counts itself.")
@click.option("--split", metavar="SHARES|TIMES", help="Parts by time: 0.8,0.1,0.1 or the moments between them.")
@click.option("--sample", metavar="RATE", help="Keep a share of the rows.")
@click.option("--downsample", metavar="COL=VALUE:RATE", help="Keep a share of the rows with that value, with weights.")
@click.option("--seed", type=int, metavar="N", help="Other rows are chosen by another seed; 0 when left out.")
@click.option("--format", type=click.Choice(["parquet", "delta"]), help="parquet when left out.")
@click.option(
    "--again",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Make the set of a folder again.",
)
@options.project_options
@options.as_json
def command(
    spine: str | None, out: str, again: Path | None, path: Path | None, env: str | None, as_json: bool, **asked: Any
) -> None:
    """Make a training set: features as they were known then.

    SPINE has the rows: keys, a time, and whatever else, such as labels. It is CSV with a header, Parquet (a file or a
    folder), a Delta table, or SQL over the lake, as in "SELECT card, at AS t FROM payments_silver". Everything that is
    wrong with it is said before anything is computed. DIR gets the data and manifest.json, from which --again makes the
    same set again, as long as the spine, the features and the lake's files are still there.
    """
    from headrace import project
    from headrace.batch import session_of
    from headrace.training.output_folder import folder_of

    make = _make_again(spine, again, asked) if again is not None else _make_new(spine, asked)
    folder = folder_of(out)
    loaded = project.load(path, env)
    began = time.monotonic()
    with (
        if_interrupted(lambda: "No training set was written."),
        bar("starting Spark") as advance,
        session_of(loaded, None, "training-set") as session,
        _show_progress(session, advance) as tell,
    ):
        told = make(loaded, folder, session, tell)
    _show(told, out, time.monotonic() - began, as_json=as_json)


Make = Callable[["Project", Path, Any, Callable[[str], None]], dict[str, Any]]


def _make_new(spine: str | None, asked: dict[str, Any]) -> Make:
    from headrace.training.request import read_request
    from headrace.training.result import make

    if spine is None:
        hint = "Name a file, a folder or a query; or --again DIR."
        raise UsageError("bad-usage", "A training set needs a spine.", hint=hint)
    given = DEFAULTS | {name: value for name, value in asked.items() if value is not None}
    renamed = {"downsample": "downsample_by", "split": "split_by"}
    wanted = read_request(**{renamed.get(name, name): value for name, value in given.items()})
    return lambda loaded, folder, session, tell: make(loaded, wanted, spine, folder, session=session, tell=tell)


def _make_again(spine: str | None, folder: Path, asked: dict[str, Any]) -> Make:
    from headrace.training.manifest import read_manifest
    from headrace.training.reproduce import make_again, spine_again

    said = [name for name, value in asked.items() if value not in (None, ()) and name != "format"]
    if said:
        message = "What a training set is made again from says all that was asked for."
        got, hint = shown([f"--{name.replace('_', '-')}" for name in said]), "Leave these out, or make a new one."
        raise UsageError("bad-usage", message, got=got, hint=hint)
    told = read_manifest(folder)
    spine_again(told, spine)
    form = asked["format"]
    return lambda loaded, out, session, tell: make_again(
        loaded, told, out, session=session, spine=spine, format=form, tell=tell
    )


@contextlib.contextmanager
def _show_progress(session: Any, advance: Advance) -> Iterator[Callable[[str], None]]:
    """Shows what is being done, and how many of Spark's tasks are."""
    from headrace.spark.training.spine import watched

    said = ["starting"]

    def tell(what: str) -> None:
        said[0] = what
        advance(0, None, what)

    with watched(session, lambda done, of: advance(done, of, f"{said[0]}: {done:,} of {show_count(of, 'task')}")):
        yield tell


def _show(told: dict[str, Any], out: str, seconds: float, *, as_json: bool) -> None:
    talk(f"{told['rows']:,} of {show_count(told['spine']['rows'], 'row')} of the spine in {out}, in {seconds:.1f} s.")
    if as_json:
        data_json({"out": out, "seconds": round(seconds, 3), **told})
        return
    rows = [
        (name, held["type"], f"{held['null_rate']:.1%}", f"{held['distinct']:,}", *_extremes(held))
        for name, held in told["columns"].items()
    ]
    table(("feature", "type", "nulls", "distinct", "min", "max"), rows)
    if "splits" in told:
        table(("split", "rows"), [(part, f"{count:,}") for part, count in told["splits"].items()])


def _extremes(held: dict[str, Any]) -> tuple[str, str]:
    found = (held.get("min"), held.get("max"))
    least, most = ("-" if value is None else value if isinstance(value, str) else f"{value:g}" for value in found)
    return least, most
