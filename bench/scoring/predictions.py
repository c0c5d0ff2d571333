"""Predictions as they arrive, in a process of its own, and what they say together with what was sent.

A prediction names the event it is of and how old the tiles were that it was made of. So the latency of a payment is
from just before it was handed to the producer to the arrival of the prediction with its id, whatever came in between.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from headrace.log.protocol import Log

CHUNK = 10_000
SKIPPED = 5
"""One part in so many of a backlog is not counted: the scorer starts, and reads what came before."""
ID = re.compile(rb'"id":"p(\d+)"')

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Told(msgspec.Struct):
    """What is read of a prediction."""

    event_id: str
    offset: int
    freshness_ms: float | None
    folded: int
    stale: bool


@dataclass(frozen=True)
class Standing:
    """How far the process that receives is: predictions so far, and the offset that follows the last one's payment."""

    count: Synchronized[int]
    reached: Synchronized[int]


@dataclass(frozen=True)
class Seen:
    """Predictions in the order in which they came.

    Parameters
    ----------
    number
        Of the payment, as its id says.
    came
        When it arrived, in nanoseconds.
    age
        Milliseconds that the tiles were old, NaN where there were none.
    folded
        How many events were folded in from the log.
    stale
        Whether it was made of less than was known.
    """

    number: Numbers
    came: Numbers
    age: Floats
    folded: Numbers
    stale: npt.NDArray[np.bool_]

    def of(self, kept: npt.NDArray[np.bool_]) -> Seen:
        """Some of them."""
        return Seen(self.number[kept], self.came[kept], self.age[kept], self.folded[kept], self.stale[kept])


def receive(brokers: str, topic: str, file: Path, standing: Standing, over: Event) -> None:
    """Receive predictions until told to stop; what they say goes to `file`."""
    from confluent_kafka import Consumer, TopicPartition

    options = {"bootstrap.servers": brokers, "group.id": "bench", "enable.auto.commit": False, "log_level": 2}
    consumer = Consumer(options | {"fetch.wait.max.ms": 5, "fetch.min.bytes": 1, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    read, rows = msgspec.json.Decoder(Told).decode, list[tuple[Told, int]]()
    while not over.is_set():
        if (message := consumer.poll(0.2)) is None:
            continue
        now, value = time.time_ns(), message.value()
        if message.error() is not None or value is None:
            raise RuntimeError(f"no prediction came, but {message.error()}")
        rows.append((read(value), now))
        standing.count.value = len(rows)
        standing.reached.value = rows[-1][0].offset + 1
    consumer.close()
    write(file, rows)


def write(file: Path, rows: list[tuple[Told, int]]) -> None:
    """Predictions, and when each came, as arrays."""
    told = [each for each, _ in rows]
    np.savez(
        file,
        number=np.array([int(each.event_id.removeprefix("p")) for each in told], np.int64),
        came=np.array([came for _, came in rows], np.int64),
        age=np.array([math.nan if each.freshness_ms is None else each.freshness_ms for each in told], np.float64),
        folded=np.array([each.folded for each in told], np.int64),
        stale=np.array([each.stale for each in told], np.bool_),
    )


def seen(file: Path) -> Seen:
    """What `receive` wrote."""
    with np.load(file) as held:
        return Seen(held["number"], held["came"], held["age"], held["folded"], held["stale"])


def payments_in(log: Log, topic: str) -> Numbers:
    """The numbers of all payments of a topic with one partition, each once, however often it was sent."""
    found, at, end = set[int](), log.start_offsets(topic)[0], log.end_offsets(topic)[0]
    while at < end:
        records = log.read(topic, 0, at, limit=CHUNK)
        for record in records:
            number = ID.search(record.value or b"")
            if number is None:
                raise RuntimeError(f"a record is no payment: {record.value!r}")
            found.add(int(number[1]))
        at = records[-1].offset + 1
    return np.array(sorted(found), np.int64)


def refuse_not_once(sent: Numbers, predicted: Numbers) -> None:
    """Refuse a run in which a payment has no prediction, or more than one, or one is of no payment.

    >>> refuse_not_once(np.array([0, 1]), np.array([1, 1]))
    Traceback (most recent call last):
    RuntimeError: of 2 payments 1 have no prediction and 1 have several; 0 predictions are of none
    """
    found, times = np.unique(predicted, return_counts=True)
    lacking, several = int(np.sum(~np.isin(sent, found))), int(np.sum(times > 1))
    unknown = int(np.sum(~np.isin(predicted, sent)))
    if lacking or several or unknown:
        said = f"{lacking:,} have no prediction and {several:,} have several; {unknown:,} predictions are of none"
        raise RuntimeError(f"of {len(sent):,} payments {said}")


def steady(found: Seen, moments: Numbers, begin: int, first: int = 0) -> tuple[Floats, Seen]:
    """Milliseconds of each payment that was sent since `begin`, and its predictions.

    Parameters
    ----------
    moments
        When each payment was sent, in nanoseconds, by its number from `first` on; others are not counted.
    """
    timed = found.of((found.number >= first) & (found.number < first + len(moments)))
    counted = timed.of(moments[timed.number - first] >= begin)
    if not len(counted.number) or counted.stale.any():
        raise RuntimeError(
            f"{int(counted.stale.sum())} of {len(counted.number)} predictions are of less than was known"
        )
    took: Floats = (counted.came - moments[counted.number - first]) / 1e6
    return took, counted


def backlog_per_s(found: Seen, first: int) -> float:
    """Predictions a second of the payments from number `first` on, after the first fifth of them."""
    came = np.sort(found.came[found.number >= first])
    skipped = len(came) // SKIPPED
    if not skipped or came[-1] == came[skipped - 1]:
        raise RuntimeError(f"{len(came)} predictions are too few to tell how many come in a second")
    return float((len(came) - skipped) * 1e9 / (came[-1] - came[skipped - 1]))
