"""The load of the comparison, in processes of its own: payments in at a steady rate, tile rows out.

Both engines write into every row the offset that follows the newest record in it; so a row tells which record it was
waiting for, and how long it took from just before that record was handed to the producer to the row's arrival here.
"""

from __future__ import annotations

import random
import re
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from headrace.clock import show_time

DOUBLED = 0.05
"""The share of records that are a copy of an earlier one."""
COUNTRIES = ("DE", "FR", "PL", "US", "JP", "BR")
TICK = 0.001
SOURCE = "payments"


def payment(number: int, card: int, now: int) -> bytes:
    """A payment as both engines read it."""
    text = f'{{"id":"p{number}","card":"card-{card}","amount":{number % 900 + 1}.25,'
    return f'{text}"country":"{COUNTRIES[number % 6]}","at":"{show_time(now)}"}}'.encode()


def send(brokers: str, rate: int, keys: int, seconds: float, file: Path, over: Event, begin: int = 0) -> None:
    """Send payments one by one at a steady rate, numbered from `begin`; when each was sent, in nanoseconds, to `file`.

    The topic has one partition, so records have their offsets in the order in which they were sent.
    """
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0, "enable.idempotence": True, "log_level": 2})
    chance, recent, copies = random.Random(7), [b""] * 500, 0
    moments: list[int] = []
    first: list[int] = []

    def told(error: object, message: object) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        if not first:
            first.append(message.offset())  # type: ignore[attr-defined]

    began = time.perf_counter()
    while not over.is_set() and (passed := time.perf_counter() - began) < seconds:
        for number in range(len(moments), int(passed * rate)):
            card = chance.randrange(keys)
            sent = time.time_ns()
            value = payment(begin + number, card, sent // 1000)
            if number >= len(recent) and chance.random() < DOUBLED:
                value, copies = chance.choice(recent), copies + 1
            recent[number % len(recent)] = value
            producer.produce(SOURCE, value, value[value.index(b"card-") : value.index(b'","amount')], callback=told)
            moments.append(sent)
        producer.poll(0)
        time.sleep(TICK)
    if producer.flush(30):
        raise RuntimeError("not everything was delivered")
    np.savez(file, first=first[0] if first else 0, moments=np.array(moments, dtype=np.int64), copies=copies)


def receive(brokers: str, topic: str, row: bytes, file: Path, over: Event) -> None:
    """Receive rows until told to stop; (next offset, moment in nanoseconds) of each goes to `file`.

    `row` matches a tile's row: the number of its events, and the offset that follows the newest.
    """
    from confluent_kafka import Consumer, TopicPartition

    options = {"bootstrap.servers": brokers, "group.id": "bench", "enable.auto.commit": False, "log_level": 2}
    consumer = Consumer(options | {"fetch.wait.max.ms": 5, "fetch.min.bytes": 1, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    tile, rows = re.compile(row), []
    while not over.is_set():
        if (message := consumer.poll(0.2)) is None:
            continue
        now, value = time.time_ns(), message.value()
        # Rows that tell how far a query has come are no tiles.
        if value is not None and (found := tile.search(value)) is not None:
            rows.append((int(found[2]), now))
    consumer.close()
    np.save(file, np.array(rows, dtype=np.int64).reshape(-1, 2))


def events_in_tiles(brokers: str, topic: str, row: bytes) -> int:
    """How many events the newest rows of all tiles hold together, in the end."""
    from confluent_kafka import Consumer, TopicPartition

    options = {"bootstrap.servers": brokers, "group.id": "bench", "enable.auto.commit": False, "log_level": 2}
    consumer = Consumer(options | {"auto.offset.reset": "earliest"})
    place = TopicPartition(topic, 0, 0)
    end = consumer.get_watermark_offsets(place)[1]
    consumer.assign([place])
    held: dict[int, int] = {}
    tile, at = re.compile(row), 0
    while at < end:
        for message in consumer.consume(5_000, 1.0):
            at, value = (message.offset() or 0) + 1, message.value()
            if value is not None and (found := tile.search(value)) is not None:
                identity = hash(message.key())
                held[identity] = max(held.get(identity, 0), int(found[1]))
    consumer.close()
    return sum(held.values())
