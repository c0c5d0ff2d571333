"""The options several verbs share, each with one meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., object])

as_json: Callable[[Function], Function] = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def project_options(function: Function) -> Function:
    """Add `--project` and `--env`, which say whose definitions are meant.

    >>> from headrace.cli.check import command
    >>> [parameter.opts[0] for parameter in command.params]
    ['--project', '--env', '--json']
    """
    folder = click.option(
        "--project",
        "path",
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="The project's folder; otherwise the one you are in.",
    )
    env = click.option("--env", metavar="NAME", help="The environment; otherwise HEADRACE_ENV.")
    return folder(env(function))
