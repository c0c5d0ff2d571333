"""The process of one version of a model, as the process that serves sees it: started, asked, killed, ended.

It is started and ended by a thread that may wait, and asked from the event loop, which never does. One that gives no
answer at all in the time that a score may take is killed, and all who waited for it are told. What it does is in
`model_process`; which versions there are, and when one is started again, is `scoring_lineup`'s business.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headrace.config.serve_settings import ServeSettings
from headrace.errors import HeadraceError, MachineError
from headrace.models.trial import LIMIT, start_model
from headrace.plural import show_count
from headrace.processes.child import ChildProcess
from headrace.serve.limits import SOONEST, BusyError
from headrace.serve.scoring.wire import Frames, ScoreReply, asking, read_started, read_told

START = LIMIT
"""Seconds that a version may take to be loaded and to score once: so much as it had when it was added."""
END = 2.0
"""Seconds that a process may take to end by itself."""
AHEAD = 50
"""So many rows before one's own are a load that may keep one waiting; with fewer, the model is slow."""
TOGETHER = 100
"""Rows of one request that go out together, if there is room for so many."""
CHUNK = 1 << 20


class RetiredError(Exception):
    """The version no longer serves: another one does."""


@dataclass(frozen=True)
class PendingRows:
    """Rows that were sent: who waits, how many there are, when they went out, and how many were before them."""

    future: asyncio.Future[ScoreReply]
    rows: int
    sent_at: float
    ahead: int


