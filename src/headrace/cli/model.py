"""`headrace model`: versions of models added, looked at, and given the roles in which they answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, table, talk
from headrace.clock import show_time
from headrace.errors import UsageError, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.models.manifest import Manifest
    from headrace.models.roles import Roles
    from headrace.plan.model_inputs import FittingModels

WHY = click.option("--why", metavar="TEXT", help="Kept in the model's history.")


@click.group("model")
def command() -> None:
    """Add versions of models, and say which of them answer.

    A version never changes once it is added. The champion answers, a challenger for a share of the keys; shadows score
    beside them and are not heard. What runs follows within a second, without dropping a request.
    """


@command.command("add")
@click.argument("model")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--training-set",
    "training_set",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="The training set it comes from.",
)
@click.option("--format", "form", metavar="FORMAT", help="onnx, lightgbm, sklearn, river, python or pickle.")
@click.option("--threshold", type=options.finite, metavar="X", help="From which score on its decision is yes.")
@click.option(
    "--missing", default="nan", metavar="nan|refuse|COL=X,...", help="What a null becomes; nan when left out."
)
@click.option(
    "--categories",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON: of each text column, the texts it was trained with, in order.",
)
@click.option("--range", "bounds", default="0:1", metavar="LOW:HIGH", help="Where its scores are; 0:1 when left out.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME=X", help="What was measured; may be repeated.")
@click.option("--description", metavar="TEXT", help="For people.")
@click.option("--allow-code", is_flag=True, help="Let it be a pickle or a file of Python, which may run anything.")
@click.option("--promote", is_flag=True, help="Make it the champion at once.")
@options.project_options
@options.as_json
def add(model: str, file: Path, path: Path | None, env: str | None, as_json: bool, promote: bool, **given: Any) -> None:
    """Keep a trained model as the next version.

    It is held against the project's plan and the training set, loaded in a process of its own, and has to score a plain
    row before it is kept.
    """
    from headrace import project
    from headrace.project_models import add_model

    whose = project.load(path, env)
    made = add_model(
        model,
        file,
        training_set=given["training_set"],
        format=given["form"],
        threshold=given["threshold"],
        missing=_missing(given["missing"]),
        categories=_categories(given["categories"]) if given["categories"] else None,
        output=_bounds(given["bounds"]),
        metrics=_numbers(given["metrics"], "--metric"),
        description=given["description"],
        allow_code=given["allow_code"],
        promote=promote,
        project=whose,
    )
    if as_json:
        data_json({"model": model, "version": made.version, "promoted": promote})
        return
    data(str(made.version))
    columns = show_count(len(made.columns), "column")
    talk(f"Added {made.title} ({made.format}, {columns}){' and promoted it' if promote else ''}.")
    if not promote:
        talk(f"It has no role yet: `headrace model promote {model} {made.version}`, or shadow, or challenge.")


@command.command("list")
@click.argument("model", required=False)
@options.project_options
@options.as_json
def listed(model: str | None, path: Path | None, env: str | None, as_json: bool) -> None:
    """List versions with their roles."""
    models, declared = _models(path, env)
    wanted = [model] if model else list(dict.fromkeys([*models.models(), *declared]))
    rows = [
        (name, models.manifest(name, version), models.roles(name))
        for name in wanted
        for version in (models.versions(name) if model or name in models.models() else ())
    ]
    if as_json:
        told = [_version_json(manifest, roles) for _, manifest, roles in rows]
        data_json({"models": wanted, "versions": told})
        return
    if not rows:
        talk("There are no versions yet: `headrace model add MODEL FILE`.")
        return
    table(
        ("model", "version", "role", "format", "added", "metrics"),
        (
            (
                name,
                str(manifest.version),
                _role(manifest.version, roles),
                manifest.format,
                show_time(manifest.created_at),
                ", ".join(f"{each} {value:g}" for each, value in manifest.metrics.items()) or "-",
            )
            for name, manifest, roles in rows
        ),
    )


@command.command("show")
@click.argument("model")
@click.argument("version", type=int, required=False)
@options.project_options
@options.as_json
def show(model: str, version: int | None, path: Path | None, env: str | None, as_json: bool) -> None:
    """Show a version, the champion unless said otherwise, whether it fits the plan, and the history of roles."""
    from headrace.plan.model_inputs import unfit

    models, _ = _models(path, env)
    roles = models.roles(model)
    chosen = version or roles.champion or models.versions(model)[-1]
    manifest = models.manifest(model, chosen)
    differences = unfit(manifest, models.inputs(model))
    history = [_change(change) for change in roles.history]
    if as_json:
        data_json(_version_json(manifest, roles) | {"differences": differences, "history": history})
        return
    for name, text in _lines(manifest, roles).items():
        data(f"{name.ljust(12)}  {text}")
    data(f"{'plan'.ljust(12)}  {'fits' if not differences else 'does not fit:'}")
    for sentence in differences:
        data(f"{''.ljust(12)}  {sentence}")
    if history:
        data("")
        table(
            ("at", "what", "version", "before", "by", "why"),
            [[str(cell or "-") for cell in row.values()] for row in history],
        )


@command.command("promote")
@click.argument("model")
@click.argument("version", type=int)
@WHY
@options.project_options
def promote(model: str, version: int, why: str | None, path: Path | None, env: str | None) -> None:
    """Make a version the champion. One that does not fit the plan is refused."""
    models, _ = _models(path, env)
    models.try_out(model, version)
    _say_roles(model, models.promote(model, version, why))


@command.command("challenge")
@click.argument("model")
@click.argument("version", type=int, required=False)
@click.option(
    "--share",
    type=options.FiniteRange(0, 1, min_open=True, max_open=True),
    metavar="X",
    help="The part of the keys it answers for, between 0 and 1.",
)
@click.option("--stop", is_flag=True, help="Take the challenger away.")
@WHY
@options.project_options
def challenge(
    model: str,
    version: int | None,
    share: float | None,
    stop: bool,
    why: str | None,
    path: Path | None,
    env: str | None,
) -> None:
    """Let a version answer for a share of the keys in the champion's place."""
    models, _ = _models(path, env)
    if stop:
        _say_roles(model, models.unchallenge(model, why))
        return
    if version is None or share is None:
        raise UsageError(
            "bad-usage",
            "A challenge names a version and its share.",
            hint="As in `headrace model challenge fraud 3 --share 0.1`.",
        )
    models.try_out(model, version)
    _say_roles(model, models.challenge(model, version, share, why))


