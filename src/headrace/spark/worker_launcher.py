"""What Spark starts where it wants a Python worker: it hands its streams and environment to the worker host.

A worker that starts from nothing imports pandas, Arrow and Spark for more than a second. The host (`spark.worker_host`)
has done that once and forks. Where it does not answer, a real Python takes this process over, as without a host.

Run by its path, with the standard library alone: PYTHON SOCKET -m MODULE ...
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

LENGTH = struct.Struct("!I")
CODE = struct.Struct("!i")
STREAMS = (0, 1, 2)


def main(python: str, address: str, arguments: list[str]) -> int:
    """Have the host run the worker, and end as it ends."""
    if arguments[:1] != ["-m"] or not arguments[1].startswith("pyspark."):
        os.execv(python, [python, *arguments])
    host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        host.connect(address)
        wanted = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd(), "pid": os.getpid()}
        request = json.dumps(wanted).encode()
        socket.send_fds(host, [LENGTH.pack(len(request))], STREAMS)
        host.sendall(request)
    except OSError:
        os.execv(python, [python, *arguments])
    # The worker has the streams now: Spark must see their end when the worker ends.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS[:2]:
        os.dup2(nothing, stream)
    said = host.recv(CODE.size, socket.MSG_WAITALL)
    return int(CODE.unpack(said)[0]) if len(said) == CODE.size else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
