"""`headrace get`: the features of a key as serving answers them now, at a past moment, or as they change.

What may be read is the plan's: views, dimensions and feature sets. Request values are read by `get_request`.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data, table, talk
from headrace.errors import DefinitionError, UsageError, shown

if TYPE_CHECKING:
    import ssl

    from headrace.client import Client
    from headrace.read.catalog import Readable

TIMEOUT = "10s"
EVERY = "1s"
API_KEY = "HEADRACE_API_KEY"
"""The variable with the key to send: an argument would be in the list of processes."""


@click.command("get")
@click.argument("view", metavar="VIEW")
@click.argument("key", nargs=-1, metavar="[COLUMN=VALUE]...")
@options.project_options
@click.option(
    "--request",
    "requests",
    multiple=True,
    metavar="NAME=VALUE",
    help="A request value of an on-demand feature, such as amount=12.5; may be repeated.",
)
@click.option("-w", "--watch", is_flag=True, help="Go on with what changes, a line for each change, until Ctrl-C.")
@click.option("--every", metavar="DURATION", help=f"How often --watch looks; {EVERY} when left out.")
@click.option("--at", metavar="TIME", help="What was known at a past moment, such as 2026-01-01T12:00:00Z.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; with --watch one for each change.")
def command(view: str, key: tuple[str, ...], path: Path | None, env: str | None, as_json: bool, **asked: Any) -> None:
    """Show the features of a key as they are now.

    VIEW is the name of a view, a dimension or a feature set. The key names every column that it is kept by, as in
    `headrace get card_activity card=42`; what on-demand features take is given with --request. The values come over
    HTTP from the project's serving process, with how fresh they are; the API key in HEADRACE_API_KEY is sent to it.
    With --watch a line says when a value has changed, and from what to what; a serving process that is started again
    is waited for. With --at the values are read from the lake, which takes longer.
    """
    from headrace import project
    from headrace.cli.get_request import request_of
    from headrace.processes import state_folder
    from headrace.read.catalog import find, readables
    from headrace.serve.tls import trusting

    watch, at = asked["watch"], asked["at"]
    pause = seconds(asked["every"], watch=watch)
    if watch and at is not None:
        raise UsageError("bad-usage", "What was known at a past moment does not change.", hint="Leave out --watch.")
    loaded = project.load(path, env)
    found = find(readables(loaded.plan()), view)
    parts = key_of(found, key)
    request = request_of(found, asked["requests"])
    if request and at is not None:
        hint = "Ask for its views one by one, or leave out --at."
        raise UsageError("bad-usage", "Values of a past moment take no request values.", got=found.name, hint=hint)
    where = state_folder.find_state_folder(loaded.config)

    tls = trusting(loaded.config.serve.certificate)
    with contextlib.closing(Asking(lambda: state_folder.serve_url(where), tls)) as asking:

        def read() -> bytes:
            return asking.client().features_json(found.name, parts, at, request=request or None)

        if watch:
            from headrace.cli.get_watch import follow

            follow(read, lambda: time.sleep(pause), as_json=as_json)
        else:
            show(read(), as_json=as_json)


class Asking:
    """A client of serving wherever it answers now: one that is started again may do so on another port."""

    def __init__(self, where: Callable[[], str], tls: ssl.SSLContext | None = None) -> None:
        self._where, self._tls = where, tls
        self._client: Client | None = None

    def client(self) -> Client:
        """The client, kept as long as the address stays."""
        from headrace.client import Client

        url = self._where()
        if self._client is None or self._client.url != url:
            self.close()
            # As long as a person waits, all in all.
            key = os.environ.get(API_KEY) or None
            self._client = Client(url, timeout=TIMEOUT, within=TIMEOUT, api_key=key, tls=self._tls)
        return self._client

    def close(self) -> None:
        """Close what is open."""
        if self._client is not None:
            self._client.close()


def seconds(every: str | None, *, watch: bool) -> float:
    """How long to wait between two looks."""
    from headrace.clock import SECOND, duration

    if every is not None and not watch:
        raise UsageError("bad-usage", "--every says how often --watch looks.", hint="Add --watch, or leave it out.")
    try:
        return duration(every or EVERY) / SECOND
    except DefinitionError as error:
        raise UsageError("bad-usage", "--every cannot be read.", got=error.got, hint="Say 500ms, 1s or 1m.") from None


def show(body: bytes, *, as_json: bool) -> None:
    """The answer as a table and a word on how fresh it is, or as it came."""
    if as_json:
        import msgspec

        # As text, so that a decimal keeps its digits.
        data(msgspec.json.format(body, indent=2).decode())
        return
    answer = json.loads(body, parse_float=str)
    table(("feature", "value"), [(name, value_text(value)) for name, value in answer["features"].items()])
    talk(_freshness(answer))


def key_of(of: Readable, given: Sequence[str]) -> list[str] | dict[str, str]:
    """The key's values in the order of the columns; by their names where no order is agreed on."""
    kind = "Feature set" if of.feature_set is not None else type(of.views[0]).__name__
    example = " ".join(f"{name}=..." for name in of.by)
    hint = f"Write `headrace get {of.name} {example}`.".replace(" `.", "`.")
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or name not in of.by or name in found:
            message = f"{kind} {of.name!r} takes each column of its key once, as COLUMN=VALUE."
            raise UsageError("bad-usage", message, got=shown(text), hint=hint)
        found[name] = value
    missing = [name for name in of.by if name not in found]
    if missing:
        message = f"{kind} {of.name!r} needs its whole key: {', '.join(missing)} is missing."
        raise UsageError("bad-usage", message, got=shown(list(given)), hint=hint)
    return [found[name] for name in of.by] if of.ordered else found


def value_text(value: Any) -> str:
    """A value as a person reads it: text without quotes, everything else as JSON writes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _freshness(answer: dict[str, Any]) -> str:
    fresh = answer.get("freshness_ms")
    if fresh is None:
        said = "Nothing is known of how fresh this is"
    else:
        said = f"As of {answer.get('as_of')}, {float(fresh) / 1_000:.1f} s ago"
        if (late := answer.get("late_as_of")) is not None and late != answer.get("as_of"):
            said += f"; late events as of {late}"
    flags = [flag for flag in ("missing", "stale") if answer.get(flag)]
    return f"{said}{' (' + ', '.join(flags) + ')' if flags else ''}."
