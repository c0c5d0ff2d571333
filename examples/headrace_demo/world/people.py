"""People with cards: where they live, where and how much they pay, when they are awake, and what their phones are like.

Columns over all cards, not objects: a world has tens of thousands of them. They hold habits only; `habits` and `fraud`
make payments of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from headrace.clock import DAY, HOUR
from headrace_demo.world import places
from headrace_demo.world.chance import Chance, Flags, Ints, spread

IN_TOWN, FROM_HOME = 5, 3
"""How many shops somebody usually goes to, in town and online."""
SPEND = 2_500
"""What the middle one of all people usually pays, in cents."""
BUSIEST = 6_000
FAMILY, ON_A_TRIP, PHONE, BAD_PHONE = 12, 25, 45, 12
"""Of a hundred: cards with two holders, cards that travel, cards in phones, phones that deliver late."""

# How many of a hundred are up to paying, by the hours since somebody got up: nobody sleeps at noon, few pay at night.
_DAY = np.array([35, 55, 60, 60, 70, 95, 90, 65, 60, 65, 80, 100, 100, 80, 60, 40, 20, 8, 4, 2, 1, 1, 2, 8])
_MONDAY = 3
"""1970 began on a Thursday."""


@dataclass(frozen=True)
class People:
    """A column for each habit; a card is a place in them.

    Parameters
    ----------
    city, north, east
        Where its holder lives: the city, and how far from the middle of it.
    spend
        What a payment of its holder usually is, in cents.
    activity
        How often it is used, as a weight; most are used little and a few very much.
    rises, weekend
        The local hour of getting up, and how many percent of a weekday's payments there are on a day of a weekend.
    online
        How many percent of its payments are online.
    phone, bad_phone, family
        Whether it is in a phone, in one that often has no network, and whether two people use it.
    usual
        The shops it usually pays at, those in town first.
    trip_to, trip_from, trip_until
        One trip, in microseconds from the moment at which history ends; one that ends before it begins is none.
    """

    city: Ints
    north: Ints
    east: Ints
    spend: Ints
    activity: Ints
    rises: Ints
    weekend: Ints
    online: Ints
    phone: Flags
    bad_phone: Flags
    family: Flags
    usual: Ints
    trip_to: Ints
    trip_from: Ints
    trip_until: Ints

    def __len__(self) -> int:
        return len(self.city)


@lru_cache(maxsize=4)
def people(seed: int, cards: int, *, days: int) -> People:
    """Everybody of a world.

    Parameters
    ----------
    seed, cards
        Who they are, and how many.
    days
        How far back history goes: trips are within it and two days beyond.

    Examples
    --------
    >>> made = people(7, 1_000, days=10)
    >>> len(made), places.COUNTRIES[made.city[0]], int(made.spend[0])
    (1000, 'DE', 4938)
    """
    chance = Chance(seed, "people")
    city = chance.pick(places.PEOPLE, cards)
    phone = chance.happens(PHONE, cards)
    begin = chance.between(-days * 24 - 72, 48, cards) * HOUR
    length = np.where(chance.happens(ON_A_TRIP, cards), chance.between(36, 150, cards), -100) * HOUR
    return People(
        city=city,
        north=places.around(chance, cards),
        east=places.around(chance, cards),
        spend=spread(chance, SPEND, 0.5, cards),
        activity=_activity(chance, cards),
        rises=chance.between(5, 9, cards),
        weekend=chance.between(50, 150, cards),
        online=chance.between(15, 55, cards),
        phone=phone,
        bad_phone=phone & chance.happens(BAD_PHONE, cards),
        family=chance.happens(FAMILY, cards),
        usual=_usual(chance, city),
        trip_to=places.far_from(chance, city),
        trip_from=begin,
        trip_until=begin + length,
    )


def _activity(chance: Chance, cards: int) -> Ints:
    """A heavy tail without a logarithm: one over a uniform share is Pareto; the square root makes it less extreme."""
    tail = 1 / np.sqrt(chance.shares(cards) + 1e-4)
    return np.minimum((tail * 100).astype(np.int64), BUSIEST)


def _usual(chance: Chance, city: Ints) -> Ints:
    cards = len(city)
    near = chance.below(places.SHOPS, cards * IN_TOWN).reshape(cards, IN_TOWN) + city[:, None] * places.SHOPS
    online = chance.below(places.ONLINE, cards * FROM_HOME).reshape(cards, FROM_HOME) + places.FIRST_ONLINE
    return np.concatenate([near, online], axis=1)


def awake(whole: People, card: Ints, at: Ints) -> Ints:
    """How many of ten thousand moments like this one see somebody pay, by the hour and the day where they live.

    >>> made = people(7, 1_000, days=10)
    >>> noon_and_night = np.array([12, 27]) * HOUR - places.HOURS[made.city[0]] * HOUR
    >>> awake(made, np.array([0, 0]), noon_and_night).tolist()
    [6333, 66]
    """
    local = at + places.HOURS[whole.city[card]] * HOUR
    day, hour = local // DAY, local % DAY // HOUR
    rate = _DAY[(hour - whole.rises[card]) % 24]
    week = np.where((day + _MONDAY) % 7 >= 5, whole.weekend[card], 100)
    result: Ints = rate * week * 2 // 3
    return result
