"""The audit as a process of its own: what was served since the last look, again and again, and an alarm for a defect.

It needs neither Spark nor the store, only the log and the lake. What it has found since it started stands in the status
topic, for the page, for `headrace status` and for Prometheus.
"""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

from headrace.alarms.alarm import Alarm
from headrace.clock import Clock, SystemClock, show_time
from headrace.config.config import Config, names
from headrace.errors import DiskFullError, HeadraceError
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.skew.audit import audit, complete_for
from headrace.skew.counts import Counts
from headrace.topics import STATUS, create, open_log, topics

COMPONENT = "audit"
TELL = 1.0
"""Seconds between two words of how it goes."""

_logger = logging.getLogger(__name__)


class Auditing:
    """Audits a project as time goes by; what came before it started is left to `headrace skew`."""

    def __init__(self, plan: Plan, config: Config, log: Log, clock: Clock) -> None:
        self._plan, self._config, self._log, self._clock = plan, config, log, clock
        create(log, topics(plan, names(config), config.log.partitions))
        self.counts, self.audits = Counts(), 0
        self.upto = clock.now()
        self._since: int | None = None
        self._is_full = False
        self._due = self.upto + config.audit.every
        self._skew = self._told()

    def step(self) -> None:
        """Audit what the lake has come to know, when it is time, and tell how it stands."""
        now = self._clock.now()
        if now >= self._due:
            self._due = now + self._config.audit.every
            try:
                self._audit(now)
            except HeadraceError as error:
                # The lake may be away for a while; what was served stays in the log and is looked at later.
                _logger.warning("nothing could be compared: %s", error)
        self.tell(now)

    def _audit(self, now: int) -> None:
        until = min(now, complete_for(self._plan, self._config, self._log))
        if until <= self.upto:
            return
        config = self._config
        found = audit(self._plan, config, self._log, self.upto, until, most=config.audit.most, into=self.counts)
        self.upto, self.audits = until, self.audits + 1
        if self._since is None and found.counts.total.causes["defect"]:
            self._since = now
        self._skew = self._told()

    def tell(self, now: int) -> None:
        """Say in the status topic what was found."""
        told = {"component": COMPONENT, "at": now, "skew": self._skew, "alarms": self._alarms()}
        topic = names(self._config).topic(STATUS)
        try:
            self._log.append(topic, json.dumps(told, separators=(",", ":")).encode(), key=COMPONENT.encode())
        except DiskFullError as error:
            if not self._is_full:
                _logger.warning("waiting for space: %s", error)
            self._is_full = True
        else:
            self._is_full = False

    def _told(self) -> dict[str, Any]:
        whole = self.counts.as_json()
        features = {
            name: {part: each[part] for part in ("compared", "mismatched", "causes")}
            for name, each in whole["features"].items()
        }
        told = {name: whole[name] for name in ("compared", "mismatched", "causes", "defects")}
        return told | {"audits": self.audits, "upto": show_time(self.upto), "features": features}

    def _alarms(self) -> list[dict[str, Any]]:
        if self._since is None:
            return []
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.kinds.items())
        says = f"Values were served that nothing excuses: {kinds}. `headrace skew` shows the events."
        return [Alarm("", None, "skew", None, None, self._since, says).as_json()]


def main(plan: Plan, config: Config, stop: threading.Event, clock: Clock | None = None) -> None:
    """Audit a project until told to stop."""
    clock = clock or SystemClock()
    with open_log(config, clock) as log:
        auditing = Auditing(plan, config, log, clock)
        while True:
            auditing.step()
            if stop.wait(TELL):
                return
