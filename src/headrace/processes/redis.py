"""A Redis on this machine, for a project whose settings name none: one process, on the loopback alone.

It keeps nothing on the disk. The store in it is a fold of the changelog, so one that comes back empty is filled again,
and files would only be one more thing that can be damaged. `store.open` finds it by `address`.
"""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from headrace.config.config import Config
from headrace.config.row import DEFAULT
from headrace.config.settings import StoreSettings
from headrace.errors import MachineError
from headrace.processes import service
from headrace.processes.ports import HOST
from headrace.processes.service import STOPPING, RunningService, Service

PROGRAM = "redis-server"
USUAL = StoreSettings().url.removeprefix("redis://")
"""Where a Redis is when nobody says otherwise."""
WITHIN = 1.0
"""Seconds for an answer from this machine."""


def redis_service(folder: Path) -> Service:
    """A Redis by its folder."""
    return Service(folder, "Redis", "redis")


def redis_folder(config: Config) -> Path:
    """Where a project's own Redis keeps its log and its address; its environments share it, as their keys differ.

    >>> from headrace.config.config import parse
    >>> redis_folder(parse('[project]\\nname = "shop"', Path("shop"), {})).as_posix()
    'shop/.headrace/redis'
    """
    return config.data / "redis"


def named(config: Config) -> bool:
    """Whether the settings name a Redis, be it the usual one.

    >>> from headrace.config.config import parse
    >>> text = '[project]\\nname = "shop"\\n[store]\\nurl = "redis://127.0.0.1:6379"'
    >>> named(parse(text, Path("shop"), {})), named(parse(text.partition("[store]")[0], Path("shop"), {}))
    (True, False)
    """
    return config.origin["store.url"] != DEFAULT


def address(config: Config) -> str:
    """Where the Redis of a project is that names none: its own, unless that was never started or was stopped.

    Else it is the usual address. One of its own that died keeps its place: it comes back there.
    """
    return service.expected(redis_service(redis_folder(config))) or USUAL


def running(folder: Path) -> RunningService | None:
    """The Redis of a folder if it runs, else None."""
    return service.running(redis_service(folder))


def up(folder: Path, *, port: int | None = None) -> RunningService:
    """Start a Redis and wait until it answers; it goes on when this process ends.

    Parameters
    ----------
    folder
        Where its address, pid and log are kept.
    port
        Where to listen; otherwise where it listened last time if that is free, else any free port.
    """
    program = find()
    made = redis_service(folder)
    with service.claimed(made) as lock:
        listen = service.port_for(made, port)
        options = {"--port": str(listen), "--bind": HOST, "--dir": str(folder), "--daemonize": "no"}
        nothing_kept = {"--save": "", "--appendonly": "no"}
        command = [program, *(word for option in (options | nothing_kept).items() for word in option)]
        return service.launch(made, lock, command, port=listen, ready=answers)


def down(folder: Path, *, grace: float = STOPPING) -> bool:
    """Stop the Redis of a folder, and with it what it holds. False when none runs."""
    return service.stop(redis_service(folder), grace=grace)


def find() -> str:
    """The program, or an error that says how to get it."""
    found = shutil.which(PROGRAM)
    if found is None:
        hint = f"Install it (Debian: `apt-get install {PROGRAM}`), or set store.url to a Redis that runs elsewhere."
        raise MachineError("no-redis", f"A local Redis needs {PROGRAM}, and it was not found.", hint=hint)
    return found


def answers(at: str) -> bool:
    """Whether a Redis that lets everybody in answers at host:port.

    >>> answers("127.0.0.1:1")
    False
    """
    host, _, port = at.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=WITHIN) as asked:
            asked.sendall(b"PING\r\n")
            return asked.recv(64).startswith(b"+PONG")
    except OSError:
        return False
