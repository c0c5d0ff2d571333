"""What people do with their cards, and do honestly: ordinary payments, and some that look like fraud.

The look-alikes are what makes fraud hard to tell: trips abroad, cards that two people use in two countries at once,
phones that surface somewhere else (a VPN), sprees at a ticket machine or in a shopping street, and shops that charge
dozens of cards the same small sum within a minute. No field of a payment alone tells these from a theft.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.clock import HOUR, MINUTE, SECOND
from headrace.errors import DataError
from headrace.plural import show_count
from headrace_demo.world import places, visits
from headrace_demo.world.chance import Chance, Flags, Ints, spread
from headrace_demo.world.people import FROM_HOME, IN_TOWN, People, awake
from headrace_demo.world.visits import Span, Visits

SPREES, BILLED = 4.0, 1.5
"""Of a hundred payments: in sprees, in runs of bills."""
APART = 10 * MINUTE
"""Between two ordinary payments of a card; what comes faster is a spree."""
USUAL, ELSEWHERE, STAYED_HOME, DENSE = 75, 2, 40, 30
"""Of a hundred: payments at usual shops; online ones that surface elsewhere; payments of a family on a trip that are
made at home; sprees that are over within two minutes."""
PATIENCE = 60


def honest(chance: Chance, people: People, *, shops: places.Shops, span: Span, zero: int) -> Visits:
    """All honest payments of a span, about as many as it wants.

    Parameters
    ----------
    chance, people, shops
        What the world is made of.
    span
        When they happen, and how many there are.
    zero
        The moment that trips are counted from.
    """
    sprees, bills = (replace(span, payments=int(span.payments * share / 100)) for share in (SPREES, BILLED))
    several = visits.together(visits.enough(sprees, lambda some: _sprees(chance, people, shops, some, zero)))
    billed = visits.together(visits.enough(bills, lambda some: _bills(chance, people, shops, some)))
    busy = visits.together([several, visits.undisturbed(billed, several)])
    rest = replace(span, payments=span.payments - len(busy))
    return visits.together([busy, visits.undisturbed(_ordinary(chance, people, shops, rest, zero), busy)])


def _ordinary(chance: Chance, people: People, shops: places.Shops, span: Span, zero: int) -> Visits:
    card, at = _who_and_when(chance, people, span, zero)
    city, shop = _where(chance, people, card, at - zero)
    return _made(chance, people, shops, (at, card, shop, city), story=visits.ORDINARY)


def _who_and_when(chance: Chance, people: People, span: Span, zero: int) -> tuple[Ints, Ints]:
    """Cards and moments at which their holders are awake, on the ground, and have not just paid."""
    card, at = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for _ in range(PATIENCE):
        more = 2 * span.payments + 100
        card = np.concatenate([card, chance.pick(people.activity, more)])
        at = np.concatenate([at, span.start + chance.below(span.length, more)])
        up = np.ones(len(card), dtype=np.bool_)
        up[-more:] = chance.below(10_000, more) < awake(people, card[-more:], at[-more:])
        up &= ~_in_flight(people, card, at - zero)
        card, at = card[up], at[up]
        order = np.lexsort((at, card))
        card, at = card[order], at[order]
        apart = np.ones(len(card), dtype=np.bool_)
        apart[1:] = (card[1:] != card[:-1]) | (at[1:] - at[:-1] >= APART)
        card, at = card[apart], at[apart]
        if len(card) >= span.payments:
            chosen = chance.order(len(card))[: span.payments]
            return card[chosen], at[chosen]
    message = f"{show_count(len(people), 'card')} cannot make so many payments, one in {APART // MINUTE} minutes each."
    got = f"{show_count(span.payments, 'payment')} in {span.length / SECOND:,.0f} s"
    raise DataError("bad-argument", message, got=got, hint="Ask for fewer payments or for more cards.")


def _in_flight(people: People, card: Ints, at: Ints) -> Flags:
    took = places.flight_hours(people.city[card], people.trip_to[card]) * HOUR
    begin, end = people.trip_from[card], people.trip_until[card]
    return (end > begin) & (((at >= begin) & (at < begin + took)) | ((at >= end) & (at < end + took)))


def whereabouts(people: People, card: Ints, at: Ints) -> Ints:
    """In which city a card's holder is, at moments counted from the end of history."""
    away = (at >= people.trip_from[card]) & (at < people.trip_until[card])
    return np.where(away, people.trip_to[card], people.city[card])


