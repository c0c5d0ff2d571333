"""A project's processes while they run: started and ended, fed as time goes by, read over HTTP."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from headrace.clock import SystemClock, micros
from headrace.define.view import View
from headrace.errors import MachineError
from headrace.log.protocol import Log
from headrace.log.range_read import between
from headrace.log.record import Message, Record
from headrace.processes import state_folder
from headrace.project import Project
from headrace.supervisor import services, stack
from headrace.supervisor import up as running

CATCH_UP = 120.0

Say = Callable[[str], None]


@contextmanager
def started(project: Project, say: Say) -> Iterator[str]:
    """A project's processes on a free port, ended afterwards; gives the address of serving."""
    where = state_folder.find_state_folder(project.config)
    again = stack.command("up", "--port", "0", path=project.config.root, env=project.config.env)
    try:
        if running.detach(again, where, say):
            hint = f"Look at {where.log('spark')} and {where.log('serve')}."
            raise MachineError("start-failed", "The demo's processes did not start.", hint=hint)
        told = state_folder.read_status(where) or {}
        yield told["processes"]["serve"]["url"]
    finally:
        running.down(where)
        services.stop(project.config)


def scoring(project: Project) -> None:
    """Wait until payments are scored as they come: nobody is kept waiting for that, as for what serves."""
    where, deadline = state_folder.find_state_folder(project.config), time.monotonic() + CATCH_UP
    while time.monotonic() < deadline:
        told = (state_folder.read_status(where) or {}).get("processes", {})
        if told.get("score", {}).get("state") == "ready":
            return
        time.sleep(0.2)
    hint = f"Look at {where.log('score')}."
    raise MachineError("no-answer", "Scoring was not ready in time.", got=f"{told.get('score')}", hint=hint)


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

    def features(self, view: View, key: str | Sequence[str]) -> Any:
        """The features of a key now. A key of several columns has one part for each."""
        parts = [key] if isinstance(key, str) else key
        return self.get("/".join(["/v1/features", view.name, *(quote(part, safe="") for part in parts)]))


class Due(Protocol):
    """What is sent when its time has come."""

    @property
    def sent_at(self) -> int: ...
    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> bytes: ...


def send(log: Log, topic: str, sent: Sequence[Due], tick: Callable[[int], None]) -> None:
    """Append each record when its time has come; `tick` is told how many, about ten times a second."""
    done = 0
    while done < len(sent):
        now = SystemClock().now()
        due = done
        while due < len(sent) and sent[due].sent_at <= now:
            due += 1
        if due > done:
            log.append_batch(topic, [Message(each.value, each.key) for each in sent[done:due]])
        done = due
        tick(done)
        time.sleep(0.1)


def included(reader: Reader, view: View, key: str | Sequence[str], moment: int, patience: float = CATCH_UP) -> Any:
    """Wait so many seconds until everything that arrived before a moment is in the answers."""
    deadline = time.monotonic() + patience
    while True:
        answer = reader.features(view, key)
        if answer["as_of"] and micros(answer["as_of"]) >= moment:
            return answer
        if time.monotonic() > deadline:
            got = f"as of {answer['as_of']}"
            hint = "See `headrace status`, and `headrace logs` for what was said."
            raise MachineError(
                "no-answer", f"The pipeline did not catch up within {patience:.0f} s.", got=got, hint=hint
            )
        time.sleep(0.1)


def everything(log: Log, topic: str, name: str) -> list[Record]:
    """All records of a stream, under the name its definition has."""
    records = read_on(log, topic, {})
    return [Record(name, r.partition, r.offset, r.arrived_at, r.key, r.value, r.headers) for r in records]


def read_on(log: Log, topic: str, at: dict[int, int]) -> list[Record]:
    """What a topic holds from the offsets `at` on, which are moved behind it."""
    records = list(between(log, topic, at, log.end_offsets(topic)))
    at |= {record.partition: record.offset + 1 for record in records}
    return records


def settled(reader: Reader, stream: str) -> Any:
    """The status once every record has been counted; what there is when that takes too long."""
    deadline = time.monotonic() + CATCH_UP
    while True:
        status = reader.get("/status.json")
        if status["streams"].get(stream, {}).get("settled") or time.monotonic() > deadline:
            return status
        time.sleep(0.2)
