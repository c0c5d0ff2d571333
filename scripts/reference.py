"""Write docs/reference from the code: every error code, setting and verb, and what can be asked over HTTP.

`make docs` runs it; a test holds the files against what it would write, so that nothing goes undocumented.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from headrace import errors, project
from headrace.cli.init import create
from headrace.cli.main import cli
from headrace.config.config import SETTINGS
from headrace.config.kinds import Choice, Choices, WholeNumber
from headrace.config.row import Setting
from headrace.config.serve_settings import DEFAULTS
from headrace.config.settings import OTHER_VARIABLES
from headrace.serve.openapi import document
from headrace.serve.routes import ROUTES

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
WRITTEN = "<!-- Written by `make docs`; edit the code instead. -->"


def pages() -> dict[str, str]:
    """File name to text."""
    return {
        "errors.md": error_page(),
        "settings.md": settings_page(),
        "cli.md": cli_page(),
        "openapi.json": openapi_page(),
    }


def error_page() -> str:
    """Every class with its exit code and HTTP status, and every code with its meaning."""
    lines = [
        "# Errors",
        "",
        WRITTEN,
        "",
        "Every error has a code, one sentence, and where it applies the place (`where`), what came (`got`) and what to",
        'do (`hint`). `--json` gives them as `{"error": {"code", "message", "where", "got", "hint"}}` on stderr.',
        "One of an SQL expression also shows its lines with carets under the place (`at`; in JSON `excerpt`).",
        "",
        "| class | meaning | exit code | HTTP status |",
        "|---|---|---|---|",
    ]
    for kind in _classes(errors.HeadraceError):
        meaning = (kind.__doc__ or "").strip().splitlines()[0]
        lines.append(f"| `{kind.__name__}` | {meaning} | {kind.exit_code} | {kind.http_status} |")
    lines += ["", "The command line also exits with 70 on a defect in Headrace and with 130 when interrupted.", ""]
    lines += ["| code | meaning |", "|---|---|"]
    lines += [f"| `{code}` | {meaning} |" for code, meaning in errors.CODES.items()]
    return "\n".join(lines) + "\n"


def _classes(kind: type[errors.HeadraceError]) -> Iterator[type[errors.HeadraceError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _classes(inner)


def settings_page() -> str:
    """Every setting with what it takes, its default and its variable."""
    lines = [
        "# Settings",
        "",
        WRITTEN,
        "",
        "A value comes from its variable; else from the `[env.NAME]` overlay that `HEADRACE_ENV` or `--env` chooses;",
        "else from headrace.toml; else it is the default. A dotted name is a key in a table: `pipeline.mode` is `mode`",
        "in `[pipeline]`, and `mode` in `[env.NAME.pipeline]`.",
        "",
        "| setting | takes | default | variable | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [setting_line(setting) for setting in SETTINGS.values()]
    lines += ["", "| variable | meaning |", "|---|---|"]
    lines += [f"| `{variable}` | {meaning} |" for variable, meaning in OTHER_VARIABLES.items()]
    lines.append("| `NO_COLOR` | When set, the command line uses no colour. |")
    return "\n".join(lines) + "\n"


def setting_line(setting: Setting) -> str:
    """The line of one setting in the table of all settings."""
    default = "none" if setting.default is None else f"`{json.dumps(setting.default)}`"
    return f"| `{setting.name}` | {_takes(setting)} | {default} | `{setting.variable}` | {setting.meaning} |"


def _takes(setting: Setting) -> str:
    match setting.kind:
        case Choice(choices) | Choices(choices):
            return " or ".join(f"`{choice}`" for choice in choices)
        case WholeNumber(unit=unit) if unit:
            return f"{setting.kind.takes} ({unit})"
        case kind:
            return kind.takes


def cli_page() -> str:
    """Every verb as its own `--help` tells it."""
    lines = ["# The command line", "", WRITTEN, "", "stdout is data, stderr is talk; a failure exits non-zero.", ""]
    for path, text in _helps(cli, click.Context(cli, info_name="headrace", terminal_width=100, **cli.context_settings)):
        lines += [f"## {path}", "", "```text", text, "```", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def openapi_page() -> str:
    """What can be asked over HTTP of the project that `headrace init` makes."""
    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder) / "shop")
        made = document(ROUTES, project.load(Path(folder) / "shop").plan(), DEFAULTS, keyed=True)
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _helps(inner, click.Context(inner, info_name=name, parent=context, terminal_width=100))


def main() -> int:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stderr.write(f"docs/reference/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
