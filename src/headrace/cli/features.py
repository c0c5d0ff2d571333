"""`headrace features`: the catalogue of a project, for people who look for a feature and its owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, table, talk
from headrace.errors import ProjectError, did_you_mean, shown

if TYPE_CHECKING:
    from headrace.cli.catalogue import Entry


@click.group("features")
def command() -> None:
    """List, show and search what is defined."""


@command.command("list")
@options.project_options
@options.as_json
def list_(path: Path | None, env: str | None, as_json: bool) -> None:
    """List every feature: what it measures and who owns it."""
    _print(_features(_catalogue(path, env)), as_json=as_json)


@command.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@options.project_options
@options.as_json
def search(words: tuple[str, ...], path: Path | None, env: str | None, as_json: bool) -> None:
    """List the features in which every WORD occurs: in name, description, owner, tags or meaning."""
    found = [entry for entry in _features(_catalogue(path, env)) if entry.matches(words)]
    if not found:
        talk("Nothing matches.")
    if found or as_json:
        _print(found, as_json=as_json)


@command.command("show")
@click.argument("name")
@options.project_options
@options.as_json
def show(name: str, path: Path | None, env: str | None, as_json: bool) -> None:
    """Show one stream, view, dimension, feature, feature set or model.

    A feature is named by its view and itself, as in card_activity.spend_1h, or by itself when no other has the name.
    """
    entry = _find(_catalogue(path, env), name)
    if as_json:
        data_json(entry.as_json())
        return
    rows = [(label, text) for label, text in entry.rows() if text]
    width = max(len(label) for label, _ in rows)
    data("\n".join(f"{label.ljust(width)}  {text}" for label, text in rows))


def _catalogue(path: Path | None, env: str | None) -> list[Entry]:
    from headrace import project
    from headrace.cli import catalogue

    return catalogue.entries(project.load(path, env))


def _features(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.kind in ("feature", "on-demand feature")]


def _print(entries: list[Entry], *, as_json: bool) -> None:
    if as_json:
        data_json({"features": [entry.as_json() for entry in entries]})
        return
    rows = [(entry.name, entry.type or "-", entry.owner or "-", entry.meaning) for entry in entries]
    table(("feature", "type", "owner", "meaning"), rows)


def _find(entries: list[Entry], name: str) -> Entry:
    exact = [entry for entry in entries if entry.name == name]
    found = exact or [entry for entry in entries if entry.name.rpartition(".")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        hint = f"Say which: {', '.join(entry.name for entry in found)}."
        raise ProjectError("not-found", "Several features have that name.", got=shown(name), hint=hint)
    known = {part for entry in entries for part in (entry.name, entry.name.rpartition(".")[2])}
    raise ProjectError("not-found", "Nothing has that name.", got=shown(name), hint=did_you_mean(name, known))
