"""Asking again: what may be, after how long, how often, and until when.

A pause is random between nothing and a bound that doubles, so that callers which failed together do not come back
together. A server that says when to come back is not asked before; when that is later than the caller can wait, the
answer is given at once.
"""

from __future__ import annotations

import http.client
import random
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

from headrace.client.connection import Reply
from headrace.clock import SECOND, show_duration
from headrace.errors import MachineError, shown

FIRST, LONGEST = 0.05, 2.0
"""Seconds: the bound of the first pause, and of any."""


@dataclass(frozen=True)
class RetryClock:
    """Where chance and time come from: in tests, from the test."""

    random: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Patience:
    """Seconds for one try, how many more there are, and seconds for all of them with their pauses."""

    timeout: float
    retries: int
    within: float


@dataclass(frozen=True)
class Safe:
    """The statuses and failures after which a request may be sent again."""

    statuses: frozenset[int]
    failures: tuple[type[Exception], ...]


READ = Safe(frozenset({429, 502, 503, 504}), (OSError, http.client.HTTPException))
LOOK = Safe(frozenset({429, 502, 504}), READ.failures)
"""For `/ready`, whose 503 is an answer."""
SEND = Safe(frozenset({429, 507}), (ConnectionRefusedError, socket.gaierror))
"""Events: again only when surely nothing was taken."""


def call_with_retries(
    attempt: Callable[[float], Reply], url: str, patience: Patience, safe: Safe, waiting: RetryClock | None = None
) -> Reply:
    """The answer of the first try that has one, or of the last.

    Raises
    ------
    MachineError
        `no-answer`, when there is none.

    Examples
    --------
    >>> replies = iter([Reply(503, b"", "1"), Reply(200, b"{}")])
    >>> naps = []
    >>> calm = RetryClock(lambda: 0.5, naps.append, lambda: 0.0)
    >>> call_with_retries(lambda _: next(replies), "http://here", Patience(1, 3, 10), READ, calm).status, naps
    (200, [1.025])
    """
    waiting = waiting or RetryClock()
    deadline, tried = waiting.now() + patience.within, 0
    while True:
        after, failed, reply = 0.0, None, None
        try:
            reply = attempt(max(min(patience.timeout, deadline - waiting.now()), 0.001))
            again, after = reply.status in safe.statuses, _seconds(reply.retry_after)
        except (OSError, http.client.HTTPException) as error:
            again, failed = isinstance(error, safe.failures) and not _hopeless(error), error
        pause = after + waiting.random() * min(LONGEST, FIRST * 2**tried)
        if not again or tried >= patience.retries or waiting.now() + pause >= deadline:
            if reply is not None:
                return reply
            raise _unreachable(failed, url, patience, tried + 1) from failed
        waiting.sleep(pause)
        tried += 1


def _seconds(retry_after: str | None) -> float:
    """What `Retry-After` asks for; a date, which Headrace never says, counts as nothing."""
    return float(retry_after) if retry_after and retry_after.isdecimal() and len(retry_after) < 9 else 0.0


def _hopeless(error: Exception) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError)


def _unreachable(error: Exception | None, url: str, patience: Patience, tries: int) -> MachineError:
    times = "once" if tries == 1 else f"{tries} times"
    if isinstance(error, TimeoutError):
        seconds = show_duration(round(patience.timeout * SECOND))
        message = f"Serving did not answer within {seconds}."
        hint = "Is it overloaded? See `headrace status`; a client's `timeout` can be longer."
    elif isinstance(error, ssl.SSLError):
        message = "Serving cannot be spoken to over TLS."
        hint = "Hand over an `ssl.SSLContext` that trusts it as `tls`."
    else:
        message = "Serving did not answer."
        hint = "Is it running there? See `headrace status` and `headrace logs serve`."
    got = f"{type(error).__name__}, {shown(str(error))}, asked {times}"
    return MachineError("no-answer", message, got=got, hint=hint, where=url)
