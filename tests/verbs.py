"""Whether the commands that a document shows exist: their verbs, the verbs below them, and their options."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from headrace.cli.main import cli

ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "(", ")", "<(", "$("}
"""Where a command ends in a shell."""


def unknown_words(line: str) -> Iterator[str]:
    """Each `headrace VERB` or option in a line of a shell that does not exist.

    >>> list(unknown_words("headrace plan --jsonn && headrace down"))
    ['headrace plan --jsonn']
    """
    words = list(shlex.shlex(line, posix=True, punctuation_chars="();<>|&")) if line.count("'") % 2 == 0 else []
    for at, word in enumerate(words):
        if word == "headrace":
            yield from _faults(words[at + 1 :])


def _faults(words: list[str]) -> Iterator[str]:
    command: click.Command = cli
    context, path = click.Context(cli), ["headrace"]
    for word in words:
        if any(mark in word for mark in "();<>|&") and not word.strip("();<>|&"):
            return
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = command.get_command(context, word)
            if found is None:
                yield " ".join([*path, word])
                return
            command, path = found, [*path, word]
        elif word.startswith("--") and word.partition("=")[0] not in _options(command):
            yield " ".join([*path, word])


def _options(command: click.Command) -> set[str]:
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own | {"--help"}
