"""One process at a time changes a project's dead letters: two replays side by side would append a record twice.

The lock is a file in the project's data folder. Projects on other machines that share the topics do not see it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from headrace.config.config import Names
from headrace.errors import MachineError
from headrace.files import lock_file


def locked(named: Names) -> AbstractContextManager[None]:
    """Be the one that changes the letters; refused at once when another is."""
    file = named.path("run", "dead-letters.lock")
    hint = "Wait until it has ended. What it has done is told by `headrace dead-letters list`."
    message = "Another process replays or drops dead letters of this project."
    return lock_file(file, MachineError("letters-locked", message, got=str(file), hint=hint))
