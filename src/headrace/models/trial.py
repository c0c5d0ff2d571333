"""The trial of a version before anyone is given it: it is loaded and has to score, in a process of its own.

Whatever a model's file does, sleeps, spins, crashes or takes all memory, it does there: the process has a time, half of
the machine's memory, and ends with whoever started it. What it found is written into a file beside nothing else. Run as
`python -m headrace.models.trial FOLDER ANSWER PARENT`, by `try_out` alone.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headrace import errors
from headrace.errors import DataError, HeadraceError, MachineError
from headrace.machine import end_with, limit_memory
from headrace.models.manifest import Manifest
from headrace.processes.child import ChildProcess, name_exit, start_module

LIMIT = 30.0
"""Seconds that a version may take to be loaded and to score: so much as serving gives it."""
SHARE = 0.5
"""The part of the machine's memory that a version on trial may take."""


def try_out(folder: Path, manifest: Manifest, limit: float = LIMIT) -> None:
    """Refuse a version that cannot be loaded, has no score for a plain row, hangs, or ends its process.

    Parameters
    ----------
    folder
        Holds the model's file and its manifest.
    limit
        Seconds that it may take.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-") as place:
        answer = Path(place) / "answer.json"
        code = _run(folder, answer, manifest, limit)
        told = answer.read_bytes() if answer.is_file() else b""
    if code != 0 or not told:
        message = f"The {manifest.title} ended its process when it was loaded and asked for a score."
        hint = "A model must not end the process, crash, or take more than half of the machine's memory."
        raise DataError("bad-model", message, got=name_exit(code), hint=hint)
    _raise(json.loads(told))


def start_model(module: str, given: Sequence[str], descriptors: Sequence[int] = ()) -> ChildProcess:
    """Start a module that runs a model's own code; what it prints goes to stderr."""
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return start_module(module, given, variables=threads, descriptors=descriptors)


def _run(folder: Path, answer: Path, manifest: Manifest, limit: float) -> int:
    """The exit code of the process, which is ended with all that it started when its time is over."""
    with start_model("headrace.models.trial", [str(folder), str(answer), str(os.getpid())]) as process:
        code = process.wait(limit)
    if code is None:
        message = f"The {manifest.title} was not loaded, or gave no score, within {limit:g} s."
        hint = "Serving gives it no longer either: look for a loop that does not end, or load less."
        raise MachineError("model-slow", message, got=f"{manifest.file} ({manifest.format})", hint=hint)
    return code


def _raise(told: dict[str, str | None]) -> None:
    """Raise what the trial told, if it told of an error."""
    if told.get("code") is None:
        return
    kind = getattr(errors, str(told["kind"]), HeadraceError)
    fields = {name: told[name] for name in ("got", "hint", "where")}
    raise kind(str(told["code"]), str(told["message"]), **fields)


def main(given: Sequence[str]) -> int:
    """Load a version, have it score, and write what came of it."""
    folder, answer, parent = given
    end_with(int(parent))
    limit_memory(SHARE)
    told: dict[str, str | None] = {}
    try:
        _try(Path(folder))
    except HeadraceError as error:
        told = error.as_json() | {"kind": type(error).__name__}
    Path(answer).write_text(json.dumps(told), encoding="utf-8")
    # What a model has started, threads say, is not waited for.
    os._exit(0)


def _try(folder: Path) -> None:
    from headrace.models import formats, manifest
    from headrace.models.probe import probe
    from headrace.models.scorer import Scorer

    made = manifest.read(folder)
    probe(Scorer(made, formats.load(folder, made)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
