"""A sample of what was served, in `served.<view>`, so that it can be compared with the lake later.

A record has the key, the values as they were answered, the moment, and what had been read for them: the run of the
tile set and the offsets of the stream up to which all was included. That a value is the fold of the log at a position
at or past those is what the skew audit checks. Reads neither wait nor fail for it: they put a sample into a bounded
buffer that a thread empties, and what does not fit, or cannot be appended, is dropped and counted.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace.config.config import Names
from headrace.define.view import View
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import Plan
from headrace.read.answer_json import answer_json
from headrace.read.reader import ViewValues
from headrace.serve.responses import encode
from headrace.tiles.changelog import ProgressRow

BUFFER = 2_000
"""Samples that wait for the log."""
BATCH = 500
PAUSE = 0.2
"""Seconds between two looks at the buffer: an append to the log costs a write to the disk, however small."""

_logger = logging.getLogger(__name__)
Sample = tuple[View, ViewValues, ProgressRow | None]
Tell = Callable[..., None]


class Samples:
    """Keeps a share of the reads.

    Parameters
    ----------
    share
        From 0 for none to 1 for all.
    chance
        Where chance comes from.

    tell
        Is told of reads that are in the log, and of those that were to be and are not.
    faults
        Hears of every append; for tests.
    """

    def __init__(
        self,
        plan: Plan,
        log: Log,
        named: Names,
        share: float,
        chance: Callable[[], float] = random.random,
        tell: Tell = lambda **_: None,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self._log, self._named, self._share, self._chance, self._tell = log, named, share, chance, tell
        self._buffer: deque[Sample] = deque()
        self._failing, self._faults = False, faults
        self._plan = plan.fingerprint
        self._tiles, self._versions = plan.view_tiles, plan.versions

    def wanted(self) -> bool:
        """Whether the next read is one to keep."""
        return self._share > 0 and self._chance() < self._share

    def offer(self, view: View, answer: ViewValues, said: ProgressRow | None) -> None:
        """Hand a read over; at once, whatever becomes of it."""
        if len(self._buffer) >= BUFFER:
            self._tell(dropped=1)
        else:
            self._buffer.append((view, answer, said))

    def run(self, stop: threading.Event) -> None:
        """Append what was handed over until told to stop, and then what is left."""
        while not stop.wait(PAUSE):
            self.step()
        self.step()

    def step(self) -> None:
        """Append what was handed over so far."""
        while self._buffer:
            taken = [self._buffer.popleft() for _ in range(min(BATCH, len(self._buffer)))]
            views: dict[str, list[Message]] = {}
            for view, answer, said in taken:
                views.setdefault(view.name, []).append(self._message(view, answer, said))
            for name, messages in views.items():
                self._append(name, messages)

    def _append(self, view: str, messages: list[Message]) -> None:
        self._faults.reach("samples.append.before")
        try:
            self._log.append_batch(self._named.topic(f"served.{view}"), messages)
        except Exception as error:
            # Whatever it is: no read is worse off for it.
            self._tell(dropped=len(messages))
            if not self._failing:
                _logger.warning("samples of what was served are dropped: %s", error)
            self._failing = True
        else:
            self._faults.reach("samples.append.after")
            self._failing = False
            self._tell(kept=len(messages))

    def _message(self, view: View, answer: ViewValues, said: ProgressRow | None) -> Message:
        """All that an audit needs to know."""
        same = said is not None and said.as_of == answer.as_of
        told: dict[str, Any] = answer_json(view, answer) | {
            "plan": self._plan,
            "version": self._versions[view.name],
            "tile_set": self._tiles[view.name].fingerprint,
            # A read that met a new run or new progress half-way does not know which it saw.
            "run": said.run if said is not None and same else None,
            "positions": {str(number): at for number, at in said.positions.items()} if said and same else None,
        }
        return Message(encode(told), json.dumps(list(answer.key.values()), ensure_ascii=False).encode())
