"""What becomes of a store's files that cannot be trusted: they are set aside, and the store is filled again.

Damage that a process met is noted in the folder, for the next start to see. Files that are not as their last user left
them are looked at row by row first, in a process of its own, which may die of it: it did not close them, and may have
died of what it read, or somebody has changed them since. Files that were cut off or are no store at all are found when
they are opened (`environment`).

    damaged   why the files are not to be used again
    closed    how large the file was when it was closed, and when it had last been written
    rebuild   somebody asks for the store to be emptied
    aside/    the files of the last store that could not be trusted
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import subprocess
import sys
import time
from pathlib import Path

from headrace.disk import HINT
from headrace.errors import DiskFullError, HeadraceError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.files import write_atomically
from headrace.store.lmdb.environment import DATA, Environment
from headrace.store.row_bytes import DamagedError, unsealed

LOOK = 120.0
"""Seconds that a look at all rows may take; a store so large that it takes longer is used as it is."""

_logger = logging.getLogger(__name__)
_DAMAGED, _CLOSED, _REBUILD, _ASIDE = "damaged", "closed", "rebuild", "aside"


def mark(folder: Path, why: str) -> None:
    """Note that the files are not to be used again; where nothing can be noted, the next start looks by itself."""
    with contextlib.suppress(OSError):
        write_atomically(folder / _DAMAGED, f"{why}\n")


def begin(folder: Path) -> None:
    """Note that a process writes from now on."""
    (folder / _CLOSED).unlink(missing_ok=True)


def end(folder: Path) -> None:
    """Note that it has closed the store as it should; not when the folder was taken from under it."""
    with contextlib.suppress(OSError):
        write_atomically(folder / _CLOSED, _state(folder))


def refuse_noted(folder: Path) -> None:
    """Refuse files in which some process has met damage."""
    noted = folder / _DAMAGED
    if noted.exists():
        why = noted.read_text(encoding="utf-8", errors="replace").strip()
        raise DamagedError("The store was found damaged.", got=why.partition("\n")[0], where=str(folder))


def refuse(folder: Path) -> None:
    """Refuse files that are known to be damaged, or turn out to be when they are not as their last user left them."""
    refuse_noted(folder)
    if not (folder / DATA).exists():
        return
    with contextlib.suppress(OSError):
        if (folder / _CLOSED).read_text(encoding="utf-8") == _state(folder):
            return
    _check_in_process(folder)


def _state(folder: Path) -> str:
    """What tells whether the file was changed."""
    found = (folder / DATA).stat()
    return f"{found.st_size} {found.st_mtime_ns}\n"


def _check_in_process(folder: Path) -> None:
    """Look at every row in a process of its own."""
    command = [sys.executable, "-P", "-m", "headrace.store.damage", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LOOK, check=False)
    except subprocess.TimeoutExpired:
        return
    if done.returncode == DiskFullError.exit_code:
        message = "The store cannot be looked at: its disk is full or its quota used up."
        raise DiskFullError("disk-full", message, hint=HINT, where=str(folder))
    if done.returncode:
        told = done.stderr.strip().rpartition("\n")[2] or f"ended with {done.returncode}"
        message = "The store was not closed, or was changed since, and not all of it is whole."
        raise DamagedError(message, got=told, where=str(folder))


def mended(folder: Path, *, readonly: bool, map_size: int, faults: FaultPoints = NO_FAULTS) -> Environment:
    """The files, if they can be trusted; otherwise new ones."""
    try:
        refuse(folder)
        return Environment(folder, readonly=readonly, map_size=map_size, faults=faults)
    except HeadraceError as error:
        if error.code not in ("store-damaged", "store-format"):
            raise
        _logger.warning("the store begins anew and is filled from the changelog: %s", error)
        set_aside(folder, faults)
        return Environment(folder, readonly=readonly, map_size=map_size, faults=faults)


def set_aside(folder: Path, faults: FaultPoints = NO_FAULTS) -> None:
    """Move the files out of the way; those of an earlier time go for good."""
    aside = folder / _ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for name in (DATA, "lock.mdb", _DAMAGED, _CLOSED):
        with contextlib.suppress(FileNotFoundError):
            (folder / name).replace(aside / name)
            faults.reach("store.aside.after")


def remove(folder: Path) -> None:
    """Remove the files for good, and what was noted about them."""
    shutil.rmtree(folder / _ASIDE, ignore_errors=True)
    for name in (DATA, "lock.mdb", _DAMAGED, _CLOSED, _REBUILD):
        (folder / name).unlink(missing_ok=True)


def ask_to_rebuild(folder: Path) -> None:
    """Ask the process that writes to empty the store."""
    write_atomically(folder / _REBUILD, f"{time.time()}\n")


def asked_to_rebuild(folder: Path) -> bool:
    """Whether somebody has asked for the store to be emptied."""
    return (folder / _REBUILD).exists()


def rebuild_begun(folder: Path) -> None:
    """Nobody asks any more: the store is empty, or the one who asked has given up."""
    with contextlib.suppress(FileNotFoundError):
        (folder / _REBUILD).unlink()


def check_rows(folder: Path) -> int:
    """Look at every row there is; how many that was. One that is damaged, lost or out of order is `store-damaged`."""
    env = Environment(folder, readonly=True)
    try:
        seen = 0
        with env.reading() as transaction:
            for table in (env.tiles, env.meta):
                last, count = b"", 0
                for identity, data in transaction.cursor(db=table):
                    if identity <= last and count:
                        raise DamagedError("Rows of the store are not in their order.", where=str(folder))
                    if identity != b"format":
                        unsealed(identity, data)
                    last, count = identity, count + 1
                if count != transaction.stat(table)["entries"]:
                    raise DamagedError("Rows of the store are lost.", where=str(folder))
                seen += count
        return seen
    finally:
        env.close()


if __name__ == "__main__":
    try:
        check_rows(Path(sys.argv[1]))
    except HeadraceError as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(error.exit_code)
