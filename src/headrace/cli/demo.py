"""`headrace demo`: runs the demo in the folder examples/headrace_demo. The installed package does not carry it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import click

from headrace.errors import MachineError

DEMO = "headrace_demo"


@click.command("demo", context_settings={"ignore_unknown_options": True})
@click.argument("_arguments", nargs=-1, type=click.UNPROCESSED)
def _refuse(_arguments: tuple[str, ...]) -> int:
    """Show what fresh features are worth. The demo is in the repository of Headrace."""
    hint = "Clone the repository of Headrace and run `make demo` in it."
    raise MachineError("missing-package", "The demo is not part of the installed package.", hint=hint)


command: click.Command = import_module(f"{DEMO}.command").command if find_spec(DEMO) else _refuse
