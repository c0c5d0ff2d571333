"""Who works and who waits: some requests at once, some more in a bounded queue, the rest come back later.

Used for what takes more than a moment: many keys, and events on their way to the disk. One key is read in microseconds
without letting go of the event loop, so such requests wait only for each other. A slot is taken after a body was read:
a slow sender holds none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from headrace.errors import DataError, MachineError
from headrace.serve.limits import SOONEST, BusyError

Result = TypeVar("Result")


class Gate:
    """Slots and a queue before them; used from one event loop.

    Attributes
    ----------
    working, waiting
        How many there are now.
    rejected
        How many were sent away.

    Examples
    --------
    >>> async def one() -> int:
    ...     gate = Gate(concurrency=1, queue=0, timeout=1.0)
    ...     async with gate.slot():
    ...         return gate.working
    >>> asyncio.run(one())
    1
    """

    def __init__(self, concurrency: int, queue: int, timeout: float) -> None:
        self._concurrency, self._queue, self._timeout = concurrency, queue, timeout
        self._turns: list[asyncio.Future[None]] = []
        self.working = self.rejected = 0

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._turns)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A slot, in the order of arrival; `BusyError` when the queue is full or the wait takes too long."""
        if self.working >= self._concurrency or self._turns:
            await self._turn()
        else:
            self.working += 1
        try:
            yield
        finally:
            self._next()

    async def run(self, work: Callable[[], Awaitable[Result]], seconds: float) -> Result:
        """What work in a slot gives; see `done_within`."""

        async def in_slot() -> Result:
            async with self.slot():
                return await work()

        return await done_within(in_slot, seconds)

    async def _turn(self) -> None:
        if len(self._turns) >= self._queue:
            raise self._busy("As many requests wait as the server keeps waiting.")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        try:
            await asyncio.wait_for(asyncio.shield(turn), self._timeout)
        except BaseException as error:
            if turn.done():
                # The slot was handed over at the very moment: it goes to the next.
                self._next()
            else:
                self._turns.remove(turn)
            if isinstance(error, TimeoutError):
                raise self._busy("A request waited too long for its turn.") from None
            raise

    def _next(self) -> None:
        """Hand the slot over, or give it back."""
        if self._turns:
            self._turns.pop(0).set_result(None)
        else:
            self.working -= 1

    def _busy(self, message: str) -> BusyError:
        self.rejected += 1
        got = f"{self.working:,} at work, {self.waiting:,} waiting"
        hint = f"Send it again in {SOONEST} s. The bounds are serve.concurrency and serve.queue."
        return BusyError(MachineError("too-busy", message, got=got, hint=hint), SOONEST, 503)


async def sent_within(reading: Awaitable[Result], seconds: float) -> Result:
    """What a caller sends, or a refusal when it takes too long over it."""
    try:
        return await asyncio.wait_for(reading, seconds)
    except TimeoutError:
        message = f"The request was not sent within {seconds:g} s."
        raise DataError("too-slow", message, hint="Send it faster, or raise serve.timeout.") from None


async def done_within(work: Callable[[], Awaitable[Result]], seconds: float) -> Result:
    """What work gives, or a refusal when it takes too long; then it goes on, and holds its slot until it ends."""
    task = asyncio.ensure_future(work())
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        return task.result()
    task.add_done_callback(_forgotten)
    message = f"The request was not answered within {seconds:g} s."
    hint = "It may still be done. Events may be sent again: copies of one event id and time count once."
    raise BusyError(MachineError("too-slow", message, hint=hint), SOONEST, 503)


def _forgotten(task: asyncio.Future[Any]) -> None:
    """Nobody waits for it any more; a failure is not an unhandled one."""
    if not task.cancelled():
        task.exception()
