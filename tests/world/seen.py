"""Features of payments in plain Python, as a view by card and one by merchant would have them, up to some time ago.

A payment counts itself when nothing is held back. What was held back is the only difference between fresh and stale:
the payment's own amount and position are known either way.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from headrace.clock import DAY, HOUR, MINUTE, SECOND, WEEK, micros
from headrace_demo.world.stream import READABLE, Sent

NAMES = (
    "amount",
    "payments_10m",
    "spend_10m",
    "countries_1d",
    "seconds_since_last",
    "amount_vs_median",
    "km",
    "km_per_hour",
    "merchant_small_1d",
)
SMALL = 10


class Seen(NamedTuple):
    at: int
    event: dict[str, Any]
    is_fraud: bool
    story: str


def readable(sent: Iterable[Sent]) -> list[Seen]:
    """The payments that can be read, each once, in the order in which they happened."""
    read = (each for each in sent if each.kind in READABLE)
    made = [Seen(micros(each.event["at"]), each.event, each.is_fraud, each.story) for each in read]
    return sorted(made, key=lambda each: each.at)


def features(known: list[Seen], asked: list[Seen], held_back: int = 0) -> np.ndarray:
    """A row for each payment that is asked about, from those known up to so long before it. Both by time."""
    cards, merchants = _by("card", known), _by("merchant", known)
    return np.array([_row(each, cards, merchants, held_back) for each in asked], dtype=np.float64)


def truth(seen: list[Seen]) -> np.ndarray:
    return np.array([each.is_fraud for each in seen])


class _Past:
    """The payments of one card or merchant, by time."""

    def __init__(self) -> None:
        self.at: list[int] = []
        self.events: list[dict[str, Any]] = []


def _by(field: str, known: list[Seen]) -> dict[str, _Past]:
    found: dict[str, _Past] = defaultdict(_Past)
    for each in known:
        past = found[each.event[field]]
        past.at.append(each.at)
        past.events.append(each.event)
    return found


def _row(asked: Seen, cards: dict[str, _Past], merchants: dict[str, _Past], held_back: int) -> list[float]:
    t, event = asked.at, asked.event
    until = t - held_back
    past = cards[event["card"]]
    end = bisect_right(past.at, until)

    def since(size: int) -> list[dict[str, Any]]:
        return past.events[bisect_left(past.at, until - size) : end]

    lately = since(10 * MINUTE)
    amounts = sorted(each["amount"] for each in since(WEEK))
    before = next((n for n in range(end - 1, -1, -1) if past.events[n]["id"] != event["id"]), None)
    gap = math.nan if before is None else (t - past.at[before]) / SECOND
    far = math.nan if before is None else kilometres(past.events[before], event)
    shop = merchants[event["merchant"]]
    there = shop.events[bisect_left(shop.at, until - DAY) : bisect_right(shop.at, until)]
    return [
        event["amount"],
        len(lately),
        sum(each["amount"] for each in lately),
        len({each["country"] for each in since(DAY)}),
        gap,
        event["amount"] / amounts[len(amounts) // 2] if amounts else math.nan,
        far,
        far / (max(gap, 1) * SECOND / HOUR),
        sum(each["amount"] < SMALL for each in there) / len(there) if there else math.nan,
    ]


def kilometres(here: dict[str, Any], there: dict[str, Any]) -> float:
    """On the globe, by the haversine formula."""
    a, b = math.radians(here["lat"]), math.radians(there["lat"])
    east = math.radians(there["lon"] - here["lon"])
    chord = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(east / 2) ** 2
    return 12_742 * math.asin(math.sqrt(chord))
