"""Payments before they are sent: columns of who pays what, where and when, and of what story each is a part.

`habits` and `fraud` make them, `stream` makes records of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from headrace.clock import MINUTE
from headrace_demo.world import places
from headrace_demo.world.chance import Chance, Ints
from headrace_demo.world.people import People

STORIES = ("ordinary", "spree", "bills", "velocity", "testing", "travel", "patient")
ORDINARY, SPREE, BILLS, VELOCITY, TESTING, TRAVEL, PATIENT = range(len(STORIES))
FRAUDS = (VELOCITY, TESTING, TRAVEL, PATIENT)
CHANNELS = ("pos", "online", "mobile")
POS, ONLINE, MOBILE = range(len(CHANNELS))
ROUNDS = 6
QUIET = 2 * MINUTE
"""How long before and after one story a card is in no other."""
ABOUT = 5
"""How exactly a position is known, in ten-thousandths of a degree."""


@dataclass(frozen=True)
class Span:
    """A time in which payments happen, and how many are wanted in it; times are microseconds, the end is not in it."""

    start: int
    end: int
    payments: int

    @property
    def length(self) -> int:
        """In microseconds."""
        return self.end - self.start

    def split(self, moment: int) -> tuple[Span, Span]:
        """What is before a moment and what is not, each with its share of the payments.

        >>> Span(0, 100, 10).split(70)
        (Span(start=0, end=70, payments=7), Span(start=70, end=100, payments=3))
        """
        middle = min(max(moment, self.start), self.end)
        before = self.payments * (middle - self.start) // self.length
        return Span(self.start, middle, before), Span(middle, self.end, self.payments - before)


@dataclass(frozen=True)
class Visits:
    """Columns of payments: when, by which card, at which shop, for how many cents, in which city and where exactly."""

    at: Ints
    card: Ints
    shop: Ints
    cents: Ints
    city: Ints
    lat: Ints
    lon: Ints
    channel: Ints
    story: Ints

    def __len__(self) -> int:
        return len(self.at)

    def at_places(self, chosen: Ints) -> Self:
        """The payments at some places of the columns, in that order."""
        return type(self)(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def within(self, span: Span) -> Self:
        """The payments that happen in a span."""
        return self.at_places(np.flatnonzero((self.at >= span.start) & (self.at < span.end)))


def together(parts: Sequence[Visits]) -> Visits:
    """All payments of several."""
    return Visits(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Visits)))


def enough(span: Span, make: Callable[[Span], Visits]) -> list[Visits]:
    """Episodes until about as many of their payments as are wanted happen in the span.

    Of a long span once is enough. In a short one many episodes are cut off at its end, so more of them begin.
    """
    parts: list[Visits] = []
    wanted = span.payments
    for _ in range(ROUNDS):
        parts.append(make(replace(span, payments=max(wanted, 0))).within(span))
        wanted -= len(parts[-1])
    return parts


def undisturbed(some: Visits, others: Visits) -> Visits:
    """Those of some payments whose card is not in another story at that time.

    Live, a card is as likely to pay within a minute as it is within hours of history: without this, people would go
    shopping while they are robbed far more often than a model has seen.
    """
    if not len(some) or not len(others):
        return some
    first = min(int(some.at.min()), int(others.at.min())) - QUIET
    width = max(int(some.at.max()), int(others.at.max())) - first + 2 * QUIET
    taken = np.sort(others.card * width + others.at - first)
    here = some.card * width + some.at - first
    following = np.searchsorted(taken, here - QUIET, side="right")
    alone = following == np.searchsorted(taken, here + QUIET, side="left")
    return some.at_places(np.flatnonzero(alone))


def side_by_side(made: Visits, first: Ints) -> Visits:
    """The payments of episodes, all made where the first of each was: in one street, in one building."""
    return replace(made, lat=made.lat[first], lon=made.lon[first])


def channels(chance: Chance, people: People, card: Ints, shop: Ints) -> Ints:
    """How each payment is made: online where the shop is, else by phone or at the till."""
    count = len(card)
    by_phone = people.phone[card] & chance.happens(65, count)
    in_town = np.where(by_phone, MOBILE, POS)
    return np.where(shop >= places.FIRST_ONLINE, ONLINE, in_town).astype(np.int64)


def position(chance: Chance, people: People, shops: places.Shops, chosen: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints]:
    """Where each payment of a card at a shop in a city is made: at the shop, or at home when the shop is online."""
    card, shop, city = chosen
    online = shop >= places.FIRST_ONLINE
    north = np.where(online, people.north[card], shops.north[shop]) + chance.between(-ABOUT, ABOUT, len(card))
    east = np.where(online, people.east[card], shops.east[shop]) + chance.between(-ABOUT, ABOUT, len(card))
    return places.LAT[city] + north, places.LON[city] + east


def moments(chance: Chance, span: Span, episode: Ints, length: Ints) -> Ints:
    """When the payments of episodes happen: anywhere within an episode's length.

    An episode begins early enough to end within the span, if there is time for all of it.
    """
    room = np.maximum(span.length - length, span.length // 4)
    begin = span.start + chance.below(room, len(length))
    return begin[episode] + chance.below(length[episode], len(episode))


def sizes(chance: Chance, wanted: int, least: int, most: int) -> Ints:
    """How many payments each episode has, so that all of them have about as many as are wanted.

    >>> sizes(Chance(7, "sizes"), 30, 4, 8).tolist()
    [4, 8, 6, 7, 8]
    """
    return chance.between(least, most, round(2 * wanted / (least + most)))
