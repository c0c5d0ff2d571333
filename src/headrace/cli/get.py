"""`headrace get`: the features of a key as serving answers them now."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from headrace.cli import options
from headrace.cli.output import data, table, talk
from headrace.errors import CODES, HeadraceError, ProjectError, UsageError, did_you_mean, shown

if TYPE_CHECKING:
    from headrace.define.view import View
    from headrace.project import Project

TIMEOUT = 10.0


@click.command("get")
@click.argument("view", metavar="VIEW")
@click.argument("key", nargs=-1, metavar="[COLUMN=VALUE]...")
@options.project_options
@options.as_json
def command(view: str, key: tuple[str, ...], path: Path | None, env: str | None, as_json: bool) -> None:
    """Show the features of a key as they are now.

    The key names every column the view is kept by, as in `headrace get card_activity card=42`. The values come over
    HTTP from the project's serving process, with how fresh they are.
    """
    from headrace import project
    from headrace.supervisor import place

    loaded = project.load(path, env)
    found = find_view(loaded, view)
    parts = [quote(part, safe="") for part in key_of(found, key)]
    url = place.serve_url(place.place(loaded.config))
    body = fetch(f"{url}/v1/features/{'/'.join([found.name, *parts])}")
    if as_json:
        import msgspec

        # As text, so that a decimal keeps its digits.
        data(msgspec.json.format(body, indent=2).decode())
        return
    answer = json.loads(body, parse_float=str)
    table(("feature", "value"), [(name, _value(value)) for name, value in answer["features"].items()])
    talk(_freshness(answer))


def find_view(loaded: Project, name: str) -> View:
    """A view of the project by its name."""
    known = {view.name: view for view in loaded.views}
    if name in known:
        return known[name]
    raise ProjectError("not-found", "There is no such view.", got=shown(name), hint=did_you_mean(name, known))


def key_of(view: View, given: Sequence[str]) -> list[str]:
    """The key's values in the order of the view's columns."""
    example = " ".join(f"{name}=..." for name in view.by)
    hint = f"Write `headrace get {view.name} {example}`.".replace(" `.", "`.")
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or name not in view.by or name in found:
            message = f"View {view.name!r} takes each column of its key once, as COLUMN=VALUE."
            raise UsageError("bad-usage", message, got=shown(text), hint=hint)
        found[name] = value
    missing = [name for name in view.by if name not in found]
    if missing:
        message = f"View {view.name!r} needs its whole key: {', '.join(missing)} is missing."
        raise UsageError("bad-usage", message, got=shown(list(given)), hint=hint)
    return [found[name] for name in view.by]


def fetch(url: str) -> bytes:
    """The JSON object that serving answers; its errors are raised as they are."""
    from headrace.supervisor.stack import ask

    hint = "See `headrace status` and `headrace logs serve`."
    try:
        status, body = ask(url, TIMEOUT)
        answer = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise HeadraceError("no-answer", "Serving did not answer.", got=shown(str(error)), hint=hint) from error
    if status == 200 and isinstance(answer, dict):
        return body
    told = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(told, dict) and told.get("code") in CODES:
        raise HeadraceError(
            told["code"], str(told.get("message")), got=told.get("got"), hint=told.get("hint"), where=told.get("where")
        )
    message = f"Serving answered with HTTP status {status}."
    raise HeadraceError("no-answer", message, got=shown(answer), hint=hint)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _freshness(answer: dict[str, Any]) -> str:
    fresh = answer.get("freshness_ms")
    if fresh is None:
        said = "Nothing is known of how fresh this is"
    else:
        said = f"As of {answer.get('as_of')}, {float(fresh) / 1_000:.1f} s ago"
    flags = [flag for flag in ("missing", "stale") if answer.get(flag)]
    return f"{said}{' (' + ', '.join(flags) + ')' if flags else ''}."
