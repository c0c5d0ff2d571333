"""What thieves do with other people's cards, in three kinds of episodes, each over within minutes.

A *velocity attack* empties one card: payments within 20 to 90 seconds at one to three shops. *Card testing* tries
stolen numbers: one online shop, a tiny sum on each of many cards, and larger sums on those that worked. *Impossible
travel* is a copy of a card: paid with in another city within an hour of a payment at home. Episodes are the same in
history and live; only how many begin in a second differs. What honest people do that looks like it is in `habits`.

*Patient* thieves are those of a world that turns: one payment of a card, in its holder's own city, of a sum the holder
would spend. Nothing of what a card or a shop has been doing lately tells it from an honest payment.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.clock import HOUR, MINUTE, SECOND
from headrace_demo.world import places, visits
from headrace_demo.world.chance import Chance, Ints, spread
from headrace_demo.world.people import People
from headrace_demo.world.visits import Span, Visits

MIX = {"velocity": 50, "testing": 25, "travel": 25}
"""Of a hundred fraudulent payments."""
LOCAL, PROXIED, WORKED = 50, 30, 50
"""Of a hundred: velocity attacks in the victim's own city; tests that seem to come from where the victim lives; tested
cards that are used for more."""
PATIENCE = 8


def fraud(chance: Chance, people: People, *, shops: places.Shops, span: Span, before: Visits) -> Visits:
    """All fraudulent payments of a span, about as many as it wants.

    Parameters
    ----------
    chance, people, shops
        What the world is made of.
    span
        When they happen, and how many there are.
    before
        Honest payments, those of the hour before the span included: impossible travel is measured from them.
    """
    some = {kind: replace(span, payments=span.payments * share // 100) for kind, share in MIX.items()}
    parts = visits.enough(some["velocity"], lambda span: _velocity(chance, people, shops, span))
    parts += visits.enough(some["testing"], lambda span: _testing(chance, people, shops, span))
    parts += visits.enough(some["travel"], lambda span: _travel(chance, people, shops, span, before))
    return visits.together(parts)


def patient(chance: Chance, people: People, *, shops: places.Shops, span: Span) -> Visits:
    """All fraudulent payments of a span in which thieves are patient."""
    count = span.payments
    victim = chance.pick(people.activity, count)
    at = span.start + chance.below(span.length, count)
    city = people.city[victim]
    shop = city * places.SHOPS + chance.below(places.SHOPS, count)
    cents = spread(chance, people.spend[victim], 0.5, count)
    return _stolen(chance, people, shops, (at, victim, shop, city, cents), story=visits.PATIENT)


def _velocity(chance: Chance, people: People, shops: places.Shops, span: Span) -> Visits:
    size = visits.sizes(chance, span.payments, 5, 14)
    count = len(size)
    episode = np.repeat(np.arange(count), size)
    victim = chance.pick(people.activity, count)
    at = visits.moments(chance, span, episode, chance.between(20, 90, count) * SECOND)
    home = people.city[victim]
    city = np.where(chance.happens(LOCAL, count), home, places.far_from(chance, home))
    goods = shops.of("retail", "games", "electronics", "digital")
    online = chance.happens(50, count)
    # Three shops to choose from for each episode; of some only the first is used.
    in_town = chance.below(places.SHOPS, 3 * count).reshape(count, 3) + city[:, None] * places.SHOPS
    choice = np.where(online[:, None], goods[chance.below(len(goods), 3 * count).reshape(count, 3)], in_town)
    shop = choice[episode, chance.below(chance.between(1, 3, count)[episode], len(episode))]
    cost = people.spend[victim][episode] * chance.between(80, 300, count)[episode] // 100
    cents = spread(chance, cost, 0.5, len(episode))
    made = _stolen(chance, people, shops, (at, victim[episode], shop, city[episode], cents), story=visits.VELOCITY)
    return visits.side_by_side(made, (np.cumsum(size) - size)[episode])


def _testing(chance: Chance, people: People, shops: places.Shops, span: Span) -> Visits:
    """Tiny sums first, then larger ones on the cards that worked: about half as many again."""
    size = visits.sizes(chance, span.payments * 100 // (100 + WORKED * 3 // 2), 8, 16)
    count = len(size)
    episode = np.repeat(np.arange(count), size)
    victim = chance.pick(people.activity, len(episode))
    at = visits.moments(chance, span, episode, chance.between(15, 45, count) * SECOND)
    anywhere = shops.of("digital", "games", "retail", "subscription")
    shop = anywhere[chance.below(len(anywhere), count)][episode]
    base = chance.below(places.CITIES, count)[episode]
    city = np.where(chance.happens(PROXIED, len(episode)), people.city[victim], base)
    tiny = chance.between(50, 900, len(episode))

    used = np.flatnonzero(chance.happens(WORKED, len(episode)))
    used = np.repeat(used, chance.between(1, 2, len(used)))
    goods = shops.of("retail", "electronics", "travel")
    later = at[used] + chance.between(4 * SECOND, 45 * SECOND, len(used))
    larger = spread(chance, people.spend[victim[used]] * chance.between(80, 400, len(used)) // 100, 0.5, len(used))
    chosen = (
        np.concatenate([at, later]),
        np.concatenate([victim, victim[used]]),
        np.concatenate([shop, goods[chance.below(len(goods), len(used))]]),
        np.concatenate([city, city[used]]),
        np.concatenate([tiny, larger]),
    )
    return _stolen(chance, people, shops, chosen, story=visits.TESTING)


def _travel(chance: Chance, people: People, shops: places.Shops, span: Span, before: Visits) -> Visits:
    """Payments in another city, two minutes to an hour after an honest one of the same card at home."""
    size = visits.sizes(chance, span.payments, 1, 2)
    begin, victim = _anchored(chance, span, before.at_places(_at_home_lately(people, span, before)), len(size))
    count = len(begin)
    episode = np.repeat(np.arange(count), size[:count])
    at = begin[episode] + chance.below(40 * SECOND, len(episode))
    city = places.far_from(chance, people.city[victim])[episode]
    goods = shops.of("retail", "electronics", "travel")
    in_town = city * places.SHOPS + chance.below(places.SHOPS, len(episode))
    online = chance.happens(40, count)[episode]
    shop = np.where(online, goods[chance.below(len(goods), len(episode))], in_town)
    cost = people.spend[victim][episode] * chance.between(60, 350, len(episode)) // 100
    cents = spread(chance, cost, 0.5, len(episode))
    return _stolen(chance, people, shops, (at, victim[episode], shop, city, cents), story=visits.TRAVEL)


def _at_home_lately(people: People, span: Span, before: Visits) -> Ints:
    """Which honest payments a theft of this span can follow."""
    near = (before.at >= span.start - HOUR) & (before.at < span.end - 2 * MINUTE)
    return np.flatnonzero(near & (before.city == people.city[before.card])).astype(np.int64)


def _anchored(chance: Chance, span: Span, seen: Visits, count: int) -> tuple[Ints, Ints]:
    """When thefts begin and of which card, each after a payment that was seen; fewer where too few can be followed.

    Most gaps that are drawn end outside a short span, so many are.
    """
    tries = PATIENCE * count * max(HOUR // span.length, 1) if len(seen) else 0
    followed = chance.below(len(seen), tries)
    at = seen.at[followed] + chance.between(2 * MINUTE, HOUR, tries)
    fits = np.flatnonzero((at >= span.start) & (at < span.end))[:count]
    return at[fits], seen.card[followed[fits]]


def _stolen(
    chance: Chance, people: People, shops: places.Shops, chosen: tuple[Ints, Ints, Ints, Ints, Ints], *, story: int
) -> Visits:
    at, card, shop, city, cents = chosen
    lat, lon = visits.position(chance, people, shops, (card, shop, city))
    return Visits(
        at=at,
        card=card,
        shop=shop,
        cents=cents,
        city=city,
        lat=lat,
        lon=lon,
        channel=visits.channels(chance, people, card, shop),
        story=np.full(len(at), story, dtype=np.int64),
    )
