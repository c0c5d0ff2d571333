"""`headrace check`: load the project, plan it, and say that all is well. What is wrong comes as an error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.cli.output import data, data_json
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.project import Project


@click.command("check")
@options.project_options
@options.as_json
def command(path: Path | None, env: str | None, as_json: bool) -> None:
    """Say what is wrong with the project, or that nothing is."""
    from headrace import project
    from headrace.plan.capability import refuse_impossible_mode
    from headrace.serve.server_options import refuse_unusable

    loaded = project.load(path, env)
    loaded.check_schemas()
    _try_data_folder(loaded.config.data)
    refuse_unusable(loaded.config)
    refuse_impossible_mode(loaded.config)
    _refuse_unreadable(loaded)
    plan = loaded.plan()
    counts = {
        "streams": len(loaded.streams),
        "views": len(loaded.views),
        "dimensions": len(loaded.dimensions),
        "features": len(plan.features) + sum(len(dimension.features) for dimension in loaded.dimensions),
        "on-demand features": len(loaded.on_demands),
        "feature sets": len(loaded.feature_sets),
        "models": len(loaded.models),
    }
    if as_json:
        told = {name.replace("-", "_").replace(" ", "_"): count for name, count in counts.items()}
        data_json({"ok": True, "project": loaded.config.name, "env": loaded.config.env} | told)
        return
    said = ", ".join(show_count(count, name[:-1]) for name, count in counts.items() if count)
    data(f"{loaded.config.name}: {said}. Nothing is wrong.")


def _try_data_folder(folder: Path) -> None:
    """Make the data folder with a file in it, and remove what was made: only this says whether it can be used."""
    import contextlib
    from tempfile import NamedTemporaryFile

    str(folder).encode()  # bytes that are no UTF-8 are refused
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=".check-"):
            pass
    finally:
        for each in made:
            # What somebody else has put there meanwhile stays.
            with contextlib.suppress(OSError):
                each.rmdir()


def _refuse_unreadable(loaded: Project) -> None:
    """Read every dimension's table, as serving would: a key with two rows for one moment is found by that alone."""
    for dimension in loaded.dimensions:
        from headrace.lake.dimension import place_of, read

        read(place_of(loaded.config, dimension))
