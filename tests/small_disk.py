"""A small disk of its own for a test: a tmpfs that can be filled to the last byte and freed again. It takes root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

ALL = 1 << 20
"""Bytes of the first writes that fill it; smaller ones take the rest."""


class SmallDisk:
    """A mounted disk."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self) -> int:
        """Take all that is left; how many bytes that was."""
        taken = 0
        with self._ballast.open("ab", buffering=0) as file:
            for size in (ALL, 4096, 1):
                with contextlib.suppress(OSError):
                    while written := file.write(b"x" * size):
                        taken += written
        return taken

    def free(self) -> None:
        """Give it all back."""
        self._ballast.unlink()


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a disk of so many megabytes at a folder for the time being."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        # Lazily: a process that a failed test has left must not keep it.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def is_mountable() -> bool:
    """Whether this process may mount a disk: whether it is root, and not confined."""
    if os.geteuid():
        return False
    ran = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return ran.returncode == 0
