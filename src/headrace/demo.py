"""The demo: a project made, started, fed with generated payments, read over HTTP and compared with the reference.

Everything is real: the embedded log, Spark, the store, the HTTP server, each in its own process. Only the payments are
made up (`example`). What is shown and how is `cli.demo`'s business.
"""

from __future__ import annotations

import http.client
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

from headrace import example
from headrace.clock import SECOND, SystemClock, micros
from headrace.config import names
from headrace.define.view import View
from headrace.errors import MachineError
from headrace.log.protocol import Log
from headrace.log.record import Message, Record
from headrace.project import Project
from headrace.run.equality import differences
from headrace.run.reference import Outcome
from headrace.serve.monitor import percentiles
from headrace.supervisor import place, services, stack
from headrace.supervisor import up as running
from headrace.topics import open_log

READS = 500
CATCH_UP = 120.0

Say = Callable[[str], None]


@contextmanager
def started(project: Project, say: Say) -> Iterator[str]:
    """A project's processes on a free port, ended afterwards; gives the address of serving."""
    where = place.place(project.config)
    again = stack.command("up", "--port", "0", path=project.config.root, env=project.config.env)
    try:
        if running.detach(again, where, say):
            hint = f"Look at {where.log('pipeline')} and {where.log('serve')}."
            raise MachineError("start-failed", "The demo's processes did not start.", hint=hint)
        told = place.read_status(where) or {}
        yield told["processes"]["serve"]["url"]
    finally:
        running.down(where)
        services.stop(project.config)


class Reader:
    """Reads features over one HTTP connection."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def get(self, path: str) -> Any:
        """The JSON at a path. A connection the server has closed meanwhile is opened again, once."""
        try:
            return self._get(path)
        except http.client.RemoteDisconnected:
            self._connection.close()
            return self._get(path)

    def _get(self, path: str) -> Any:
        self._connection.request("GET", path)
        return json.loads(self._connection.getresponse().read())

    def features(self, view: View, card: str) -> Any:
        """A card's features now."""
        return self.get(f"/v1/features/{view.name}/{quote(card, safe='')}")


def send(log: Log, topic: str, sent: list[example.Payment], tick: Callable[[int], None]) -> None:
    """Append each payment when its time has come; `tick` is told how many, about ten times a second."""
    done = 0
    while done < len(sent):
        now = SystemClock().now()
        due = done
        while due < len(sent) and sent[due].sent_at <= now:
            due += 1
        if due > done:
            log.append_batch(topic, [Message(payment.value, payment.card.encode()) for payment in sent[done:due]])
        done = due
        tick(done)
        time.sleep(0.1)


def included(reader: Reader, view: View, card: str, moment: int) -> Any:
    """Wait until everything that arrived before a moment is in the answers."""
    deadline = time.monotonic() + CATCH_UP
    while True:
        answer = reader.features(view, card)
        if answer["as_of"] and micros(answer["as_of"]) >= moment:
            return answer
        if time.monotonic() > deadline:
            raise MachineError("no-answer", f"The pipeline did not catch up within {CATCH_UP:.0f} s.")
        time.sleep(0.1)


def everything(log: Log, topic: str, name: str) -> list[Record]:
    """All records of a stream, under the name its definition has."""
    records: list[Record] = []
    for partition, end in log.end_offsets(topic).items():
        at = 0
        while at < end:
            found = log.read(topic, partition, at, limit=10_000)
            records += found
            at = found[-1].offset + 1
    return [Record(name, r.partition, r.offset, r.arrived_at, r.key, r.value, r.headers) for r in records]


def run(project: Project, url: str, *, seconds: float, per_second: float, seed: int, say: Say) -> dict[str, Any]:
    """Send payments for some seconds, watch features move, and report."""
    with open_log(project.config) as log, closing(Reader(url)) as reader:
        return _run(project, log, reader, seconds=seconds, per_second=per_second, seed=seed, say=say)


def _run(
    project: Project, log: Log, reader: Reader, *, seconds: float, per_second: float, seed: int, say: Say
) -> dict[str, Any]:
    (view,) = project.views
    topic = names(project.config).topic(view.stream.name)
    start = SystemClock().now() + SECOND
    sent = example.payments(int(seconds * per_second), seed=seed, start=start, per_second=per_second)
    busiest = [card for card, _ in Counter(payment.card for payment in sent).most_common(3)]
    shown_at = [time.monotonic()]

    def tick(done: int) -> None:
        if time.monotonic() - shown_at[0] >= 2:
            shown_at[0] = time.monotonic()
            answer = reader.features(view, busiest[0])
            values = "  ".join(f"{name} {short(value)}" for name, value in answer["features"].items())
            age = "nothing yet" if answer["missing"] else f"{answer['freshness_ms'] / 1_000:.1f} s old"
            say(f"{done:>6,} sent  {busiest[0]}: {values}  ({age})")

    send(log, topic, sent, tick)
    included(reader, view, busiest[0], SystemClock().now())
    answers = {card: reader.features(view, card) for card in busiest}
    outcome = Outcome(project.plan(), everything(log, topic, view.stream.name))
    status = _settled(reader, view.stream.name)
    return {
        "sent": len(sent),
        "verdicts": status["streams"][view.stream.name]["verdicts"],
        "reference_verdicts": outcome.verdicts(view.stream.name),
        "arrival_to_servable": status["latency"]["arrival_to_servable"],
        "read": percentiles(_timed_reads(reader, view, busiest), "ms"),
        "features": {card: _compared(outcome, view, card, answer) for card, answer in answers.items()},
    }


def _compared(outcome: Outcome, view: View, card: str, answer: Any) -> dict[str, Any]:
    """What was served beside what the reference says of the same moment, and where they differ."""
    moment = (micros(answer["at"]),)
    return {
        "served": answer["features"],
        "reference": outcome.values(view, (card,), moment),
        "differences": differences(outcome, view, (card,), moment, answer["features"]),
    }


def _settled(reader: Reader, stream: str) -> Any:
    """The status once every record has been counted; what there is when that takes too long."""
    deadline = time.monotonic() + CATCH_UP
    while True:
        status = reader.get("/status.json")
        if status["streams"].get(stream, {}).get("settled") or time.monotonic() > deadline:
            return status
        time.sleep(0.2)


def _timed_reads(reader: Reader, view: View, cards: list[str]) -> list[float]:
    taken = []
    for number in range(READS):
        began = time.perf_counter()
        reader.features(view, cards[number % len(cards)])
        taken.append((time.perf_counter() - began) * 1_000)
    return taken


def short(value: Any) -> str:
    """A value as the demo shows it: floats to the cent."""
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