def _where(chance: Chance, people: People, card: Ints, at: Ints) -> tuple[Ints, Ints]:
    """The city and the shop of ordinary payments."""
    count = len(card)
    there = whereabouts(people, card, at)
    city = np.where(people.family[card] & chance.happens(STAYED_HOME, count), people.city[card], there)
    online = chance.happens(people.online[card], count)
    column = np.where(online, IN_TOWN + chance.below(FROM_HOME, count), chance.below(IN_TOWN, count))
    any_shop = np.where(
        online,
        places.FIRST_ONLINE + chance.below(places.ONLINE, count),
        city * places.SHOPS + chance.below(places.SHOPS, count),
    )
    at_usual = chance.happens(USUAL, count) & (online | (city == people.city[card]))
    shop = np.where(at_usual, people.usual[card, column], any_shop)
    elsewhere = online & chance.happens(ELSEWHERE, count)
    return np.where(elsewhere, places.far_from(chance, city), city), shop


def _sprees(chance: Chance, people: People, shops: places.Shops, span: Span, zero: int) -> Visits:
    """Several payments within minutes: at one machine or one game, or from shop to shop."""
    size = visits.sizes(chance, span.payments, 3, 9)
    count = len(size)
    card = chance.pick(people.activity, count)
    dense = chance.happens(DENSE, count)
    length = np.where(dense, chance.between(20, 120, count), chance.between(120, 480, count)) * SECOND
    episode = np.repeat(np.arange(count), size)
    at = visits.moments(chance, span, episode, length)
    city = whereabouts(people, card[episode], at - zero)
    town = city * places.SHOPS + chance.below(places.SHOPS, len(episode))
    games = shops.of("games", "digital", "retail")
    online = games[chance.below(len(games), count)][episode]
    first = (np.cumsum(size) - size)[episode]
    one_shop = np.where(chance.happens(50, count)[episode], online, town[first])
    shop = np.where(dense[episode], one_shop, town)
    made = _made(chance, people, shops, (at, card[episode], shop, city), story=visits.SPREE)
    return visits.side_by_side(made, first)


def _bills(chance: Chance, people: People, shops: places.Shops, span: Span) -> Visits:
    """A shop that charges many cards the same small sum, one after the other."""
    size = visits.sizes(chance, span.payments, 8, 30)
    count = len(size)
    episode = np.repeat(np.arange(count), size)
    card = chance.pick(people.activity, len(episode))
    at = visits.moments(chance, span, episode, chance.between(20, 120, count) * SECOND)
    billing = shops.of("subscription", "digital")
    shop = billing[chance.below(len(billing), count)][episode]
    city = people.city[card]
    made = _made(chance, people, shops, (at, card, shop, city), story=visits.BILLS)
    made.cents[:] = (chance.between(0, 11, count) * 100 + 99)[episode]
    return made


def _made(
    chance: Chance, people: People, shops: places.Shops, chosen: tuple[Ints, Ints, Ints, Ints], *, story: int
) -> Visits:
    """Payments of which it is known when, by which card, at which shop and in which city."""
    at, card, shop, city = chosen
    count = len(at)
    lat, lon = visits.position(chance, people, shops, (card, shop, city))
    return Visits(
        at=at,
        card=card,
        shop=shop,
        cents=spread(chance, people.spend[card] * shops.cost[shop] // 100, 0.6, count),
        city=city,
        lat=lat,
        lon=lon,
        channel=visits.channels(chance, people, card, shop),
        story=np.full(count, story, dtype=np.int64),
    )
