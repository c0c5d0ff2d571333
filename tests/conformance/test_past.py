"""Values of a past moment, read from the lake, of many keys or of one, are the reference's of that moment."""

from __future__ import annotations

import pytest

from headrace.asof.lake import PastEvents, values_at
from headrace.clock import DAY, HOUR
from headrace.errors import DataError
from headrace.lake.maintenance import forget
from headrace.meaning.equality import differences
from tests.conformance.compare import Meaning
from tests.conformance.scenarios import SCENARIOS
from tests.conformance.world import embedded_world

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return embedded_world(list(SCENARIOS.values()), tmp_path_factory.mktemp("past"))


@pytest.fixture(scope="module")
def lakes(world, spark):
    *_, last = world.archived(spark)
    return last


def moments(outcome, view, key):
    """At and just after the arrivals of some of a key's events, some time later, and with the event itself."""
    events = outcome.events(view, key)
    for at in {0, len(events) // 2, len(events) - 1}:
        arrived, partition, offset = events[at].place
        yield arrived, partition, offset + 1
        for step in (0, 1, HOUR):
            yield (arrived + step,)


def views(world):
    return {planned.view.name: planned.view for planned in world.plan.features}.values()


def test_every_value_of_every_view_is_what_was_known_at_the_moment(world, lakes):
    outcome, compared, wrong = Meaning(world).outcome, 0, []
    for view in views(world):
        asked = [(key, moment) for key in outcome.keys(view) for moment in dict.fromkeys(moments(outcome, view, key))]
        past = PastEvents.read(lakes[view.stream.name].silver, view, [moment[0] for _, moment in asked])
        found = past.values(asked)
        for at, (key, moment) in enumerate(asked):
            wrong += differences(outcome, view, key, moment, {name: values[at] for name, values in found.items()})
        compared += len(asked)
    assert compared > 500
    assert wrong == []


def test_of_a_single_key_and_moment_it_is_the_same(world, lakes):
    outcome, known = Meaning(world).outcome, 0
    for view in views(world):
        silver = lakes[view.stream.name].silver
        for key in outcome.keys(view)[::9]:
            *_, (t,) = moments(outcome, view, key)
            found, there = values_at(silver, view, key, t)
            known += there
            assert differences(outcome, view, key, (t,), found) == []
    assert known > 20


def test_nothing_that_is_asked_for_has_no_values(world, lakes):
    view = world.plan.features[0].view
    found = PastEvents.read(lakes[view.stream.name].silver, view, []).values([])
    assert found == {feature.name: [] for feature in view.features}


def test_a_key_that_nobody_knew_has_the_values_of_nothing(world, lakes):
    view = world.plan.features[0].view
    t = world.clock.now()
    key = tuple("nobody" for _ in view.key)
    found, there = values_at(lakes[view.stream.name].silver, view, key, t)
    assert (found, there) == (Meaning(world).outcome.values(view, key, (t,)), False)


def test_what_was_forgotten_is_not_answered_from_what_is_left(world, lakes):
    view = world.plan.features[0].view
    silver, outcome = lakes[view.stream.name].silver, Meaning(world).outcome
    key = outcome.keys(view)[0]
    t = outcome.events(view, key)[-1].arrived_at
    forget(silver, t + DAY)
    with pytest.raises(DataError) as refused:
        values_at(silver, view, key, t)
    assert refused.value.code == "lake-forgotten"
