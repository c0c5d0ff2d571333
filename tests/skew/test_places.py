"""Records that arrived together: what an audit takes for known is what stands before a place, and no more."""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from headrace.clock import SECOND
from headrace.skew.trace import Counting
from headrace.testing import record
from tests.skew.world import World, cards, history, payments


def two_at_once():
    """A world whose last two records arrived at one moment; the place of the first of them."""
    before = history(late=())
    at, number = before[-1].arrived_at + SECOND, len(before)
    told = {"card": "a", "amount": 5.0, "country": "DE", "at": at - 1, "arrived_at": at}
    last = [replace(record(payments, id=f"last{n}", **told), offset=number + n) for n in range(2)]
    return World([*before, *last]), (at, 0, number)


def test_an_event_counts_behind_its_own_place_and_not_at_it():
    world, place = two_at_once()
    (event,) = (each for each in world.outcome.events(cards, ("a",)) if each.place == place)
    counting = Counting(cards, payments, event)
    assert [counting.at(("a",), (*place[:2], place[2] + more)) for more in (0, 1)] == [False, True]


def test_a_prediction_without_its_own_event_lacks_that_one_and_not_the_next_that_arrived_with_it():
    world, (at, partition, offset) = two_at_once()
    served = world.kept(world.read(world.rows(at), world.said(at), t=at), world.said(at))
    found = world.wrong(dataclasses.replace(served, moment=(at, partition, offset + 1)))
    assert [event.event_id for event in found.evidence.events] == ["last0"]