class VersionProcess:
    """The process of one version.

    Parameters
    ----------
    folder
        Where models are.
    fell
        Is called, from whichever thread, when the process has ended without having been told to.

    Attributes
    ----------
    together
        Rows that are best sent together.
    in_flight
        Rows that are not answered yet.
    """

    def __init__(
        self, folder: Path, model: str, version: int, settings: ServeSettings, fell: Callable[[], None] = lambda: None
    ) -> None:
        self._folder, self.model, self.version, self._settings, self._fell = folder, model, version, settings, fell
        self._process: ChildProcess | None = None
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock, self._ended = threading.Lock(), False
        self._asked: dict[int, PendingRows] = {}
        self._numbers, self._out, self._frames = itertools.count(), bytearray(), Frames()
        self._answered_at, self.in_flight = 0.0, 0
        self.together = min(TOGETHER, settings.score_queue)

    @property
    def up(self) -> bool:
        """Whether it can be asked."""
        return self._socket is not None

    @property
    def pid(self) -> int | None:
        """The id of its process, while it has one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it and wait until it can score; what keeps it from that is raised."""
        self.reap()
        mine, its = socket.socketpair()
        given = [str(self._folder), self.model, str(self.version), str(its.fileno()), str(os.getpid())]
        try:
            # A session of its own: a signal to all of the group would end it before what was asked is answered.
            self._process = start_model("headrace.serve.scoring.process", given, [its.fileno()])
        finally:
            its.close()
        try:
            self._refuse_failed(mine)
        except BaseException:
            mine.close()
            self.reap()
            raise
        mine.setblocking(False)
        self._frames, self._out, self._loop = Frames(), bytearray(), None
        self._socket = mine

    def _refuse_failed(self, where: socket.socket) -> None:
        """Wait for its first word."""
        where.settimeout(START)
        frames, found = Frames(), list[bytes]()
        try:
            while not found:
                data = where.recv(CHUNK)
                if not data:
                    raise self._error("model-down", "ended before it could score")
                found = frames.feed(data)
        except TimeoutError:
            raise self._error("model-slow", f"could not score within {START:g} s of its start") from None
        fault = read_started(found[0]).fault
        if fault is not None:
            raise fault.error()

    async def score(self, rows: list[msgspec.Raw]) -> ScoreReply:
        """The scores of some rows; `RetiredError` when it has ended, `model-slow` or `model-down` when it failed."""
        asked = self._send_rows(rows, asyncio.get_running_loop())
        try:
            async with asyncio.timeout(self._settings.score_timeout):
                return await asked.future
        except TimeoutError:
            raise self._late(asked) from None

    def _send_rows(self, rows: list[msgspec.Raw], loop: asyncio.AbstractEventLoop) -> PendingRows:
        with self._lock:
            if self._ended:
                raise RetiredError
            if self._socket is None:
                raise self._error("model-down", "has ended, and is being started again")
            if self.in_flight + len(rows) > self._settings.score_queue:
                raise self._busy(f"{show_count(self.in_flight, 'row')} under way")
            number = next(self._numbers)
            asked = PendingRows(loop.create_future(), len(rows), time.monotonic(), self.in_flight)
            self._asked[number] = asked
            self.in_flight += len(rows)
        if self._loop is not loop:
            self._loop = loop
            loop.add_reader(self._socket.fileno(), self._readable)
        self._out += asking(number, rows)
        self._flush()
        return asked

    def _flush(self) -> None:
        """Send what there is, and the rest when there is room."""
        where, loop = self._socket, self._loop
        if where is None or loop is None:
            return
        try:
            while self._out:
                del self._out[: where.send(self._out)]
        except BlockingIOError:
            loop.add_writer(where.fileno(), self._flush)
            return
        except OSError:
            self._gone(self._error("model-down", "has ended"))
            return
        loop.remove_writer(where.fileno())

    def _readable(self) -> None:
        where = self._socket
        if where is None:
            return
        try:
            data = where.recv(CHUNK)
            told = [read_told(frame) for frame in self._frames.feed(data)]
        except BlockingIOError:
            return
        except (OSError, msgspec.MsgspecError):
            data, told = b"", []
        if not data:
            self._gone(self._error("model-down", "has ended"))
            return
        self._answered_at = time.monotonic()
        for each in told:
            with self._lock:
                asked = self._asked.pop(each.number, None)
                self.in_flight -= 0 if asked is None else asked.rows
            if asked is not None and not asked.future.done():
                asked.future.set_result(each)

    def _late(self, asked: PendingRows) -> HeadraceError | BusyError:
        """What is said of an answer that did not come in time."""
        within = f"{self._settings.score_timeout:g} s"
        slow = self._error("model-slow", f"did not score within {within}")
        if self._answered_at < asked.sent_at:
            # Nothing at all has come since: it hangs, and so would all who come after.
            self._gone(slow)
        elif asked.ahead >= AHEAD:
            return self._busy(f"{show_count(asked.ahead, 'row')} before this one, and {within} gone")
        return slow

    def _gone(self, error: HeadraceError) -> None:
        """Let go of the process, and tell all who wait; in the event loop, or when there is none."""
        with self._lock:
            where, self._socket = self._socket, None
            waiting, self._asked, self.in_flight = list(self._asked.values()), {}, 0
        if where is None:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(where.fileno())
            self._loop.remove_writer(where.fileno())
        where.close()
        if self._process is not None and not self._ended:
            self._process.kill()
        for asked in waiting:
            # Of a loop that has ended nobody waits any more.
            with contextlib.suppress(RuntimeError):
                if not asked.future.done():
                    asked.future.set_exception(error)
        self._fell()

    def end(self) -> bool:
        """End it unless somebody waits for it; whether it has ended. Who comes later is told that it is retired."""
        with self._lock:
            if self._asked and self._socket is not None:
                return False
            self._ended = True
        self.close()
        return True

    def close(self) -> None:
        """End it, whoever waits."""
        self._ended = True
        where, loop = self._socket, self._loop
        if where is not None:
            if loop is None or loop.is_closed():
                self._gone(self._error("model-down", "was ended"))
            else:
                with contextlib.suppress(OSError):
                    # The loop sees the end of it, and lets go.
                    where.shutdown(socket.SHUT_RDWR)
        if self._process is not None:
            self._process.wait(END)
        self.reap()

    def reap(self) -> None:
        """Leave no process behind."""
        if self._process is not None:
            self._process.end()

    def _error(self, code: str, what: str) -> MachineError:
        message = f"Version {self.version} of model {self.model!r} {what}."
        return MachineError(code, message, hint="`headrace logs serve` has what it said.")

    def _busy(self, got: str) -> BusyError:
        message = f"Version {self.version} of model {self.model!r} has more to score than it takes at once."
        hint = f"Send it again in {SOONEST} s. The bounds are serve.score_queue and serve.score_timeout."
        return BusyError(MachineError("too-busy", message, got=got, hint=hint), SOONEST, 503)
