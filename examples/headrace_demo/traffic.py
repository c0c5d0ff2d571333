"""Live payments on their way in, and their scores as they come out."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from headrace.clock import micros
from headrace.config.config import names
from headrace.define.model import predictions_of
from headrace.log.protocol import Log
from headrace.project import Project
from headrace_demo import stack
from headrace_demo.world.stream import READABLE, Sent

PATIENCE = 120.0
NEWEST = 6
"""How many alarms are shown."""


class Scored(NamedTuple):
    """What a prediction says."""

    at: int
    score: float
    decision: bool
    latency_ms: float
    freshness_ms: float | None
    features: dict[str, Any]


class Alarm(NamedTuple):
    """A payment that was stopped, and what it was in truth."""

    sent: Sent
    scored: Scored


@dataclass
class Seen:
    """How live traffic stands: what was sent, and what was said of it.

    Parameters
    ----------
    sent
        All records, by the time at which they are sent.
    done
        How many of them have been.
    scored
        By payment, the prediction.
    """

    sent: Sequence[Sent]
    done: int = 0
    scored: dict[str, Scored] = field(default_factory=dict)
    alarms: int = 0
    caught: int = 0
    newest: deque[Alarm] = field(default_factory=lambda: deque(maxlen=NEWEST))

    def __post_init__(self) -> None:
        self.payments = {each.event["id"]: each for each in self.sent if each.kind in READABLE}

    @property
    def frauds(self) -> int:
        """How many of the payments that were scored are fraud."""
        return sum(self.payments[name].is_fraud for name in self.scored)

    @property
    def complete(self) -> bool:
        """Whether every payment that can be read has a score."""
        return self.payments.keys() <= self.scored.keys()

    def add(self, payment: str, scored: Scored) -> None:
        """Take note of a prediction; a copy of one changes nothing."""
        sent = self.payments.get(payment)
        if sent is None or payment in self.scored:
            return
        self.scored[payment] = scored
        if scored.decision:
            self.alarms += 1
            self.caught += sent.is_fraud
            self.newest.append(Alarm(sent, scored))


class Predictions:
    """Reads a model's predictions as they are written."""

    def __init__(self, project: Project, log: Log, model: str) -> None:
        self._log, self._topic = log, names(project.config).topic(predictions_of(model).name)
        self._at: dict[int, int] = {}

    def read(self, into: Seen) -> None:
        """Take what is new."""
        for record in stack.read_on(self._log, self._topic, self._at):
            told = json.loads(record.value or b"{}")
            into.add(told["event_id"], _scored(told))


def _scored(told: dict[str, Any]) -> Scored:
    features = json.loads(told["features"])
    return Scored(
        micros(told["at"]), told["score"], bool(told["decision"]), told["latency_ms"], told["freshness_ms"], features
    )


Send = Callable[[Callable[[int], None]], None]
"""Sends all records and says now and then how many payments it has sent."""


def at_their_time(project: Project, log: Log, sent: Sequence[Sent]) -> Send:
    """Every record when its time has come."""
    return partial(stack.send, log, names(project.config).topic("payments"), sent)


def run(project: Project, log: Log, sent: Sequence[Sent], send: Send, show: Callable[[Seen], None]) -> Seen:
    """Have all records sent, and wait for the scores; `show` is told how it stands."""
    seen, predictions = Seen(sent), Predictions(project, log, "risk")

    def tick(done: int) -> None:
        seen.done = done
        predictions.read(seen)
        show(seen)

    send(tick)
    deadline = time.monotonic() + PATIENCE
    while not seen.complete and time.monotonic() < deadline:
        tick(seen.done)
        time.sleep(0.1)
    tick(seen.done)
    return seen
