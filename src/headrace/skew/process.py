"""The audit as a process of its own: what was served since the last look, again and again, and an alarm for a defect.

It needs neither Spark nor the store, only the log and the lake. What it has found since it started stands in the status
topic, for the page, for `headrace status` and for Prometheus.
"""

from __future__ import annotations

import logging
import threading

from headrace.alarms.alarm import AlarmStatus, StreamAlarm
from headrace.clock import Clock, SystemClock, show_time
from headrace.config.config import Config, names
from headrace.errors import DiskFullError, HeadraceError
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.processes.component import run_component
from headrace.skew.audit import audit, complete_for
from headrace.skew.cause import CAUSES
from headrace.skew.counts import AuditCounts
from headrace.status.records import AuditStatus, FeatureSkew, SkewStatus
from headrace.status.topic import StatusPublisher
from headrace.topics import STATUS, create, open_log, topics

_logger = logging.getLogger(__name__)


class Auditing:
    """The component that audits a project; what came before it started is left to `headrace skew`."""

    pause = 1.0

    def __init__(self, plan: Plan, config: Config, log: Log, clock: Clock) -> None:
        self._plan, self._config, self._log, self._clock = plan, config, log, clock
        create(log, topics(plan, names(config), config.log.partitions))
        self.counts, self.audits = AuditCounts(), 0
        self.upto = clock.now()
        self._since: int | None = None
        self._publisher = StatusPublisher(log, names(config).topic(STATUS), clock)
        self._due = self.upto + config.audit.every
        self._skew = self._skew_status()

    def step(self) -> bool:
        """Audit what the lake has come to know, when it is time, and publish the status."""
        now = self._clock.now()
        if now >= self._due:
            self._due = now + self._config.audit.every
            try:
                self._audit(now)
            except HeadraceError as error:
                # The lake may be away for a while; what was served stays in the log and is looked at later.
                _logger.warning("nothing could be compared: %s", error)
        self.publish_status()
        return False

    def is_ready(self) -> bool:
        """Always: what was served waits in the log."""
        return True

    def stop(self) -> None:
        """Nothing is under way between two steps."""

    def _audit(self, now: int) -> None:
        until = min(now, complete_for(self._plan, self._config, self._log))
        if until <= self.upto:
            return
        config = self._config
        found = audit(self._plan, config, self._log, self.upto, until, most=config.audit.most, into=self.counts)
        self.upto, self.audits = until, self.audits + 1
        if self._since is None and found.counts.total.causes["defect"]:
            self._since = now
        self._skew = self._skew_status()

    def publish_status(self) -> None:
        """Publish what was found; a full disk is waited out."""
        with self._publisher.tolerate(DiskFullError):
            self._publisher.publish(AuditStatus(skew=self._skew, alarms=self._alarms()))

    def _skew_status(self) -> SkewStatus:
        total = self.counts.total
        return SkewStatus(
            compared=total.compared,
            mismatched=total.mismatched,
            causes={cause: total.causes[cause] for cause in CAUSES},
            defects=dict(self.counts.kinds),
            audits=self.audits,
            upto=show_time(self.upto),
            features={
                f"{view}.{name}": FeatureSkew(
                    compared=each.compared,
                    mismatched=each.mismatched,
                    causes={cause: each.causes[cause] for cause in CAUSES},
                )
                for (view, name), each in sorted(self.counts.features.items())
            },
        )

    def _alarms(self) -> list[AlarmStatus]:
        if self._since is None:
            return []
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.kinds.items())
        says = f"Values were served that nothing excuses: {kinds}. `headrace skew` shows the events."
        return [StreamAlarm("", None, "skew", None, None, self._since, says).status()]


def main(plan: Plan, config: Config, stop: threading.Event, clock: Clock | None = None) -> None:
    """Audit a project until told to stop."""
    clock = clock or SystemClock()
    with open_log(config, clock) as log:
        run_component(Auditing(plan, config, log, clock), stop)
