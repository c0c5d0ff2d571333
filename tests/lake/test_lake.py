"""Values at places of the log: what stands before a record counts, and the record itself does not."""

from __future__ import annotations

import headrace as hr
from headrace.asof.lake import PastEvents
from headrace.clock import SECOND
from headrace.meaning.event import Event
from tests.streams import BASE, payments

VIEW = hr.view("cards", payments, by="card", features={"n": hr.count(over="10m")})


def test_of_records_that_arrived_together_those_before_a_place_count():
    places = [(BASE, 0, 0), (BASE, 0, 1), (BASE, 0, 2), (BASE, 1, 0)]
    row = {"id": "p", "card": "a", "amount": 1.0, "cents": 1, "country": "DE", "at": BASE - SECOND}
    past = PastEvents(VIEW, [(Event(row, BASE - SECOND, f"p{n}", place), False) for n, place in enumerate(places)])
    assert past.values([(("a",), place) for place in places]) == {"n": [0, 1, 2, 3]}
    assert past.values([(("a",), (BASE,)), (("a",), (BASE + 1,))]) == {"n": [0, 4]}
