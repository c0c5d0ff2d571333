"""Notices that a project's files were edited while it is up, and tells the page what differs from what runs.

The supervisor must not load the definitions itself: they are the user's code, and it has loaded them once. It asks
`headrace status` in a process of its own, and only after a file has changed or a process was started again.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Self

from headrace.errors import HeadraceError
from headrace.log.protocol import Log
from headrace.processes.child import ChildProcess
from headrace.supervisor.plan_record import CURRENT
from headrace.supervisor.supervisor import Supervisor

COMPONENT = "definitions"
LOOK, AGAIN = 1.0, 5.0
"""Seconds between two looks at the files, and between two times of saying the same: who has just started hears it."""

Signature = tuple[tuple[str, int, int], ...]


class EditWatch:
    """Looks at the files of a project.

    Parameters
    ----------
    files
        Gives the files that definitions may come from.
    command
        `headrace status --json` of the project.
    topic
        Where components say how they are doing.
    """

    def __init__(
        self,
        files: Callable[[], Sequence[Path]],
        command: Sequence[str],
        topic: str,
        say: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files, self._command, self._topic, self._say, self._now = files, command, topic, say, now
        self._looked = self._appended = float("-inf")
        # Taken before any process has loaded the files: an edit while they start is noticed as well.
        self._signature = _signature(files())
        self._pids: list[int] | None = None
        self._asked: tuple[ChildProcess, IO[bytes]] | None = None
        # What was said in another life of the project may still be in the log: it is taken back.
        self._news, self.definitions = True, dict(CURRENT)

    def look(self, supervisor: Supervisor, log: Log) -> None:
        """Ask anew when something has changed, and say what is known; never waits."""
        self._hear()
        if self._asked is None and supervisor.was_ready and self._now() - self._looked >= LOOK:
            self._looked = self._now()
            if self._has_changed(supervisor):
                self._ask()
        if self._news or (self.definitions["says"] and self._now() - self._appended >= AGAIN):
            self._append(log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._asked is not None:
            asked, answer = self._asked
            asked.end()
            answer.close()

    def _has_changed(self, supervisor: Supervisor) -> bool:
        """Whether a file was written since the last time, or a process was started again, which loaded them anew."""
        before = self._signature, self._pids
        self._signature = _signature(self._files())
        self._pids = [watched.process.pid for watched in supervisor.watched if watched.process is not None]
        return before not in ((self._signature, self._pids), (self._signature, None))

    def _ask(self) -> None:
        answer = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was read
        asked = ChildProcess(self._command, output=answer, errors=subprocess.DEVNULL)
        self._asked = asked, answer

    def _hear(self) -> None:
        """Take the answer once it is whole; a command that failed says nothing, and is asked at the next change."""
        if self._asked is None or self._asked[0].code() is None:
            return
        with self._asked[1] as answer:
            answer.seek(0)
            said = answer.read()
        self._asked = None
        try:
            definitions = json.loads(said)[COMPONENT]
        except (ValueError, LookupError, TypeError):
            return
        if definitions != self.definitions:
            self._say(definitions["says"] or "everything runs what is written")
            self._news, self.definitions = True, definitions

    def _append(self, log: Log) -> None:
        """Say it in the status topic. A log that is away is asked again later."""
        self._news, self._appended = False, self._now()
        with contextlib.suppress(HeadraceError, OSError):
            log.append(self._topic, json.dumps(self.definitions).encode(), key=COMPONENT.encode())


def _signature(files: Sequence[Path]) -> Signature:
    """What changes whenever a file is written."""
    found = []
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)
