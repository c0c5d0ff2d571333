"""The stream: history and live traffic of a world as records in the order in which they arrive.

**History** is days of payments at the pace of a small bank, less than one a second. **Live** is a minute or so in which
hundreds of payments a second come from the same people. It is dense because more cards are in use at once, as at a
larger bank, and because more episodes begin in a second; nobody pays faster than in history. In both, a card makes at
most one ordinary payment in ten minutes, is in one story at a time, and a spree or an attack lasts as many seconds.
Impossible travel follows payments of the hour before, which live finds at the end of history. So a model that has
learnt from history knows what it sees live. What does differ is how many payments a *shop* has in a minute: in ten
minutes of history that is one or none. Give a model shares of a shop's payments over a day or more, nothing shorter.

Some records are late (phones without a network: minutes to an hour), some come twice, some are broken, mistyped or
misdated. An episode that is longer than what is left of a short live span is cut off at its end.

Both can be moved: the same payments, said to happen so much later. A world that begins at ten in the morning is the
same at whatever time of day it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from headrace.clock import DAY, MILLISECOND, MINUTE, SECOND, show_time
from headrace.errors import DataError, shown
from headrace_demo.world import places, visits
from headrace_demo.world.chance import Chance, Ints
from headrace_demo.world.fraud import fraud, patient
from headrace_demo.world.habits import honest
from headrace_demo.world.people import people
from headrace_demo.world.visits import CHANNELS, FRAUDS, STORIES, Span, Visits

KINDS = ("payment", "late", "duplicate", "broken", "mistyped", "future")
READABLE = ("payment", "late")
"""The kinds of which every payment that can be read is exactly once; only these have labels and can be scored."""
DOUBLED, BROKEN, MISTYPED, FUTURE, LATE = 1.0, 0.3, 0.2, 0.1, 35
"""Of a hundred records; late are so many of a hundred payments by phones that deliver late."""
_PAYMENT, _LATE, _DUPLICATE, _BROKEN, _MISTYPED, _FUTURE = range(len(KINDS))


@dataclass(frozen=True)
class World:
    """What decides everything: the same world gives the same records.

    Parameters
    ----------
    seed
        Any whole number.
    start
        Where history ends and live may begin, in microseconds.
    cards
        How many there are. Live, at most as many are in use as have somebody awake: 120 payments a second for a
        minute need about 18,000.
    days, payments
        How long history is, and how many payments are in it.
    fraud
        Which share of payments is fraudulent.
    turned
        From when on thieves are patient, in microseconds; None if they never are.

    Examples
    --------
    >>> World(seed=7, start=0).cards
    20000
    """

    seed: int
    start: int
    cards: int = 20_000
    days: int = 10
    payments: int = 150_000
    fraud: float = 0.015
    turned: int | None = None

    def __post_init__(self) -> None:
        for name in ("cards", "days", "payments"):
            if getattr(self, name) < 1:
                raise DataError("bad-argument", f"A world's {name} are at least 1.", got=shown(getattr(self, name)))
        if not 0 <= self.fraud <= 0.2:
            message = "The share of fraud in a world is from 0 to 0.2."
            raise DataError("bad-argument", message, got=shown(self.fraud))


class Sent(NamedTuple):
    """A record and what is known of it; `event` is what was meant, also where `value` is broken."""

    sent_at: int
    event: dict[str, Any]
    value: bytes
    key: bytes
    is_fraud: bool
    kind: str
    story: str


def history(world: World, *, moved: int = 0) -> Iterator[Sent]:
    """The records of the days before a world's start, by arrival; said to be so many microseconds later.

    >>> few = list(history(World(seed=7, start=20_000 * DAY, cards=100, days=2, payments=300)))
    >>> few[0].value[:75]
    b'{"id":"66fc8d00-0","card":"card-00023","merchant":"m-2618","category":"elec'
    """
    yield from _sent(world, _past(world), "history", world.start - world.days * DAY, world.start, moved)


def live(world: World, start: int, *, seconds: float = 60, per_second: float = 200, moved: int = 0) -> Iterator[Sent]:
    """The records of a span after a world's history, by arrival.

    Parameters
    ----------
    world
        The world whose history came before.
    start
        When the span begins: at the world's start, or some minutes later.
    seconds, per_second
        How long it is, and how many payments there are in each of its seconds.
    moved
        How many microseconds later all of it is said to be.

    Examples
    --------
    >>> world = World(seed=7, start=20_000 * DAY, cards=500, days=2, payments=300)
    >>> len(list(live(world, world.start, seconds=10, per_second=5)))
    50
    """
    if seconds <= 0 or per_second <= 0:
        message = "Live traffic lasts longer than nothing and has payments."
        raise DataError("bad-argument", message, got=f"{seconds} s, {per_second} a second")
    span = Span(start, start + int(seconds * SECOND), int(seconds * per_second))
    yield from _sent(world, _drawn(world, span, "live", _past(world)), "live", span.start, span.end, moved)


@lru_cache(maxsize=2)
def _past(world: World) -> Visits:
    span = Span(world.start - world.days * DAY, world.start, world.payments)
    return _drawn(world, span, "history", None)


def _drawn(world: World, span: Span, name: str, before: Visits | None) -> Visits:
    """All payments of a span by time, given those before it."""
    who, shops = people(world.seed, world.cards, days=world.days), places.shops(world.seed)
    stolen = int(span.payments * world.fraud)
    rest = replace(span, payments=span.payments - stolen)
    usual = honest(Chance(world.seed, f"{name} honest"), who, shops=shops, span=rest, zero=world.start)
    known = usual if before is None else visits.together([_honest_only(before), usual])
    usual_ways, patiently = replace(span, payments=stolen).split(span.end if world.turned is None else world.turned)
    parts = []
    if usual_ways.length:
        parts.append(fraud(Chance(world.seed, f"{name} fraud"), who, shops=shops, span=usual_ways, before=known))
    if patiently.length:
        parts.append(patient(Chance(world.seed, f"{name} patient"), who, shops=shops, span=patiently))
    taken = visits.together(parts)
    everything = visits.together([visits.undisturbed(usual, taken), taken])
    return everything.at_places(np.argsort(everything.at, kind="stable"))


def _honest_only(before: Visits) -> Visits:
    return before.at_places(np.flatnonzero(~np.isin(before.story, FRAUDS)))


def _sent(world: World, drawn: Visits, name: str, start: int, end: int, moved: int) -> Iterator[Sent]:
    """The payments as records, with copies put where they arrive."""
    chance = Chance(world.seed, f"{name} delivery")
    kind, at = _delivered(chance, world, drawn)
    twice = np.flatnonzero((kind <= _LATE) & chance.happens(DOUBLED, len(drawn)))
    again = drawn.at[twice] + chance.between(SECOND, 20 * SECOND, len(twice))
    twice, again = twice[again < end], again[again < end]
    which = np.concatenate([np.arange(len(drawn)), twice])
    sent_at = np.concatenate([drawn.at, again])
    kinds = np.concatenate([kind, np.full(len(twice), _DUPLICATE)])
    order = np.argsort(sent_at, kind="stable")
    cut = chance.below(50, len(order)).tolist()
    rows, prefix = _rows(world, drawn, at + moved), f"{start // SECOND:x}"
    stories, stolen = drawn.story.tolist(), np.isin(drawn.story, FRAUDS).tolist()
    encode = msgspec.json.Encoder().encode
    for place, moment, of, broken in zip(
        which[order].tolist(), (sent_at[order] + moved).tolist(), kinds[order].tolist(), cut, strict=True
    ):
        event = _event(f"{prefix}-{place}", rows[place])
        value = encode(event if of != _MISTYPED else _mistyped(event, broken))
        if of == _BROKEN:
            value = value[: 5 + broken]
        yield Sent(moment, event, value, event["card"].encode(), stolen[place], KINDS[of], STORIES[stories[place]])


def _delivered(chance: Chance, world: World, drawn: Visits) -> tuple[Ints, Ints]:
    """What becomes of each payment on its way, and when it happened if it arrives at its time."""
    count = len(drawn)
    who = people(world.seed, world.cards, days=world.days)
    fate = chance.shares(count) * 100
    ordinary = (drawn.story == visits.ORDINARY) & (drawn.channel == visits.MOBILE)
    late = ordinary & who.bad_phone[drawn.card] & chance.happens(LATE, count)
    kind = np.where(late, _LATE, _PAYMENT)
    for bad, until in ((_FUTURE, BROKEN + MISTYPED + FUTURE), (_MISTYPED, BROKEN + MISTYPED), (_BROKEN, BROKEN)):
        kind = np.where(fate < until, bad, kind)
    delay = chance.between(20 * MILLISECOND, 400 * MILLISECOND, count)
    delay = np.where(kind == _LATE, chance.between(3 * MINUTE, 60 * MINUTE, count), delay)
    delay = np.where(kind == _FUTURE, -chance.between(5 * MINUTE, 60 * MINUTE, count), delay)
    return kind, drawn.at - delay


def _rows(world: World, drawn: Visits, at: Ints) -> list[tuple[int, ...]]:
    category = places.shops(world.seed).category[drawn.shop]
    columns = (drawn.card, drawn.shop, category, drawn.cents, drawn.city, drawn.lat, drawn.lon, drawn.channel, at)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _event(name: str, row: tuple[int, ...]) -> dict[str, Any]:
    """A payment as its JSON object. Ids are numbered by time, so that they say nothing of fraud."""
    card, shop, category, cents, city, lat, lon, channel, at = row
    return {
        "id": name,
        "card": f"card-{card:05}",
        "merchant": f"m-{shop:04}",
        "category": places.CATEGORIES[category],
        "amount": cents / 100,
        "country": places.COUNTRIES[city],
        "lat": lat / places.DEGREE,
        "lon": lon / places.DEGREE,
        "channel": CHANNELS[channel],
        "at": show_time(at),
    }


def _mistyped(event: dict[str, Any], number: int) -> dict[str, Any]:
    return {**event, "amount": "a lot"} if number % 2 else {**event, "at": "yesterday"}
