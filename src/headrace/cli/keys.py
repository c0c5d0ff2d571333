"""`headrace keys`: API keys for serving, made here and kept by whoever asks; the project keeps hashes."""

from __future__ import annotations

import re
from pathlib import Path

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, table, talk
from headrace.errors import UsageError, shown

ROLES = ("read", "write", "admin")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@click.group("keys")
def command() -> None:
    """Make API keys for serving, and list those that are set.

    A key is shown once, when it is made. headrace.toml has its hash, in [serve.keys], or says which variable or file
    holds it. `read` is for values and status, `write` for events, `admin` for everything.
    """


@command.command("new")
@click.option(
    "--role", "roles", type=click.Choice(ROLES), multiple=True, required=True, help="What it allows; may be repeated."
)
@click.option("--name", default="NAME", metavar="NAME", help="What it is called in headrace.toml.")
@options.as_json
def new(roles: tuple[str, ...], name: str, as_json: bool) -> None:
    """Make a key: print it once, and the line that lets it in.

    The key goes to stdout alone, so that it can be piped to where it is kept.
    """
    from headrace.serve.access import digest_of, new_key

    if any("\ud800" <= char <= "\udfff" for char in name):
        raise UsageError("bad-usage", "The name of a key is not UTF-8.", got=shown(name), hint="Give it another name.")
    key = new_key()
    setting = f"{'+'.join(dict.fromkeys(roles))}:sha256:{digest_of(key).hex()}"
    if as_json:
        data_json({"key": key, "name": name, "setting": setting})
        return
    data(key)
    talk("Keep it: it is not shown again. To let it in, add to headrace.toml and start serving again:")
    talk(f'\n[serve.keys]\n{toml_key(name)} = "{setting}"')


def toml_key(name: str) -> str:
    r"""A name as a key of TOML, in quotes where it needs them.

    >>> print(toml_key("shop-2"), toml_key('a "b"\n'))
    shop-2 "a \"b\"\n"
    """
    if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII):
        return name
    return '"' + "".join(_in_quotes(char) for char in name) + '"'


def _in_quotes(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\U{ord(char):08x}"


@command.command("list")
@options.project_options
@options.as_json
def listed(path: Path | None, env: str | None, as_json: bool) -> None:
    """Show the names of the keys that are set, their roles, and where each comes from."""
    from headrace.config import config as configuration
    from headrace.serve.access import refuse_malformed

    config = configuration.load(path, env=env)
    forms = refuse_malformed(config)
    if as_json:
        rows = [{"name": name, "roles": sorted(form.roles), "from": form.kind} for name, form in forms.items()]
        data_json({"keys": rows})
        return
    if not forms:
        talk("No keys are set: whoever reaches serving may ask.")
    table(("name", "roles", "from"), [(name, ", ".join(sorted(form.roles)), form.kind) for name, form in forms.items()])
