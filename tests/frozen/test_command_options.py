"""Every verb of the command line with its arguments and options: names, types, defaults, hidden ones as well.

The help of each is in docs/reference/cli.md, which `tests/test_docs.py` checks.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner

from headrace.cli.main import cli


def list_commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """A command by its path, and all below it."""
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from list_commands(inner, click.Context(inner, info_name=name, parent=context))


def describe(parameter: click.Parameter) -> str:
    """One line: the names, the type with its bounds, and what is not as with any parameter."""
    about = parameter.to_info_dict()
    names = "/".join([*about["opts"], *about["secondary_opts"]])
    # A type that is a function names it, and the function may be renamed.
    kind = {name: value for name, value in about["type"].items() if name not in ("param_type", "name", "func")}
    traits = {name: about.get(name) for name in ("default", "required", "multiple", "hidden", "is_flag", "envvar")}
    given = {name: value for name, value in traits.items() if value not in (None, False)}
    many = {} if about["nargs"] == 1 else {"nargs": about["nargs"]}
    return f"{about['param_type_name']} {names}: {about['type']['name']} {kind | given | many or ''}".rstrip()


def test_every_verb_takes_the_arguments_and_options_that_it_took(golden):
    lines = []
    for path, command in list_commands(cli, context()):
        lines += [path, *(f"  {describe(parameter)}" for parameter in command.params)]
    golden("frozen/command_options", "\n".join(lines))


def context() -> click.Context:
    # Whoever asks a command for its help first decides which options show it.
    return click.Context(cli, info_name="headrace", **cli.context_settings)


def test_every_verb_shows_its_help_by_both_options():
    runner = CliRunner()
    for path, _ in list_commands(cli, context()):
        words = path.split()[1:]
        short, long = (runner.invoke(cli, [*words, option], prog_name="headrace") for option in ("-h", "--help"))
        assert (short.exit_code, long.exit_code) == (0, 0), path
        assert short.output == long.output
        assert long.output.startswith(f"Usage: {path} ")
