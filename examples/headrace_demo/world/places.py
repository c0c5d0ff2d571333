"""Where people pay: cities in many time zones, shops in each of them, and shops that are online.

Positions are whole ten-thousandths of a degree (about ten metres) and a city's hour is whole hours from UTC all year: a
demo has no daylight saving.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from headrace_demo.world.chance import Chance, Ints

DEGREE = 10_000
SHOPS = 80
"""How many shops a city has."""
OUTSKIRTS = 800
ONLINE = 800
"""How many shops are online."""

# Name, country, latitude, longitude, hours from UTC, how many of a thousand people live there.
_CITIES = (
    ("Berlin", "DE", 52.52, 13.40, 1, 90),
    ("Hamburg", "DE", 53.55, 9.99, 1, 50),
    ("Munich", "DE", 48.14, 11.58, 1, 50),
    ("Paris", "FR", 48.86, 2.35, 1, 80),
    ("Lyon", "FR", 45.76, 4.84, 1, 30),
    ("Warsaw", "PL", 52.23, 21.01, 1, 50),
    ("Krakow", "PL", 50.06, 19.94, 1, 25),
    ("Madrid", "ES", 40.42, -3.70, 1, 50),
    ("Palma", "ES", 39.57, 2.65, 1, 10),
    ("Rome", "IT", 41.90, 12.50, 1, 45),
    ("London", "GB", 51.51, -0.13, 0, 80),
    ("Lisbon", "PT", 38.72, -9.14, 0, 25),
    ("Istanbul", "TR", 41.01, 28.98, 3, 45),
    ("Dubai", "AE", 25.20, 55.27, 4, 15),
    ("Mumbai", "IN", 19.08, 72.88, 5, 50),
    ("Bangkok", "TH", 13.76, 100.50, 7, 25),
    ("Singapore", "SG", 1.35, 103.82, 8, 25),
    ("Tokyo", "JP", 35.68, 139.69, 9, 55),
    ("Sydney", "AU", -33.87, 151.21, 10, 25),
    ("Sao Paulo", "BR", -23.55, -46.63, -3, 50),
    ("New York", "US", 40.71, -74.01, -5, 65),
    ("Chicago", "US", 41.88, -87.63, -6, 30),
    ("Mexico City", "MX", 19.43, -99.13, -6, 25),
    ("Los Angeles", "US", 34.05, -118.24, -8, 45),
)

# Category, what a payment in it costs in hundredths of what its payer usually spends, how many of a hundred shops.
_IN_TOWN = (
    ("grocery", 90, 26),
    ("restaurant", 100, 22),
    ("transport", 20, 12),
    ("fuel", 170, 8),
    ("pharmacy", 60, 8),
    ("fashion", 220, 10),
    ("vending", 10, 8),
    ("electronics", 450, 6),
)
_ONLINE = (
    ("retail", 150, 40),
    ("digital", 15, 18),
    ("games", 35, 14),
    ("subscription", 25, 12),
    ("electronics", 450, 8),
    ("travel", 600, 8),
)
CATEGORIES = tuple(sorted({name for name, _, _ in _IN_TOWN + _ONLINE}))

COUNTRIES = tuple(country for _, country, *_ in _CITIES)
"""Of each city."""
LAT = np.array([round(lat * DEGREE) for _, _, lat, *_ in _CITIES], dtype=np.int64)
LON = np.array([round(lon * DEGREE) for *_, lon, _, _ in _CITIES], dtype=np.int64)
HOURS = np.array([hours for *_, hours, _ in _CITIES], dtype=np.int64)
PEOPLE = np.array([people for *_, people in _CITIES], dtype=np.int64)
CITIES = len(_CITIES)
FIRST_ONLINE = CITIES * SHOPS
"""Shops are numbered city by city, those online after all others."""


@dataclass(frozen=True)
class Shops:
    """Of every shop its category, as a place in `CATEGORIES`, what a payment there costs (see `_IN_TOWN`), and how far
    north and east of the middle of its city it is.
    """

    category: Ints
    cost: Ints
    north: Ints
    east: Ints

    def of(self, *names: str) -> Ints:
        """The online shops of some categories."""
        wanted = np.isin(self.category, [CATEGORIES.index(name) for name in names])
        wanted[:FIRST_ONLINE] = False
        return np.flatnonzero(wanted).astype(np.int64)


@lru_cache(maxsize=4)
def shops(seed: int) -> Shops:
    """Every shop of a world.

    >>> made = shops(7)
    >>> [CATEGORIES[number] for number in made.category[:3]]
    ['vending', 'transport', 'fashion']
    """
    chance = Chance(seed, "shops")
    category, cost = [], []
    for kinds, count in ((_IN_TOWN, FIRST_ONLINE), (_ONLINE, ONLINE)):
        chosen = chance.pick(np.array([share for _, _, share in kinds], dtype=np.int64), count)
        category.append(np.array([CATEGORIES.index(name) for name, _, _ in kinds], dtype=np.int64)[chosen])
        cost.append(np.array([cost for _, cost, _ in kinds], dtype=np.int64)[chosen])
    north, east = around(chance, FIRST_ONLINE + ONLINE), around(chance, FIRST_ONLINE + ONLINE)
    return Shops(np.concatenate(category), np.concatenate(cost), north, east)


def around(chance: Chance, count: int) -> Ints:
    """How far from the middle of a city somebody lives or a shop is, in ten-thousandths of a degree."""
    return chance.between(-OUTSKIRTS, OUTSKIRTS, count)


def far_from(chance: Chance, city: Ints) -> Ints:
    """For each city another one."""
    return (city + chance.between(1, CITIES - 1, len(city))) % CITIES


def flight_hours(here: Ints, there: Ints) -> Ints:
    """How long it takes from city to city: two hours, and one for every seven degrees.

    >>> flight_hours(np.array([0]), np.array([20])).tolist()
    [14]
    """
    hours: Ints = 2 + np.maximum(abs(LAT[here] - LAT[there]), abs(LON[here] - LON[there])) // (7 * DEGREE)
    return hours