@command.command("shadow")
@click.argument("model")
@click.argument("version", type=int)
@click.option("--stop", is_flag=True, help="Let it score no longer.")
@WHY
@options.project_options
def shadow(model: str, version: int, stop: bool, why: str | None, path: Path | None, env: str | None) -> None:
    """Let a version score beside the champion, unheard."""
    models, _ = _models(path, env)
    if stop:
        _say_roles(model, models.unshadow(model, version, why))
        return
    models.try_out(model, version)
    _say_roles(model, models.shadow(model, version, why))


@command.command("rollback")
@click.argument("model")
@WHY
@options.project_options
def rollback(model: str, why: str | None, path: Path | None, env: str | None) -> None:
    """Make the champion before the champion again."""
    models, _ = _models(path, env)
    _say_roles(model, models.rollback(model, why))


def _models(path: Path | None, env: str | None) -> tuple[FittingModels, list[str]]:
    from headrace import project
    from headrace.project_models import models_of

    whose = project.load(path, env)
    return models_of(whose), [model.name for model in whose.models]


def _say_roles(model: str, roles: Roles) -> None:
    challenger = (
        "" if roles.challenger is None else f", challenger {roles.challenger} for {roles.share:.0%} of the keys"
    )
    shadows = "" if not roles.shadows else f", shadows {', '.join(map(str, roles.shadows))}"
    talk(f"Model {model}: champion {roles.champion or '-'}{challenger}{shadows}.")


def _role(version: int, roles: Roles) -> str:
    if version == roles.champion:
        return "champion"
    if version == roles.challenger:
        return f"challenger, {roles.share:.0%}"
    return "shadow" if version in roles.shadows else "-"


def _version_json(manifest: Manifest, roles: Roles) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(manifest)
    return told | {"created_at": show_time(manifest.created_at), "role": _role(manifest.version, roles)}


def _change(change: Any) -> dict[str, Any]:
    return {
        "at": show_time(change.at),
        "what": change.what,
        "version": change.version,
        "before": change.before,
        "by": change.by,
        "why": change.why,
    }


def _lines(manifest: Manifest, roles: Roles) -> dict[str, str]:
    trained = manifest.training_set or {}
    low, high = manifest.output.low, manifest.output.high
    return {
        "model": f"{manifest.model}, version {manifest.version}",
        "role": _role(manifest.version, roles),
        "format": f"{manifest.format}, {manifest.file}, sha256 {manifest.sha256[:12]}",
        "features": f"{manifest.features}: {', '.join(manifest.names)}",
        "missing": str(manifest.missing),
        "scores": f"{'-' if low is None else f'{low:g}'} to {'-' if high is None else f'{high:g}'}, "
        f"threshold {'-' if manifest.threshold is None else f'{manifest.threshold:g}'}",
        "trained on": f"{trained.get('id')}, {show_count(trained['rows'], 'row')}" if trained.get("rows") else "-",
        "metrics": ", ".join(f"{name} {value:g}" for name, value in manifest.metrics.items()) or "-",
        "added": f"{show_time(manifest.created_at)} by headrace {manifest.headrace}",
        "description": manifest.description or "-",
    }


def _categories(file: Path) -> Any:
    """The JSON of a file; what is in it is held against the model's columns where the version is added."""
    try:
        return json.loads(file.read_text("utf-8"))
    except ValueError as error:
        hint = 'Write an object such as {"country": ["DE", "FR"]} in UTF-8.'
        message = "The file of categories is not JSON."
        raise UsageError("bad-usage", message, got=shown(str(error)), hint=hint, where=str(file)) from error


def _missing(text: str) -> str | dict[str, float]:
    return text if "=" not in text else _numbers(text.split(","), "--missing")


def _numbers(pairs: Any, option: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            found[name] = options.finite(value)
        except ValueError:
            message = f"{option} takes NAME=NUMBER."
            raise UsageError("bad-usage", message, got=shown(pair), hint=f"As in `{option} auc=0.93`.") from None
    return found


def _bounds(text: str) -> tuple[float | None, float | None]:
    low, colon, high = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return (options.finite(low) if low else None), (options.finite(high) if high else None)
    except ValueError:
        hint = "As in `--range 0:1`, or `--range 0:` for no upper bound."
        raise UsageError("bad-usage", "--range takes LOW:HIGH.", got=shown(text), hint=hint) from None
