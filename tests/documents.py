"""Running a document: its Python blocks as one script, its console blocks as one session in a folder of their own.

How to write them:

- ```python blocks run in order in one namespace. A statement that ends in `# -> text` must give (or print) that text.
  A ```text block that follows directly is what the block prints.
- ```console blocks hold `$ command` lines, each followed by what it prints; `...` stands for anything. A command must
  succeed unless the output shown has a line that begins with `error:`.
- A comment on the line before a block says otherwise: `<!-- not run: WHY -->`, `<!-- long -->` (run by
  `make prove`), or `<!-- file: NAME -->` (written to the session's folder, not run).
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- (not run|long|file)(?:: (.+?))? -->\n$")
_ARROW = re.compile(r"#\s*->\s*(.+)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, first line, what a comment says of it, and the output shown below it."""

    language: str
    text: str
    line: int
    mark: str | None
    told: str | None
    output: str | None


def blocks(text: str) -> list[Block]:
    """The blocks of a document in order."""
    found = list(_FENCE.finditer(text))
    made = []
    for at, match in enumerate(found):
        mark = _MARK.search(text[: match.start()])
        after = found[at + 1] if at + 1 < len(found) else None
        directly = after is not None and after.group(1) == "text" and not text[match.end() : after.start()].strip()
        made.append(
            Block(
                match.group(1),
                match.group(2),
                text.count("\n", 0, match.start()) + 2,
                mark.group(1) if mark else None,
                mark.group(2) if mark else None,
                after.group(2) if after is not None and directly else None,
            )
        )
    return made


def run(document: Path, folder: Path, *, long: bool) -> int:
    """Run what a document shows and return how many blocks ran; a difference is an AssertionError."""
    ran, namespace, session = 0, {"__name__": "__main__"}, Session(folder)
    for block in blocks(document.read_text(encoding="utf-8")):
        where = f"{document.name}:{block.line}"
        if block.mark == "not run" or (block.mark == "long" and not long):
            assert block.mark == "long" or block.told, f"{where}: say why it is not run"
        elif block.mark == "file":
            target = folder / str(block.told)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            run_python(block, document, namespace)
            ran += 1
        elif block.language == "console":
            session.run(block, where)
            ran += 1
    return ran


def run_python(block: Block, document: Path, namespace: dict[str, Any]) -> None:
    """Run a block as if it stood in the document, so that errors and sources have the right lines."""
    tree = ast.parse("\n" * (block.line - 1) + block.text, str(document))
    lines = block.text.splitlines()
    everything = io.StringIO()
    for statement in tree.body:
        printed, value = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), str(document), "eval"), namespace)
            else:
                exec(compile(ast.Module([statement], []), str(document), "exec"), namespace)
        arrow = _ARROW.search(lines[(statement.end_lineno or statement.lineno) - block.line])
        if arrow:
            got = printed.getvalue().rstrip("\n") if value is None and printed.getvalue() else repr(value)
            same(arrow.group(1), got, f"{document.name}:{statement.end_lineno}")
        else:
            everything.write(printed.getvalue())
    if block.output is not None:
        same(block.output, everything.getvalue(), f"{document.name}:{block.line}")


class Session:
    """A shell in a folder: `cd` and files last from one command to the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, block: Block, where: str) -> None:
        """Run each command of a console block and compare what it prints."""
        for command, expected in commands(block.text):
            # make targets belong to the repository, everything else to the reader's own folder.
            folder = ROOT if command.startswith("make ") else self.folder
            shell = ["bash", "-c", f"{command}\ncode=$?; pwd >&3; exit $code"]
            read, write = os.pipe()
            try:
                ran = subprocess.run(
                    ["bash", "-c", 'exec 3>&"$0"; exec "$@"', str(write), *shell],
                    cwd=folder,
                    env=environment(os.environ),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    pass_fds=(write,),
                    check=False,
                )
            finally:
                os.close(write)
            with os.fdopen(read) as pipe:
                ended = pipe.read().strip()
            if folder is not ROOT and ended:
                self.folder = Path(ended)
            fails = any(line.startswith("error:") for line in expected.splitlines())
            assert (ran.returncode != 0) is fails, f"{where}: `{command}` exited {ran.returncode}\n{ran.stdout}"
            if expected.strip():
                same(expected, ran.stdout, f"{where}: `{command}`")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """A reader's environment: this Python's commands first, no colour, no settings of ours."""
    kept = {name: value for name, value in environ.items() if not name.startswith(("HEADRACE_", "PYTEST_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", "")])
    return kept | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it.

    >>> list(commands("$ echo a\\na\\n$ true\\n"))
    [('echo a', 'a\\n'), ('true', '')]
    """
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = f"{command}\n{more}"
        yield command.partition("  # ")[0].rstrip(), output


def same(expected: str, got: str, where: str) -> None:
    """Compare two texts; `...` stands for anything, and blank ends do not count."""
    want, have = (f"{text.strip()}\n" for text in (expected, got))
    matches = doctest.OutputChecker().check_output(want, have, doctest.ELLIPSIS)
    assert matches, f"{where} shows\n{want}\nbut it is\n{have}"
