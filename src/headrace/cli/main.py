"""The `headrace` command: finds the verb, runs it, and turns every failure into text, JSON and an exit code.

A verb's module is imported when the verb is used and not before, so `headrace --help` is instant. What a verb does is
in the module named after it. stdout is data, stderr is talk.

Exit codes: 0 done, 1 failed, 2 refused what was asked, 3 the machine lacks something, 4 a disk is full, 70 a defect in
Headrace, 130 interrupted.
"""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from headrace.cli.interrupt import Interrupts, interrupt_line
from headrace.cli.output import fail, talk
from headrace.disk import as_full, is_full
from headrace.errors import HeadraceError, UsageError, did_you_mean, shown
from headrace.safe_text import quote_logs

VERBS: dict[str, str] = {
    "init": "Make a project: headrace.toml, features.py and a passing test.",
    "check": "Say what is wrong with the project, or that nothing is.",
    "plan": "Show what will run, where and in which mode.",
    "up": "Start the project's processes and keep them running.",
    "status": "Show what runs, what it reads, and how far behind it is.",
    "state": "Show what Spark keeps between batches, and which keys are hot.",
    "logs": "Show what the processes have said.",
    "down": "End the project's processes.",
    "run": "Run one process of the project in the foreground.",
    "send": "Send the rows of a file to a stream.",
    "import": "Bring history into the lake, with its own arrival times.",
    "tail": "Show the records of a stream or topic.",
    "dead-letters": "List, show, replay and drop dead letters.",
    "lake": "Look into the lake, ask it in SQL, keep its files in order.",
    "store": "Show what the store holds, and fill it again.",
    "backfill": "Compute tiles anew from the history in the lake.",
    "late": "Publish and look at what came too late for the stream.",
    "lateness": "Show how late events arrive, and choose the allowed lateness.",
    "get": "Show the features of a key as they are now.",
    "training-set": "Make a training set: features as they were known then.",
    "skew": "Compare what was served with what was known then.",
    "evaluate": "Say how good predictions were.",
    "drift": "Say what has moved of what models are given and answer.",
    "incidents": "List, show, acknowledge and close incidents.",
    "trace": "Follow one event through log, tiles, predictions and sets.",
    "model": "Add versions of models, and say which of them answer.",
    "keys": "Make API keys for serving, and list those that are set.",
    "kafka": "Run a local Kafka broker, and fetch what Kafka needs.",
    "redis": "Run a local Redis for the store.",
    "features": "List, show and search what is defined.",
    "demo": "Show what fresh features are worth.",
    "prepare": "Make Spark start in half the time on this machine.",
    "doctor": "Say whether this machine has what Headrace needs.",
}

OPEN = frozenset({"init", "prepare"})
"""Verbs whose files are a project's or a Python environment's: others may read them as the user's own umask says."""
DEFECT = 70
INTERRUPTED = 130


def module_of(verb: str) -> str:
    """The module of a verb; one that is a word of Python's own has an underscore after it.

    >>> module_of("dead-letters"), module_of("import")
    ('dead_letters', 'import_')
    """
    name = verb.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs in the order a user meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the verb's module."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"headrace.cli.{module_of(cmd_name)}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"headrace.cli.{cmd_name}.command is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown verb with the closest known one."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], VERBS)
            raise UsageError("bad-usage", "There is no such verb.", got=shown(args[0]), hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs from the table, without importing any."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import version

    click.echo(f"headrace {version('headrace')}")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
def cli() -> None:
    """Features from streams: one definition, computed by Spark, served fresh."""


@contextmanager
def _private_files(verb: str | None) -> Iterator[None]:
    """Keep what a verb writes to its user: logs, events and keys are nobody else's, nor what its processes write.

    What `OPEN` names writes files to be shared.
    """
    before = os.umask(0o077)
    os.umask(before if verb in OPEN else before | 0o077)
    try:
        yield
    finally:
        os.umask(before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    >>> main(["--version"])
    headrace 0.1.0.dev0
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    quote_logs()
    verb = next((word for word in given if not word.startswith("-")), None)
    with Interrupts() as interrupts:
        try:
            with _private_files(verb):
                code = cli.main(given, prog_name="headrace", standalone_mode=False)
        except (KeyboardInterrupt, click.Abort) as error:
            return _interrupted(error)
        except Exception as error:
            # What fails while interrupted work is cleaned up is no news.
            return _interrupted(error) if interrupts.happened else _failed(error, given)
    if interrupts.is_pending:
        return _interrupted()
    return code if isinstance(code, int) else 0


def _interrupted(error: BaseException | None = None) -> int:
    talk(interrupt_line(error))
    return INTERRUPTED


def _failed(error: Exception, given: Sequence[str]) -> int:
    as_json = "--json" in given
    if is_full(error):
        return fail(as_full(error), as_json=as_json)
    if isinstance(error, HeadraceError):
        return fail(error, as_json=as_json)
    if isinstance(error, click.ClickException):
        return fail(_usage(error), as_json=as_json)
    if os.environ.get("HEADRACE_DEBUG") == "1":
        raise error
    refusal = _refusal(error, given)
    return _defect(error) if refusal is None else fail(refusal, as_json=as_json)


def _usage(error: click.ClickException) -> UsageError:
    """A complaint of click's in Headrace's own form."""
    message = error.format_message().strip()
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "headrace"
    sentence = message if message.endswith((".", "?")) else f"{message}."
    return UsageError("bad-usage", sentence, hint=f"See `{path} --help`.")


def _refusal(error: Exception, arguments: Sequence[str]) -> HeadraceError | None:
    """A failure of the machine with the user's files in Headrace's own form; None for a defect."""
    if not isinstance(error, OSError | UnicodeEncodeError):
        return None
    from headrace.cli.unusable_files import as_refusal

    return as_refusal(error, arguments)


def _defect(error: Exception) -> int:
    from headrace.spark.failure import cause_of, is_spark_error

    said = cause_of(error) if is_spark_error(error) else shown(str(error), 200)
    talk(f"error: Headrace failed unexpectedly: {type(error).__name__}: {said}")
    talk("hint: This is a defect in Headrace. Set HEADRACE_DEBUG=1 to see the traceback, and report it.")
    return DEFECT


if __name__ == "__main__":
    sys.exit(main())
