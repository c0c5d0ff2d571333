"""Programs that the tests of the embedded log start as processes of their own: `python -m tests.log.processes NAME`."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.log import EmbeddedLog, Message, follow


def write(folder: str, name: str, acknowledged: str) -> None:
    """Append batches of 1 to 7 messages for ever; after each, one line per message in `acknowledged`, unbuffered."""
    log = EmbeddedLog(folder)
    lines = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    number = int(time.time_ns())
    while True:
        number += 1
        size = number % 7 + 1
        values = [b"%s-%d-%d/%d" % (name.encode(), number, part, size) for part in range(size)]
        positions = log.append_batch("t", [Message(value, key=value) for value in values])
        text = b"".join(b"%d %d %s\n" % (*position, value) for position, value in zip(positions, values, strict=True))
        os.write(lines, text)


def die_after(folder: str, batches: str) -> None:
    """Append batches of three, and die without a chance to clean up."""
    log = EmbeddedLog(folder)
    for i in range(int(batches)):
        log.append_batch("t", [Message(b"%d-%d" % (i, part) * 50) for part in range(3)])
    os.kill(os.getpid(), signal.SIGKILL)


def fill(folder: str, limit: str, out: str) -> None:
    """Append until files may not grow further, then once more when they may; write down the error's code."""
    log = EmbeddedLog(folder)
    log.append("t", b"first")
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    count = 1
    try:
        while True:
            log.append_batch("t", [Message(b"%d" % (count + i) * 1000) for i in range(5)])
            count += 5
    except HeadraceError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        position = log.append("t", b"last")
        Path(out).write_text(f"{error.code} {count} {position.offset}")


def answer(folder: str, count: str) -> None:
    """Follow topic `t` and append what is seen to topic `echo`, until `count` records were seen."""
    log = EmbeddedLog(folder)
    left = int(count)
    for records in follow(log, "t", log.start_offsets("t"), idle=60):
        for record in records:
            log.append("echo", record.value)
        left -= len(records)
        if left == 0:
            return


def create(folder: str, go: str) -> None:
    """Create a topic as soon as the file `go` exists, and append to it."""
    while not Path(go).exists():
        time.sleep(0.001)
    log = EmbeddedLog(folder)
    log.create_topic("t", partitions=2)
    log.append("t", str(os.getpid()).encode(), partition=0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
