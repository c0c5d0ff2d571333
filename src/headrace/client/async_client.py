"""`hr.AsyncClient`: the calls of `Client` as coroutines.

Each call runs in one of the client's own threads, so that it keeps its connections, deadlines and pauses, and the event
loop is never held. A coroutine that is cancelled ends at once; its request ends in its thread, within the call's time.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from headrace.client.client import Client
from headrace.client.retry import RetryClock
from headrace.public_calls import check_making

P = ParamSpec("P")
T = TypeVar("T")


def _in_thread(
    call: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """A call of `Client` as a coroutine."""

    async def method(self: AsyncClient, /, *given: P.args, **more: P.kwargs) -> T:
        return await self._run(functools.partial(call, self._client, *given, **more))

    # Names, signatures and documentation are those of `Client`.
    functools.update_wrapper(method, call)
    return method


@check_making
class AsyncClient:
    """Reads features over HTTP from coroutines; takes what `Client` takes, and answers the same.

    Examples
    --------
    >>> import asyncio, headrace as hr
    >>> async def look() -> None:
    ...     async with hr.AsyncClient("http://127.0.0.1:1", retries=0) as client:
    ...         await client.features("card_activity", "42")
    >>> asyncio.run(look())
    Traceback (most recent call last):
    headrace.errors.MachineError: Serving did not answer.
    ...
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: Any = "2s",
        retries: int = 3,
        within: Any = "10s",
        api_key: str | None = None,
        connections: int = 8,
        tls: ssl.SSLContext | None = None,
        waiting: RetryClock | None = None,
    ) -> None:
        self._client = Client(
            url,
            timeout=timeout,
            retries=retries,
            within=within,
            api_key=api_key,
            connections=connections,
            tls=tls,
            waiting=waiting,
        )
        self.url, self.connections = self._client.url, connections
        # Not the client's threads, which read single keys: one that waited for others of its kind could wait for ever.
        self._threads = ThreadPoolExecutor(connections, "headrace-async-client")

    features = _in_thread(Client.features)
    features_at = _in_thread(Client.features_at)
    features_json = _in_thread(Client.features_json)
    features_of = _in_thread(Client.features_of)
    frame = _in_thread(Client.frame)
    score = _in_thread(Client.score)
    status = _in_thread(Client.status)
    ready = _in_thread(Client.ready)
    send = _in_thread(Client.send)

    async def close(self) -> None:
        """Close the connections; what is asked after that is refused."""
        self._client.close()
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"

    async def _run(self, call: Callable[[], T]) -> T:
        """What a call gives, in a thread of the client's own."""
        if self._client.closed:
            return call()  # Which refuses, as `Client` does.
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
