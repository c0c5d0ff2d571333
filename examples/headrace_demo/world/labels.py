"""What turns out later: whether a payment was fraud, as the bank hears of it hours or days afterwards.

Models learn from labels; nothing here knows a score. A label's own time says from when on it could be learnt from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from headrace.clock import DAY, HOUR, micros
from headrace_demo.world.chance import Chance
from headrace_demo.world.stream import READABLE, Sent

REPORTED = (2 * HOUR, 4 * DAY)
"""When holders notice a theft, after it."""
SETTLED = (DAY, 5 * DAY)
"""When a payment that nobody complained about counts as honest."""


class Label(NamedTuple):
    """When it was known of which payment of which card whether it was fraud."""

    at: int
    payment: str
    card: str
    fraud: bool


def labels(sent: Iterable[Sent], *, seed: int) -> Iterator[Label]:
    """The labels of records, by their own time: one for every payment that can be read.

    >>> from headrace_demo.world.stream import World, history
    >>> world = World(seed=7, start=20_000 * DAY, cards=100, days=2, payments=300)
    >>> first = next(labels(history(world), seed=7))
    >>> first.payment, first.card, first.fraud
    ('66fc8d00-90', 'card-00053', True)
    """
    known = [each for each in sent if each.kind in READABLE]
    chance = Chance(seed, "labels")
    count = len(known)
    stolen = np.array([each.is_fraud for each in known], dtype=np.bool_)
    wait = np.where(stolen, chance.between(*REPORTED, count), chance.between(*SETTLED, count))
    at = np.array([micros(each.event["at"]) for each in known], dtype=np.int64) + wait
    for place in np.argsort(at, kind="stable").tolist():
        each = known[place]
        yield Label(int(at[place]), each.event["id"], each.event["card"], each.is_fraud)
