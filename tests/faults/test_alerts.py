"""Alerts after a crash: each is in the topic once, and a receiver gets all of them in order."""

from __future__ import annotations

import json

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.clock import HOUR
from headrace.config.config import names
from headrace.drift.incident import DriftAlarm, IncidentChange, opened
from headrace.evaluation.alerts import publish_alerts, read_alerts
from headrace.evaluation.webhook import Webhook
from headrace.faults import NO_FAULTS
from headrace.log import EmbeddedLog
from headrace.testing import FakeClock
from headrace.topics import ALERTS
from tests.faults.image import CrashImages, at_each_point
from tests.streams import BASE

INCIDENTS = [
    opened("risk", 3, DriftAlarm(series, BASE, BASE + HOUR, effect=0.2, before=0.3, now=0.5, times_least=4.0))
    for series in ("log_loss", "mean of amount")
]
CHANGED = [INCIDENTS[0].changed(IncidentChange("closed", "kim", "a new model", BASE + 2 * HOUR)), INCIDENTS[1]]
ALL = [(INCIDENTS[0].id, "opened"), (INCIDENTS[1].id, "opened"), (INCIDENTS[0].id, "closed")]


def config_of(folder):
    return project.load(folder).config


def log_of(folder):
    return EmbeddedLog(names(config_of(folder)).path("log"), clock=FakeClock(BASE))


def carry(folder, log, came, faults=NO_FAULTS):
    """Post what is waiting; a receiver keeps what comes."""

    def receive(_, body, __):
        alert = json.loads(body)["headrace"]
        came.append((alert["id"], alert["what"]))
        return 200

    Webhook(config_of(folder), log, FakeClock(BASE), send=receive, faults=faults).step()


@pytest.fixture(scope="module", autouse=True)
def receiver():
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HEADRACE_ALERTS_WEBHOOK", "http://receiver")
        yield


@pytest.fixture(scope="module")
def images(receiver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alerts")
    world, came = folder / "world", list[tuple[str, str]]()
    create(world)
    made = CrashImages(world, folder / "images", "alerts", known=lambda: list(came))
    with log_of(world) as log:
        log.create_topic(names(config_of(world)).topic(ALERTS))
        for found in (INCIDENTS, CHANGED):
            publish_alerts(config_of(world), log, found, made)
            carry(world, log, came, made)
    assert came == ALL
    return made


@at_each_point("alerts")
def test_each_alert_is_in_the_topic_once_and_the_receiver_lacks_none(images, name):
    for taken in images.of(name):
        with log_of(taken.folder) as log:
            config, came = config_of(taken.folder), list(taken.known)
            for found in (INCIDENTS, CHANGED):
                publish_alerts(config, log, found)
            carry(taken.folder, log, came)
            assert [(each["id"], each["what"]) for each in read_alerts(config, log)] == ALL, taken
            # What the receiver took and could not say so comes twice, and only that.
            again = [taken.known[-1]] if name == "alerts.post.after" else []
            assert came == [*taken.known, *again, *ALL[len(taken.known) :]], taken
