"""Requests over kept-alive connections, each with a deadline that holds for the whole of it.

A socket's own time limit is for one read: a server that sends a byte now and then would hold its caller for ever. Here
every read gets what is left until the deadline. What an answer means, and whether it is asked for again, is others'
business. Proxies in the environment have no part in it.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.client.address import Address

LARGEST = 64 * 1024 * 1024
"""The most bytes that are read of one answer."""


class HttpRequest(NamedTuple):
    """What is sent. Only what may be `repeated` goes over a connection that the server may have given up."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None
    repeated: bool = True


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    retry_after: str | None = None


class Wire:
    """Connections to one address; any number of threads may share it."""

    def __init__(self, address: Address, kept: int, tls: ssl.SSLContext | None) -> None:
        self._address, self._kept, self._tls = address, kept, tls
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._closed = False

    def exchange(self, request: HttpRequest, seconds: float) -> Reply:
        """One request and its answer within so many seconds, or an OSError or HTTPException."""
        deadline = time.monotonic() + seconds
        kept = self._take() if request.repeated else None
        if kept is not None:
            try:
                return self._exchange(kept, request, deadline)
            except ConnectionError:
                pass  # It was given up while nobody used it, which says nothing of the server: a new one will.
        return self._exchange(self._connection(), request, deadline)

    def close(self) -> None:
        """Close what is idle now, and the rest when it comes back."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for connection in idle:
            connection.close()

    def _exchange(self, connection: http.client.HTTPConnection, request: HttpRequest, deadline: float) -> Reply:
        try:
            connection.timeout = _seconds_left(deadline)
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            connection.request(request.method, request.path, request.body, request.headers)
            connection.response_class = functools.partial(_Response, deadline=deadline)  # type: ignore[assignment]
            response = connection.getresponse()
            reply = Reply(response.status, _body(response), response.headers.get("retry-after"))
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._give_back(connection)
        return reply

    def _connection(self) -> http.client.HTTPConnection:
        at = self._address
        if at.secure:
            return http.client.HTTPSConnection(at.host, at.port, context=self._tls)
        return http.client.HTTPConnection(at.host, at.port)

    def _take(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < self._kept:
                self._idle.append(connection)
                return
        connection.close()


def _body(response: http.client.HTTPResponse) -> bytes:
    body = response.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise http.client.HTTPException(f"the answer is larger than {LARGEST:,} bytes")
    if response.length:
        # A read with a size does not say itself that the connection ended too soon.
        raise http.client.IncompleteRead(body, response.length)
    return body


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


class _Response(http.client.HTTPResponse):
    """A response whose every read, headers included, ends at the deadline."""

    def __init__(self, sock: socket.socket, *given: Any, deadline: float, **more: Any) -> None:
        super().__init__(sock, *given, **more)
        plain, self.fp = self.fp, io.BufferedReader(_Until(sock, deadline))
        plain.close()


class _Until(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: float) -> None:
        # The file keeps the socket open until the body is read, also when the connection is closed before.
        self._sock, self._deadline, self._file = sock, deadline, sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_seconds_left(self._deadline))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()
