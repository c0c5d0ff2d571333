"""Alerts are told once in their topic, and by HTTP until somebody takes them, in order."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import threading
from typing import Any

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.clock import HOUR, SECOND
from headrace.config.config import names
from headrace.drift.incident import DriftAlarm, IncidentChange, opened
from headrace.errors import DiskFullError
from headrace.evaluation.alerts import publish_alerts
from headrace.evaluation.webhook import Webhook, post
from headrace.log import MemoryLog
from headrace.testing import FakeClock
from headrace.topics import ALERTS
from tests.streams import BASE

ADDRESS = "http://receiver"


@pytest.fixture
def config(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.setenv("HEADRACE_ALERTS_WEBHOOK", ADDRESS)
    return project.load(tmp_path / "shop").config


@pytest.fixture
def clock():
    return FakeClock(BASE)


@pytest.fixture
def log(clock, config):
    made = MemoryLog(clock=clock)
    made.create_topic(names(config).topic(ALERTS))
    return made


def incident(series="log_loss", since=BASE):
    return opened("risk", 3, DriftAlarm(series, since, since + HOUR, effect=0.2, before=0.3, now=0.5, times_least=4.0))


class Receiver:
    """Answers what it is told to, and remembers what came."""

    def __init__(self):
        self.status: int | OSError = 200
        self.came: list[tuple[Any, dict[str, str]]] = []

    def __call__(self, address, body, headers):
        assert address == ADDRESS
        if isinstance(self.status, OSError):
            raise self.status
        if self.status == 200:
            self.came.append((json.loads(body), headers))
        return self.status


def test_an_incident_is_told_once_however_often_it_is_worked_out(config, log):
    assert publish_alerts(config, log, [incident()]) == 1
    assert publish_alerts(config, log, [incident()]) == 0
    closed = incident().changed(IncidentChange("closed", "kim", "a new tariff", BASE))
    assert publish_alerts(config, log, [closed]) == 1
    told = [json.loads(record.value) for record in log.read(ALERTS, 0, 0)]
    assert [each["what"] for each in told] == ["opened", "closed"]
    assert told[0]["says"].startswith("risk version 3, concept: log_loss went from 0.3 to 0.5")


def test_alerts_are_posted_in_order_as_slack_takes_them(config, log, clock):
    receiver = Receiver()
    publish_alerts(config, log, [incident(), incident("brier", BASE + HOUR)])
    hook = Webhook(config, log, clock, send=receiver)
    hook.step()
    hook.step()
    assert [body["headrace"]["moved"]["series"] for body, _ in receiver.came] == ["log_loss", "brier"]
    assert receiver.came[0][0]["text"].startswith("*New incident ")
    assert hook.delivered == 2


def test_a_receiver_that_is_down_for_an_hour_gets_everything_once_it_is_back(config, log, clock):
    receiver = Receiver()
    receiver.status = OSError("connection refused")
    hook = Webhook(config, log, clock, send=receiver)
    publish_alerts(config, log, [incident()])
    for _ in range(3600):
        hook.step()
        clock.advance("1s")
    tried = hook.failures
    publish_alerts(config, log, [incident("brier", BASE + HOUR)])
    receiver.status = 200
    for _ in range(400):
        hook.step()
        clock.advance("1s")
    assert len(receiver.came) == 2
    assert 10 < tried < 40, "it was tried again, and not all the time"


@pytest.mark.parametrize("status", [500, 503, 429, 302])
def test_an_answer_that_may_change_is_asked_for_again(config, log, clock, status):
    receiver = Receiver()
    receiver.status = status
    hook = Webhook(config, log, clock, send=receiver)
    publish_alerts(config, log, [incident()])
    hook.step()
    receiver.status = 200
    hook.step()
    assert receiver.came == [], "too soon"
    clock.advance("2s")
    hook.step()
    assert len(receiver.came) == 1


def test_an_alert_that_is_refused_for_good_does_not_hold_up_the_next(config, log, clock):
    receiver = Receiver()
    receiver.status = 400
    hook = Webhook(config, log, clock, send=receiver)
    publish_alerts(config, log, [incident()])
    hook.step()
    receiver.status = 200
    publish_alerts(config, log, [incident("brier", BASE + HOUR)])
    hook.step()
    assert (hook.refused, hook.delivered) == (1, 1)


def test_after_a_restart_it_goes_on_where_it_was(config, log, clock):
    receiver = Receiver()
    publish_alerts(config, log, [incident()])
    Webhook(config, log, clock, send=receiver).step()
    Webhook(config, log, clock, send=receiver).step()
    assert len(receiver.came) == 1


def test_on_a_full_disk_an_alert_is_posted_once_and_later(config, log, clock, monkeypatch):
    receiver = Receiver()
    publish_alerts(config, log, [incident()])
    commit, refusals = log.commit, [DiskFullError("log-full", "The log cannot grow.")] * 3

    def small(group, topic, offsets):
        if refusals:
            raise refusals.pop()
        commit(group, topic, offsets)

    monkeypatch.setattr(log, "commit", small)
    for _ in range(3):
        with pytest.raises(DiskFullError):
            Webhook(config, log, clock, send=receiver).step()
    assert receiver.came == []
    Webhook(config, log, clock, send=receiver).step()
    assert len(receiver.came) == 1


def test_a_body_is_signed_with_the_time_at_which_it_is_sent(config, log, clock):
    receiver = Receiver()
    publish_alerts(config, log, [incident()])
    Webhook(config, log, clock, "open sesame", receiver).step()
    ((body, headers),) = receiver.came
    text = f"{BASE // SECOND}.".encode() + json.dumps(body).encode()
    made = hmac.new(b"open sesame", text, hashlib.sha256).hexdigest()
    assert headers["X-Headrace-Signature"] == f"sha256={made}"


def test_it_is_posted_over_http_and_a_redirect_is_not_followed():
    came = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            came.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(302 if self.path == "/away" else 204)
            self.send_header("Location", "/")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert post(f"{address}/", b"{}", {"X-Headrace-Id": "a"}) == 204
        assert post(f"{address}/away", b"{}", {}) == 302
        server.shutdown()
    assert came == [("/", b"{}"), ("/away", b"{}")]
