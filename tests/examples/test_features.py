"""What the flights example defines, on flights that were written by hand: no event counts before it was known."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import project
from headrace.clock import HOUR, MINUTE, micros
from headrace.log.record import Record
from headrace.meaning.reference import ReferenceResult
from headrace.testing import record

FLIGHTS = Path(__file__).parent.parent.parent / "examples" / "flights"
NOON = micros("2013-09-04T12:00:00Z")


@pytest.fixture(scope="module")
def flights():
    return project.load(FLIGHTS)


def landed(flights, number: int, at: int, known_at: int, delay: float) -> Record:
    return record(
        flights.streams[0],
        id=f"{number}-landed",
        kind="landed",
        tailnum="N1",
        carrier="UA",
        origin="EWR",
        dest="SFO",
        distance=2565.0,
        dep_delay=0.0,
        arr_delay=delay,
        at=at,
        known_at=known_at,
    )


def test_a_landing_counts_from_the_moment_at_which_it_was_known(flights):
    log = [landed(flights, 1, NOON, NOON + 3 * HOUR, 40.0), landed(flights, 2, NOON + HOUR, NOON + 4 * HOUR, 5.0)]
    outcome, (aircraft,) = (
        ReferenceResult(flights.plan(), log),
        [view for view in flights.views if view.name == "aircraft"],
    )
    seen = [outcome.values(aircraft, ("N1",), (NOON + hours * HOUR + MINUTE,)) for hours in (2, 3, 4)]
    assert [values["aircraft_landings_1d"] for values in seen] == [0, 1, 2]
    assert [values["aircraft_worst_1d"] for values in seen] == [None, 40.0, 40.0]
    assert [values["aircraft_last_delay"] for values in seen] == [None, 40.0, 5.0]


def test_its_model_is_given_every_view_every_dimension_and_what_comes_with_the_flight(flights):
    columns = set(flights.plan().model("late").features.columns)
    views = {"aircraft_last_delay", "airline_late_6h", "airport_late_6h", "route_late_7d", "departures_1h"}
    assert columns >= views | {"built", "wind_speed", "miles", "hour"}
