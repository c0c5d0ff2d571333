"""Evaluation as a process of its own: a look at every label, again and again, and the newest figures in the status.

Spark is kept between looks. A look that cannot be taken, because the lake is away or another one is under way, is taken
later; nothing is lost by that.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from headrace.clock import SECOND, Clock, SystemClock
from headrace.config import Config, models_folder, names, resolved
from headrace.define.label import Label
from headrace.drift.incident import Incident
from headrace.errors import HeadraceError
from headrace.evaluate.alerts import tell
from headrace.evaluate.cells import Cells
from headrace.evaluate.drifting import spread_table, under_way, watch, watched_models
from headrace.evaluate.passes import take_a_look
from headrace.evaluate.report import overall
from headrace.evaluate.webhook import Webhook
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.run.session import cancelled_by, local_session
from headrace.score.registry import Registry
from headrace.topics import STATUS, create, open_log, spark_jars, topics
from headrace.watch.alarm import Alarm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPONENT = "evaluate"
SECRET = "alerts.secret"
TELL = 1.0
"""Seconds between two words of how it goes."""
FIGURES = ("count", "states", "coverage", "precision", "recall", "auc", "log_loss", "brier", "mae", "rmse")

_logger = logging.getLogger(__name__)


class Evaluating:
    """Looks at the labels of a project, and at its models for drift, as time goes by."""

    def __init__(self, plan: Plan, config: Config, log: Log, session: SparkSession, clock: Clock) -> None:
        self._plan, self._config, self._log, self._session, self._clock = plan, config, log, session, clock
        create(log, topics(plan, names(config), config.partitions))
        self.looks, self._due = 0, 0
        self._told: dict[str, Any] = {}
        self._incidents: list[Incident] = []
        self._registry = Registry(models_folder(config), clock)
        self._webhook = Webhook(config, log, clock, resolved({SECRET: config.webhook_secret}, os.environ)[SECRET])
        for label in plan.labels:
            self._read(label)

    def step(self) -> None:
        """Look when it is time, and tell how it stands."""
        now = self._clock.now()
        if now >= self._due:
            self._due = now + self._config.evaluate_every
            self._count()
            for label in self._plan.labels:
                self._look(label)
            self._watch()
            self.looks += 1
        self._webhook.step()
        self.tell()

    def _count(self) -> None:
        """Count what models were given since; before labels are joined, so that all that is counted has been joined."""
        try:
            for model in watched_models(self._plan, self._config):
                spread_table(self._plan, self._config, model).look(self._session, self._registry)
        except HeadraceError as error:
            _logger.warning("nothing was counted for drift: %s", error)

    def _watch(self) -> None:
        """Look for drift, and tell of incidents that are new."""
        found: list[Incident] = []
        try:
            for model in watched_models(self._plan, self._config):
                for each in watch(self._plan, self._config, self._log, self._registry, model):
                    found += each.incidents
            tell(self._config, self._log, found)
        except HeadraceError as error:
            _logger.warning("nothing was looked at for drift: %s", error)
            return
        self._incidents = found

    def _look(self, label: Label) -> None:
        began = time.monotonic()
        try:
            found = take_a_look(self._session, self._config, self._log, label, self._clock)
        except HeadraceError as error:
            _logger.warning("label %s was not looked at: %s", label.name, error)
            return
        if found.restated:
            self._read(label)
            _logger.info("%s: %d cells in %.1f s", label.name, len(found.restated), time.monotonic() - began)

    def _read(self, label: Label) -> None:
        """The figures of a label as they are kept, for the status."""
        told = overall(label, Cells(self._config, label))
        versions = {
            str(each["version"]): {name: each[name] for name in FIGURES if name in each} for each in told["versions"]
        }
        self._told[label.name] = {"model": label.model.name, "known_until": told["known_until"], "versions": versions}

    def tell(self) -> None:
        """Say in the status topic how good predictions were."""
        now = self._clock.now()
        told = {"component": COMPONENT, "at": now, "looks": self.looks, "labels": self._told, "alarms": self._alarms()}
        topic = names(self._config).topic(STATUS)
        self._log.append(topic, json.dumps(told, separators=(",", ":")).encode(), key=COMPONENT.encode())

    def _alarms(self) -> list[dict[str, Any]]:
        """Incidents that nobody has closed, and that are not over by themselves."""
        return [
            Alarm(
                each.model, None, "drift", None, None, each.since, f"{each.says} `headrace incidents show {each.id}`"
            ).as_json()
            for each in self._incidents
            if under_way(each)
        ]


def main(plan: Plan, config: Config, stop: threading.Event, clock: Clock | None = None) -> None:
    """Evaluate a project until told to stop."""
    session = local_session(f"headrace {config.name} evaluate", jars=spark_jars(config, plan))
    clock = clock or SystemClock()

    cancelled_by(stop, session)
    try:
        with open_log(config, clock) as log:
            evaluating = Evaluating(plan, config, log, session, clock)
            evaluating.tell()
            while True:
                evaluating.step()
                if stop.wait(min(TELL, config.evaluate_every / SECOND)):
                    return
    except Exception:
        # What was under way was cancelled, and is done again at the next start.
        if not stop.is_set():
            raise
    finally:
        session.stop()
