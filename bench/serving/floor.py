"""The least that can be seen: a server that reads nothing and answers a fixed text, asked as the real one is.

What the client, the kernel and a machine that does other things take is in every latency; here it is alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from bench.serving.open_loop import SPAWN

BODY = b'{"features": {' + b", ".join(b'"feature_%02d": 1234.5' % at for at in range(20)) + b"}}"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
END = b"\r\n\r\n"


class Fixed(asyncio.Protocol):
    """Answers every request with the same."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """As many answers as there are requests; none has a body."""
        self._transport.write(ANSWER * data.count(END))  # type: ignore[attr-defined]


@contextmanager
def floor() -> Iterator[int]:
    """Such a server in a process of its own; its port."""
    mine, its = SPAWN.Pipe()
    process = SPAWN.Process(target=_serve, args=(its,), daemon=True)
    process.start()
    try:
        yield mine.recv()
    finally:
        process.terminate()
        process.join()


def _serve(told: Connection) -> None:
    import uvloop

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Fixed, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())
