"""How old values are, when they are served and in a training set."""

from __future__ import annotations

from headrace.asof.lake import PastEvents
from headrace.clock import HOUR, MINUTE, SECOND
from headrace.skew.freshness import Age, Ages, Profile, apart, warning
from tests.skew.world import World, cards, history
from tests.streams import BASE


def ages_of(world):
    return Ages(world.past())


def test_the_age_is_that_of_the_newest_event_that_was_known():
    world = World(history(late=[]))
    last = world.records[-1]
    happened = max(event.event_time for event in world.past().held[("a",)])
    found = ages_of(world).at(("a",), (world.now,))
    assert found == Age(world.now, world.now - happened, world.now - last.arrived_at)


def test_what_is_missing_does_not_count():
    world = World(history(late=[]))
    events = sorted(world.past().held[("a",)], key=lambda event: event.place)
    found = ages_of(world).at(("a",), (world.now,), events[-2:])
    assert found.arrived == world.now - events[-3].arrived_at


def test_a_late_event_is_new_by_arrival_and_old_by_event_time():
    world = World(history(late=[119]))
    found = ages_of(world).at(("a",), (world.now,))
    assert found.arrived < found.happened


def test_before_everything_there_is_no_age():
    assert ages_of(World()).at(("a",), (BASE,)) is None
    assert Ages(PastEvents(cards, [])).at(("nobody",), (BASE,)) is None


def test_a_profile_tells_how_it_went_over_time():
    profile = Profile()
    profile.ages.extend(Age(BASE + n * SECOND, n * SECOND, SECOND) for n in range(120))
    told = profile.as_json()
    assert told["count"] == 120
    assert told["since_it_happened_s"] == {"p50": 60.0, "p99": 118.0}
    assert len(told["over_time"]) == 12
    assert [part["since_it_happened_s"]["p50"] for part in told["over_time"]] == sorted(
        part["since_it_happened_s"]["p50"] for part in told["over_time"]
    )


def test_of_nothing_there_is_an_empty_profile():
    assert Profile().as_json()["over_time"] == []


def test_distributions_are_apart_by_their_greatest_difference():
    assert apart([1, 2, 3, 4], [3, 4, 5, 6]) == 0.5


def test_training_on_younger_values_than_are_served_is_warned_of():
    served = [Age(BASE, MINUTE + n, MINUTE) for n in range(200)]
    same = [Age(BASE, MINUTE + n, MINUTE) for n in range(100, 300)]
    fresh = [Age(BASE, SECOND + n, SECOND) for n in range(200)]
    assert warning("cards", served, fresh) is not None
    assert "60.0 s old" in (warning("cards", served, fresh) or "")
    assert warning("cards", served, [Age(BASE, HOUR, HOUR)] * 5) is None, "five rows say nothing"
    assert apart([a.happened for a in served], [a.happened for a in same]) == 0.5
