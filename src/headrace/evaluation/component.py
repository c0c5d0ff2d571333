"""Evaluation, a component: a look at every label, again and again, and the newest figures in the status.

A look that cannot be taken, because the lake is away or another one is under way, is taken
later; nothing is lost by that.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from headrace.alarms.alarm import AlarmStatus, StreamAlarm
from headrace.clock import Clock
from headrace.config.config import Config, models_folder, names, resolved
from headrace.define.label import Label
from headrace.drift.incident import Incident
from headrace.errors import HeadraceError
from headrace.evaluation.alerts import publish_alerts
from headrace.evaluation.cells import Cells
from headrace.evaluation.drift_watch import find_versions, spread_table, under_way, watched_models
from headrace.evaluation.evaluation_pass import take_a_look
from headrace.evaluation.report import overall
from headrace.evaluation.webhook import Webhook
from headrace.models.registry import ModelRegistry
from headrace.plan.model import Plan
from headrace.status.records import EvaluationStatus, LabelStatus
from headrace.status.topic import StatusPublisher
from headrace.topics import STATUS, create, open_log, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "alerts.secret"
FIGURES = ("count", "states", "coverage", "precision", "recall", "auc", "log_loss", "brier", "mae", "rmse")

_logger = logging.getLogger(__name__)


class Evaluating:
    """Looks at the labels of a project, and at its models for drift, as time goes by."""

    pause = 1.0

    def __init__(self, plan: Plan, config: Config, session: SparkSession, clock: Clock) -> None:
        log = open_log(config, clock)
        self._plan, self._config, self._log, self._session, self._clock = plan, config, log, session, clock
        create(log, topics(plan, names(config), config.log.partitions))
        self.looks, self._due = 0, 0
        self._labels: dict[str, LabelStatus] = {}
        self._publisher = StatusPublisher(log, names(config).topic(STATUS), clock)
        self._incidents: list[Incident] = []
        self._registry = ModelRegistry(models_folder(config), clock)
        self._webhook = Webhook(config, log, clock, resolved({SECRET: config.alerts.secret}, os.environ)[SECRET])
        for label in plan.labels:
            self._read(label)
        self.publish_status()

    def step(self) -> bool:
        """Look when it is time, and publish the status."""
        now = self._clock.now()
        if now >= self._due:
            self._due = now + self._config.evaluate.every
            self._count()
            for label in self._plan.labels:
                self._evaluate_label(label)
            self._watch_models()
            self.looks += 1
        self._webhook.step()
        self.publish_status()
        return False

    def is_ready(self) -> bool:
        """Always: predictions and labels wait in the lake."""
        return True

    def stop(self) -> None:
        """Give back the log. A look that was cut off is taken again."""
        self._log.close()

    def _count(self) -> None:
        """Count what models were given since; before labels are joined, so that all that is counted has been joined."""
        for model in watched_models(self._plan, self._config):
            try:
                spread_table(self._plan, self._config, model).look(self._session, self._registry)
            except HeadraceError as error:
                _logger.warning("nothing of model %s was counted for drift: %s", model.name, error)

    def _watch_models(self) -> None:
        """Look for drift, and tell of incidents that are new."""
        found: list[Incident] = []
        try:
            for model in watched_models(self._plan, self._config):
                for each in find_versions(self._plan, self._config, self._log, self._registry, model):
                    found += each.incidents
            publish_alerts(self._config, self._log, found)
        except HeadraceError as error:
            _logger.warning("nothing was looked at for drift: %s", error)
            return
        self._incidents = found

    def _evaluate_label(self, label: Label) -> None:
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
        self._labels[label.name] = LabelStatus(
            model=label.model.name, known_until=told["known_until"], versions=versions
        )

    def publish_status(self) -> None:
        """Publish how good predictions were."""
        self._publisher.publish(EvaluationStatus(looks=self.looks, labels=self._labels, alarms=self._alarms()))

    def _alarms(self) -> list[AlarmStatus]:
        """Incidents that nobody has closed, and that are not over by themselves."""
        return [
            StreamAlarm(
                each.model, None, "drift", None, None, each.since, f"{each.says} `headrace incidents show {each.id}`"
            ).status()
            for each in self._incidents
            if under_way(each)
        ]


def is_needed(plan: Plan, config: Config) -> bool:
    """Whether labels say what became of predictions, or models that score a stream are watched for drift."""
    scores = any(model.stream is not None for model in plan.models)
    return bool(plan.labels) or (scores and config.drift.watch == "all")
