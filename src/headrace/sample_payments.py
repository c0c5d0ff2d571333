"""A generated card-payment stream: busy cards and quiet ones, late, doubled, broken and misdated records.

The same seed gives the same records everywhere. The demo and the benchmarks use it, and users may to try a project.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import NamedTuple

from headrace.clock import MINUTE, SECOND, show_time
from headrace.log.record import Record

COUNTRIES = ("DE", "FR", "PL", "US", "JP", "BR")
LATE, DOUBLED, BROKEN, INVALID, FUTURE = 0.02, 0.03, 0.005, 0.003, 0.002


class Payment(NamedTuple):
    """What is sent, by which card, and when."""

    sent_at: int
    card: str
    value: bytes

    @property
    def key(self) -> bytes:
        """The key of its record."""
        return self.card.encode()


def payments(count: int, *, seed: int, start: int, per_second: float, cards: int = 200) -> list[Payment]:
    """Payments in the order in which they are sent.

    Parameters
    ----------
    count
        How many payments there are; some are sent twice, so there are a few more records.
    seed
        Decides everything.
    start
        When the first one is sent, in microseconds.
    per_second
        How many are sent in a second.
    cards
        How many cards there are; the first ones are much busier than the last.

    Examples
    --------
    >>> few = payments(3, seed=7, start=0, per_second=1)
    >>> [payment.card for payment in few]
    ['card-006', 'card-000', 'card-049']
    """
    chance = random.Random(seed)
    return sorted(_make_payments(chance, count, start, per_second, cards))


def _make_payments(chance: random.Random, count: int, start: int, per_second: float, cards: int) -> Iterator[Payment]:
    for number in range(count):
        sent_at = start + int(number / per_second * SECOND)
        card = f"card-{int(cards * chance.random() ** 3):03}"
        value = _value(chance, number, card, sent_at - _delay(chance))
        yield Payment(sent_at, card, value)
        if chance.random() < DOUBLED:
            yield Payment(sent_at + chance.randrange(SECOND, 20 * SECOND), card, value)


def _delay(chance: random.Random) -> int:
    """How long before it was sent a payment happened; some are late, some come from a clock that runs ahead."""
    kind = chance.random()
    if kind < LATE:
        return chance.randrange(3 * MINUTE, 10 * MINUTE)
    if kind < LATE + FUTURE:
        return -chance.randrange(2 * MINUTE, 5 * MINUTE)
    return int(chance.expovariate(1 / (0.2 * SECOND)))


def _value(chance: random.Random, number: int, card: str, happened: int) -> bytes:
    amount = round(chance.lognormvariate(3, 1), 2)
    row = {
        "id": f"p{number}",
        "card": card,
        "amount": amount,
        "country": chance.choices(COUNTRIES, (8, 4, 3, 2, 1, 1))[0],
        "at": show_time(happened),
    }
    kind = chance.random()
    if kind < BROKEN:
        return json.dumps(row).encode()[: chance.randrange(5, 60)]
    if kind < BROKEN + INVALID:
        row["amount"] = "a lot"
    return json.dumps(row).encode()


def records(sent: list[Payment], topic: str = "payments", partitions: int = 2) -> list[Record]:
    """The payments as a log with some partitions would hold them.

    >>> records(payments(1, seed=7, start=0, per_second=1))[0].offset
    0
    """
    heads = [0] * partitions
    made = []
    for payment in sent:
        partition = sum(payment.key) % partitions
        made.append(Record(topic, partition, heads[partition], payment.sent_at, payment.key, payment.value))
        heads[partition] += 1
    return made
