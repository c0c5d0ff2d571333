"""A verb asked within this process: its exit code, what it put out and what it said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.cli.main import main
from tests.moments import refuse_numbers_in

Ask = Callable[..., tuple[int, str, str]]


def asking(capsys: Any, verb: str) -> Ask:
    """Asks one verb with whatever arguments."""

    def ask(*arguments: str) -> tuple[int, str, str]:
        code = main([verb, *arguments])
        said = capsys.readouterr()
        if "--json" in arguments:
            refuse_numbers_in(said.out)
        return code, said.out, said.err

    return ask
