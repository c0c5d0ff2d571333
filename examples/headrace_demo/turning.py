"""A world in which thieves change their ways, replayed in accelerated time: weeks of payments and labels in minutes.

A model has learnt from the days before. Then come days in which all is well, from which the watch learns what is
usual; then thieves become patient, and nothing that the model is given shows it. Whether that was fraud is known days
later, and so is the drift. Records say themselves when they arrived, and everything goes by that.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from operator import itemgetter
from pathlib import Path

import msgspec

from headrace.clock import DAY, micros, show_time
from headrace.codec.json.rules import LATEST
from headrace.config.config import names
from headrace.errors import MachineError
from headrace.lake.completeness import complete_until
from headrace.lake.location import find_tables
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.processes import state_folder
from headrace.project import Project
from headrace.status.records import EvaluationStatus
from headrace.status.topic import read_status
from headrace.topics import STATUS
from headrace_demo.shop import HISTORY, LABELS
from headrace_demo.world.files import write_labels, write_payments
from headrace_demo.world.labels import SETTLED, Label, labels
from headrace_demo.world.stream import Sent, World, history

LEARNT, USUAL, AFTER = 10 * DAY, 6 * DAY, 2 * DAY
"""How long is learnt from, how long the model runs before thieves change their ways, and how long afterwards counts."""
PER_DAY, CARDS = 2_000, 2_600
PATIENCE = 300.0
"""Seconds in which the last labels must have been looked at."""
BEGIN = micros("2026-03-04T00:00:00Z")
"""When the model begins to score."""
LAST_FIELD = '        "at": hr.Timestamp,\n    },\n'
DECLARED = '        "at": hr.Timestamp,\n        "arrived_at": hr.Timestamp,\n    },\n    arrival="field:arrived_at",\n'
SETTINGS = """
[log]
partitions = 1

# A second of the replay is hours of payments.
[archive]
every = "5s"

[evaluate]
every = "10s"

[drift]
window = "2h"
reference = "6d"
labels_after = "5d"
false_alarms_per_month = 0.1
"""


@dataclass(frozen=True)
class Replay:
    """What comes after history.

    Parameters
    ----------
    payments
        Records of payments, by arrival.
    labels
        All labels that come meanwhile, those of earlier payments among them.
    turned
        When thieves change their ways, by the world's own clock.
    """

    payments: Sequence[Sent]
    labels: Sequence[Label]
    turned: int


def as_a_replay(folder: Path) -> None:
    """Have the demo's project go by the times its records say, take labels, and watch its model."""
    features, settings = folder / "features.py", folder / "headrace.toml"
    said = (files("headrace_demo.world") / "disputes.py.txt").read_text(encoding="utf-8")
    features.write_text(features.read_text().replace(LAST_FIELD, DECLARED, 1) + said)
    settings.write_text(settings.read_text() + SETTINGS)


def world_of(seed: int, *, turns: bool = True) -> World:
    """Payments of all days, history's and those that are replayed."""
    replayed = USUAL + AFTER + SETTLED[1]
    days = (LEARNT + replayed) // DAY
    turned = BEGIN + USUAL if turns else None
    return World(seed=seed, start=BEGIN + replayed, cards=CARDS, days=days, payments=days * PER_DAY, turned=turned)


def written(folder: Path, world: World) -> Replay:
    """Write what is known before the model begins into files; the rest is what comes then."""
    sent = list(history(world))
    known = list(labels(sent, seed=world.seed))
    write_payments((each for each in sent if each.sent_at < BEGIN), folder / HISTORY)
    write_labels((each for each in known if each.at < BEGIN), folder / LABELS)
    return Replay(
        [each for each in sent if each.sent_at >= BEGIN],
        [each for each in known if BEGIN <= each.at < world.start],
        BEGIN + USUAL,
    )


def records(replay: Replay) -> Iterator[tuple[str, Message]]:
    """Payments and labels by arrival, each with the stream it is of."""
    paid = ((each.sent_at, "payments", Message(_declared(each), each.key)) for each in replay.payments)
    told = ((each.at, "disputes", Message(dispute(each), each.payment.encode())) for each in replay.labels)
    for _, stream, message in heapq.merge(paid, told, key=itemgetter(0)):
        yield stream, message


def send(project: Project, log: Log, replay: Replay, rate: float, tick: Callable[[int], None]) -> None:
    """Append all of it, so many payments in a second; `tick` is told how many, about ten times a second."""
    naming, began, done = names(project.config), time.monotonic(), 0
    waiting: dict[str, list[Message]] = {"payments": [], "disputes": []}

    def hand_over() -> None:
        for stream, some in waiting.items():
            log.append_batch(naming.topic(stream), some)
            some.clear()
        tick(done)

    for stream, message in records(replay):
        waiting[stream].append(message)
        done += stream == "payments"
        if len(waiting["payments"]) >= rate / 10:
            hand_over()
            time.sleep(max(0.0, began + done / rate - time.monotonic()))
    hand_over()


def looked_at(project: Project, log: Log) -> None:
    """Wait until everything is in the lake, and until labels and drift have been looked at after that."""
    deadline, looks = time.monotonic() + PATIENCE, None
    while time.monotonic() < deadline:
        status = read_status(log, names(project.config).topic(STATUS), EvaluationStatus).get(EvaluationStatus)
        taken = 0 if status is None else status.looks
        if looks is None:
            looks = taken if _in_the_lake(project, log) else None
        elif taken >= looks + 2:  # one was under way
            return
        time.sleep(1.0)
    hint = f"Look at {state_folder.find_state_folder(project.config).log('evaluate')}."
    raise MachineError("no-answer", "Labels were not looked at in time.", hint=hint)


def _in_the_lake(project: Project, log: Log) -> bool:
    plan, naming = project.plan(), names(project.config)
    (label,) = plan.labels
    streams = (label.stream.base, label.model.predictions)
    return all(
        complete_until(find_tables(project.config, each), each, log, naming.topic(each.name)) == LATEST
        for each in streams
    )


def _declared(sent: Sent) -> bytes:
    """A record that says itself when it arrived; what is broken says nothing."""
    if sent.kind == "broken":
        return sent.value
    return msgspec.json.encode({**msgspec.json.decode(sent.value), "arrived_at": show_time(sent.sent_at)})


def dispute(label: Label) -> bytes:
    """A label as a record."""
    told = {"id": f"about-{label.payment}", "payment": label.payment, "fraud": label.fraud, "at": show_time(label.at)}
    return msgspec.json.encode(told)
