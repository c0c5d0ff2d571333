"""Alerts by HTTP: each record of the topic `alerts` is posted in order until somebody takes it, and then the next.

How far it has come is a position of the log, moved after an answer of 2xx: a receiver that is down for an hour gets
everything afterwards, in order. One that took an alert and could not say so gets it again, under the same id. The body
is what Slack's incoming webhooks take, with the whole alert beside it; with a secret it is signed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from headrace.clock import MINUTE, SECOND, Clock
from headrace.config.config import Config, names
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.protocol import Log
from headrace.log.record import Record
from headrace.topics import ALERTS

TIMEOUT = 5.0
FIRST, LONGEST = 1 * SECOND, 5 * MINUTE
"""The pause after a failure, doubled with each to the longest."""
GIVEN_UP = (400, 404, 405, 410, 413, 422)
"""Answers that will not change however often it is posted: the alert stays in its topic, and the next is tried."""

_logger = logging.getLogger(__name__)
Post = Callable[[str, bytes, dict[str, str]], int]
"""Posts a body with headers to an address; the status of the answer."""


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


def post(address: str, body: bytes, headers: dict[str, str]) -> int:
    """Post over HTTP. A redirect is followed by nobody: an alert goes where it was sent."""
    request = urllib.request.Request(address, body, headers, method="POST")
    try:
        with _OPENER.open(request, timeout=TIMEOUT) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


class Webhook:
    """Carries alerts to an address.

    Attributes
    ----------
    delivered, refused
        How many were taken, and how many the receiver will never take.
    """

    def __init__(
        self,
        config: Config,
        log: Log,
        clock: Clock,
        secret: str = "",
        send: Post = post,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self._address, self._secret, self._send = config.alerts.webhook, secret, send
        self._log, self._clock, self._faults = log, clock, faults
        self._topic, self._group = names(config).topic(ALERTS), names(config).group("webhook")
        self.delivered = self.refused = self.failures = 0
        self._due = 0

    def step(self) -> None:
        """Post what is waiting, unless it is too soon after a failure."""
        if not self._address or self._clock.now() < self._due:
            return
        at = self._log.committed(self._group, self._topic).get(0, 0)
        for record in self._log.read(self._topic, 0, at, limit=100):
            # Where a full disk would not take the new position, it refuses the old one before the alert is posted.
            self._log.commit(self._group, self._topic, {0: record.offset})
            if not self._deliver(record):
                return
            self._faults.reach("alerts.post.after")
            self._log.commit(self._group, self._topic, {0: record.offset + 1})
            self._faults.reach("alerts.position.after")

    def _deliver(self, record: Record) -> bool:
        """Whether an alert is done with."""
        body = json.dumps(body_of(json.loads(record.value or b"{}"))).encode()
        try:
            status = self._send(self._address, body, self._headers(record, body))
        except OSError as error:
            return self._failed(str(error))
        if 200 <= status < 300:
            self.delivered, self.failures = self.delivered + 1, 0
            return True
        if status in GIVEN_UP:
            self.refused += 1
            _logger.error("the webhook refuses an alert for good: HTTP %s", status)
            return True
        return self._failed(f"HTTP {status}")

    def _failed(self, why: str) -> bool:
        pause = min(LONGEST, FIRST << min(self.failures, 20))
        self.failures += 1
        self._due = self._clock.now() + pause
        _logger.warning("an alert was not taken (%s), again in %.0f s", why, pause / SECOND)
        return False

    def _headers(self, record: Record, body: bytes) -> dict[str, str]:
        moment = str(self._clock.now() // SECOND)
        told = {
            "Content-Type": "application/json",
            "X-Headrace-Id": (record.key or b"").decode("utf-8", "replace"),
            "X-Headrace-Time": moment,
        }
        if self._secret:
            told["X-Headrace-Signature"] = signature(self._secret, moment, body)
        return told


def signature(secret: str, moment: str, body: bytes) -> str:
    """The signature of a body at a moment: whoever has the secret can check who sent it, and when.

    >>> signature("open sesame", "0", b"{}")[:19]
    'sha256=61e8a546b984'
    """
    made = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256)
    return f"sha256={made.hexdigest()}"


def body_of(alert: dict[str, Any]) -> dict[str, Any]:
    """What is posted: a text for people, as Slack shows it, and the alert for programs."""
    what = {"opened": "New incident", "recovered": "Recovered", "closed": "Closed"}[alert["what"]]
    return {"text": f"*{what} {alert['id']}*: {alert['says']}", "headrace": alert}
