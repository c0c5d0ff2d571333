"""How many requests a second a server answers at most: a closed loop over some connections, by `wrk`.

Where `wrk` is not installed, a loop in Python does the same; it costs more of the machine, and says so.
"""

from __future__ import annotations

import gc
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.serving.open_loop import SPAWN, Request, connected, whole

SCRIPT = Path(__file__).with_name("saturate.lua")
CONNECTIONS = 64
COUNTED = re.compile(r"^counted (\d+) (\d+) (\d+)$", re.MULTILINE)


def most_per_s(port: int, requests: Sequence[Request], seconds: int, folder: Path) -> float:
    """Answers a second while every connection has a request under way; refused when one in a thousand failed."""
    if shutil.which("wrk") is None:
        print(
            "wrk is not installed: the load comes from a loop in Python, which takes more of the machine",
            file=sys.stderr,
        )
        return _by_python(port, requests, seconds, folder)
    file = folder / "requests.txt"
    file.write_text("".join(f"{each.path}\t{each.body}\n" for each in requests), encoding="utf-8")
    load = ["wrk", "--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{seconds}s", "--timeout", "30s"]
    command = [*load, "--script", str(SCRIPT), f"http://127.0.0.1:{port}/"]
    env = {**os.environ, "REQUESTS": str(file)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if ran.returncode:
        raise RuntimeError(f"wrk failed: {ran.stdout[-1000:]}{ran.stderr[-1000:]}")
    return per_s(ran.stdout)


def per_s(said: str) -> float:
    r"""Answers a second, from what the script writes at the end.

    >>> per_s("Running 2s test\ncounted 3000 2000000 0\n")
    1500.0
    """
    found = COUNTED.search(said)
    if found is None:
        raise RuntimeError(f"wrk did not count: {said[-1000:]}")
    count, micros, failed = (int(number) for number in found.groups())
    return _checked(count, failed) * 1e6 / micros


def _checked(count: int, failed: int) -> int:
    if failed * 1_000 > count:
        raise RuntimeError(f"{failed} of {count} requests failed")
    return count


def _by_python(port: int, requests: Sequence[Request], seconds: int, folder: Path) -> float:
    file = folder / "counted.npy"
    raw = [each.raw for each in requests]
    client = SPAWN.Process(target=_loop, args=(port, raw, seconds, file), daemon=True)
    client.start()
    client.join(seconds + 60)
    if client.exitcode != 0:
        client.terminate()
        raise RuntimeError(f"the client ended with {client.exitcode}")
    count, failed, took = np.load(file)
    return _checked(int(count), int(failed)) / float(took)


def _loop(port: int, requests: list[bytes], seconds: int, file: Path) -> None:
    gc.disable()
    held: dict[socket.socket, bytearray] = {connected(port): bytearray() for _ in range(CONNECTIONS)}
    sent = count = failed = 0
    began = time.perf_counter()
    for connection in held:
        connection.sendall(requests[sent % len(requests)])
        sent += 1
    while time.perf_counter() - began < seconds:
        for connection in select.select(list(held), [], [], 1.0)[0]:
            got = connection.recv(1 << 20)
            if not got:
                raise RuntimeError("the server has ended a connection")
            held[connection] += got
            if whole(held[connection]):
                count, failed = count + 1, failed + (not held[connection].startswith(b"HTTP/1.1 200"))
                held[connection].clear()
                connection.sendall(requests[sent % len(requests)])
                sent += 1
    np.save(file, np.array([count, failed, time.perf_counter() - began]))
