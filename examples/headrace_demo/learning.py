"""From files to a model that answers, as anybody would do it: the verbs, one after the other.

They run in one process, so that Spark starts once: `python -m headrace_demo.learning FOLDER`. It
begins when its input ends, so that Spark starts while history is written. When it ends, Spark does.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, TypeVar

from headrace.cli.output import data
from headrace.errors import MachineError
from headrace.processes.child import ChildProcess

if TYPE_CHECKING:
    from headrace.project import Project

Written = TypeVar("Written")
IMPORT = ("import", "history.jsonl", "--stream", "payments", "--arrived-at", "arrived_at")
TRAIN = "train.py"
SHOWN = f"$ python {TRAIN}"


def learn(
    project: Project,
    say: Callable[[str], None],
    write: Callable[[], Written],
    filled: Callable[[], None] = lambda: None,
) -> Written:
    """History in the lake, tiles made of it, a training set, a champion; gives what `write` gave.

    `write` is called to write history, while Spark starts. `filled` is called once tiles are made: what it starts comes
    up while the model learns.
    """
    from headrace.processes import state_folder
    from headrace.supervisor.services import Services

    Services(project.config, say).start()
    log, root = state_folder.find_state_folder(project.config).log("learning"), project.config.root
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "headrace_demo.learning", str(root)]
    with log.open("w") as said, ChildProcess(command, input=PIPE, output=PIPE, errors=said) as child:
        written = write()
        if child.stdin is not None:
            child.stdin.close()
        for line in map(bytes.decode, child.stdout or ()):
            say(line.rstrip())
            if line.startswith(SHOWN):
                filled()
        code = child.wait()
    if code:
        raise MachineError("start-failed", "The demo could not train its model.", got=log.read_text()[-2_000:])
    return written


def main() -> None:
    """Each step with the time it took."""
    from headrace import project
    from headrace.batch import session_of
    from headrace.cli import backfill, import_

    steps: dict[str, Callable[[], object]] = {
        f"headrace {' '.join(IMPORT)}": lambda: import_.command.main(list(IMPORT[1:]), standalone_mode=False),
        "headrace backfill": lambda: backfill.command.main([], standalone_mode=False),
        SHOWN.removeprefix("$ "): lambda: runpy.run_path(TRAIN, run_name="__main__"),
    }
    os.chdir(sys.argv[1])
    sys.path.insert(0, str(Path.cwd()))
    with session_of(project.load(Path.cwd()), None, "demo"):
        sys.stdin.readline()
        for shown, step in steps.items():
            began = time.perf_counter()
            data(f"$ {shown}")
            step()
            data(f"({time.perf_counter() - began:.1f} s)\n")


if __name__ == "__main__":
    main()
