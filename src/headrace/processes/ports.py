"""Ports of the loopback that nobody listens on."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from headrace.errors import MachineError

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, all different.

    >>> len(set(free_ports(3)))
    3
    """
    with contextlib.ExitStack() as held:
        return [held.enter_context(_bound(0)) for _ in range(count)]


def last_or_free(last: int | None) -> int:
    """The port of last time, so that addresses written down stay right; any other when it is taken.

    >>> last_or_free(None) > 0
    True
    """
    for port in (last or 0, 0):
        with contextlib.suppress(OSError), _bound(port) as free:
            return free
    hint = "End programs that listen on this machine, and try again."
    raise MachineError("port-taken", "No port is free.", hint=hint)


def refuse_taken(port: int, name: str) -> int:
    """The very port that was asked for; refused when it is taken, because whoever has it would answer there."""
    try:
        with _bound(port):
            return port
    except OSError as error:
        message = f"The port for the {name} is taken or may not be used."
        hint = "Name another port, or end the program that has it."
        raise MachineError("port-taken", message, got=f"{HOST}:{port}: {error.strerror}", hint=hint) from None


@contextlib.contextmanager
def _bound(port: int) -> Iterator[int]:
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOST, port))
        yield held.getsockname()[1]
