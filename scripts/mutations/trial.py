"""A trial: a copy of the tree is broken in one place, and tests are run until one of them notices.

The tree itself is never changed. A test counts only if it passes on the copy as it was: one that fails anyway is left
out and named. Whoever runs out of time without a failing test has noticed nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.mutations.mutation import Mutation, MutationError
from scripts.mutations.origin import VARIABLE
from scripts.mutations.selection import Stage

LEFT_BEHIND = (".git", ".venv", "__pycache__", "*.pyc", ".hypothesis", ".*_cache", ".headrace")
MOST_BROKEN = 5
"""Tests that may fail on the copy as it was before nothing is believed any more."""
Run = Callable[[Stage, Sequence[str]], "TestRun"]
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s:]+\.py(?:::.+?)?)(?: - .*)?$", re.MULTILINE)
_PASSED, _FAILURES, _INTERRUPTED, _NONE = 0, 1, 2, 5


@dataclass(frozen=True)
class TestRun:
    """How a run of pytest ended: its exit code (None when it ran out of time), the first failing test, its output."""

    __test__ = False

    code: int | None
    failed: str | None
    output: str = ""


@dataclass(frozen=True)
class Finding:
    """What became of a mutation: `caught`, `survived` or `timed out`; which test noticed; which fail without it."""

    mutation: Mutation
    end: str
    test: str | None = None
    broken: tuple[str, ...] = ()


class TreeCopy:
    """A copy of the tree, with the environment of the original."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        if (root / ".venv").exists():
            (folder / ".venv").symlink_to((root / ".venv").resolve())
        self._sound: dict[str, bool] = {}

    def try_mutation(self, mutation: Mutation, stages: Sequence[Stage], run: Run | None = None) -> Finding:
        """Break the copy, run the stages until a test notices, and mend the copy."""
        run = run or self.run_tests
        broken: list[str] = []
        out_of_time = False
        for stage in stages:
            while True:
                with _Broken(self.root / mutation.file, mutation):
                    seen = run(stage, broken)
                out_of_time |= seen.code is None
                if seen.failed is None:
                    break
                if self._is_sound(seen.failed, run):
                    return Finding(mutation, "caught", seen.failed, tuple(broken))
                broken.append(seen.failed)
                if len(broken) > MOST_BROKEN:
                    raise MutationError(f"too many tests fail without a mutation: {', '.join(broken)}")
        return Finding(mutation, "timed out" if out_of_time else "survived", None, tuple(broken))

    def _is_sound(self, test: str, run: Run) -> bool:
        """Whether a test passes on the copy as it was; of a file that could not be collected, whether it can be."""
        if test not in self._sound:
            self._sound[test] = run(Stage((test,)), ()).failed is None
        return self._sound[test]

    def run_tests(self, stage: Stage, left_out: Sequence[str]) -> TestRun:
        """Run pytest over a stage in the copy, up to the first failing test."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "scripts.mutations.origin", "--doctest-modules"]
        options += ["--no-header", "--tb=line", *(["-m", stage.marked] if stage.marked else [])]
        options += [f"--deselect={test}" for test in left_out] + [f"--ignore={file}" for file in stage.ignored]
        command = [sys.executable, "-m", "pytest", *options, *stage.tests]
        source = str(self.root / "src")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, str(self.root)]), VARIABLE: source}
        code, output = _run(command, self.root, environment, stage.seconds)
        failed = _FAILED.search(output)
        if code in (None, _PASSED, _NONE):
            return TestRun(code, None, output)
        if code not in (_FAILURES, _INTERRUPTED) or failed is None:
            raise MutationError(f"pytest ended with {code} and named no test:\n{output[-2000:]}")
        return TestRun(code, failed.group(1), output)


class _Broken:
    """While entered, a file has a mutation, and nobody reads what was compiled of it before."""

    def __init__(self, file: Path, mutation: Mutation) -> None:
        self._file, self._source = file, file.read_text("utf-8")
        self._after = mutation.apply(self._source)

    def __enter__(self) -> None:
        self._write(self._after)

    def __exit__(self, *_: object) -> None:
        self._write(self._source)

    def _write(self, text: str) -> None:
        self._file.write_text(text, "utf-8")
        if self._file.suffix == ".py":
            Path(importlib.util.cache_from_source(str(self._file))).unlink(missing_ok=True)


def _run(command: Sequence[str], folder: Path, environment: dict[str, str], seconds: float) -> tuple[int | None, str]:
    """The exit code and the output of a command; no code when it had to be ended."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output
        return process.returncode, output
