"""The options several verbs share, each with one meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace.errors import DefinitionError, UsageError, shown

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


def finite(text: str) -> float:
    """A number of a text; `nan` and `inf` are none.

    >>> finite("0.5")
    0.5
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


class FiniteRange(click.FloatRange):
    """A number between two bounds; `nan` is between none.

    >>> FiniteRange(0, 1).convert("nan", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: nan is not a number.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of a text."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{found} is not a number.", param, ctx)
        return found


def since_when(text: str) -> int:
    """The moment that `--since` means: a time, or an age such as 2h."""
    from headrace.clock import SystemClock, duration, parse_timestamp

    moment = parse_timestamp(text)
    if moment is not None:
        return moment
    try:
        return SystemClock().now() - duration(text)
    except DefinitionError:
        hint = "Say a time such as 2026-01-31T12:00:00Z, or an age such as 2h."
        raise UsageError("bad-usage", "--since cannot be read.", got=shown(text), hint=hint) from None
