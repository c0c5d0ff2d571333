"""`hr.AsyncClient`: the calls of `Client` as coroutines.

Each call runs in one of the client's own threads, so that it keeps its connections, deadlines and pauses, and the event
loop is never held. A coroutine that is cancelled ends at once; its request ends in its thread, within the call's time.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from headrace.client.address import Key
from headrace.client.answer import Answer, Place, Ready, Refused
from headrace.client.batch import RequestValues
from headrace.client.client import Client
from headrace.client.retry import Waiting
from headrace.client.score import Score, Scores
from headrace.public_calls import check_making

if TYPE_CHECKING:
    import pandas as pd

    from headrace.client.client import Readable
    from headrace.define.model import Model
    from headrace.define.stream import Stream

P = ParamSpec("P")
T = TypeVar("T")


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
        waiting: Waiting | None = None,
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

    @overload
    async def features(
        self, view: Readable, key: Key, *, request: Mapping[str, Any] | None = None, stale: str | None = None
    ) -> Answer: ...

    @overload
    async def features(
        self, view: Readable, *, keys: Iterable[Key], request: RequestValues = None, stale: str | None = None
    ) -> list[Answer | Refused]: ...

    async def features(self, view: Readable, key: Key | None = None, **more: Any) -> Answer | list[Answer | Refused]:
        """All features of a key as they are now, or of several; see `Client.features`."""
        call: Callable[..., Any] = self._client.features
        found: Answer | list[Answer | Refused] = await self._run(call, view, key, **more)
        return found

    async def features_at(self, view: Readable, key: Key, at: str | datetime) -> Answer:
        """All features of a key as they were known at a past moment."""
        return await self._run(self._client.features_at, view, key, at)

    async def features_json(
        self,
        view: Readable,
        key: Key,
        at: str | datetime | None = None,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The same as JSON, byte by byte as the server wrote it."""
        return await self._run(self._client.features_json, view, key, at, request=request)

    async def features_of(
        self, view: Readable, keys: Iterable[Key], *, request: RequestValues = None, stale: str | None = None
    ) -> list[Answer]:
        """All features of several keys, in their order."""
        return await self._run(self._client.features_of, view, keys, request=request, stale=stale)

    async def frame(
        self, view: Readable, keys: Iterable[Key], *, request: RequestValues = None, stale: str | None = None
    ) -> pd.DataFrame:
        """The same as a table, one row for each key."""
        return await self._run(self._client.frame, view, keys, request=request, stale=stale)

    @overload
    async def score(
        self,
        model: str | Model,
        key: Key,
        *,
        request: Mapping[str, Any] | None = None,
        version: int | None = None,
        stale: str | None = None,
    ) -> Score: ...

    @overload
    async def score(
        self,
        model: str | Model,
        *,
        keys: Iterable[Key],
        request: RequestValues = None,
        version: int | None = None,
        stale: str | None = None,
    ) -> Scores: ...

    async def score(self, model: str | Model, key: Key | None = None, **more: Any) -> Score | Scores:
        """What a model says of a key, or of several; see `Client.score`."""
        call: Callable[..., Any] = self._client.score
        found: Score | Scores = await self._run(call, model, key, **more)
        return found

    async def status(self) -> dict[str, Any]:
        """How the service and the pipeline behind it stand."""
        return await self._run(self._client.status)

    async def ready(self) -> Ready:
        """Whether values can be served, and what is waited for."""
        return await self._run(self._client.ready)

    async def send(self, stream: str | Stream, events: Iterable[Mapping[str, Any] | bytes]) -> list[Place]:
        """Append a few events, all or none."""
        return await self._run(self._client.send, stream, events)

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

    async def _run(self, call: Callable[P, T], *given: P.args, **more: P.kwargs) -> T:
        if self._client.closed:
            return call(*given, **more)  # Which refuses, as `Client` does.
        return await asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(call, *given, **more))
