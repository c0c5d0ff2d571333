"""Processes that end with the block that started them."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def ended(command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own while the block runs; asked to end after it, and killed if it does not."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=env, start_new_session=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def finished(command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """What a command printed that must succeed."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if ran.returncode:
        raise RuntimeError(f"{command[0]} failed: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return ran.stdout
