"""Every monoid keeps the laws: tiles may be cut anywhere and merged in any order."""

from __future__ import annotations

import copy
from itertools import chain
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.aggregate.cases import KINDS, MONOID_CASES, events_of, folded, monoids, same
from tests.budget import examples

every_kind = pytest.mark.parametrize("kind", KINDS)
some = examples(1 / 2)


@every_kind
@given(data=st.data())
@some
def test_merging_with_the_empty_state_changes_nothing(kind: str, data: Any) -> None:
    monoid, eaten = data.draw(monoids(kind))
    events = data.draw(events_of(eaten))
    state = folded(monoid, events)
    assert same(monoid, monoid.merge(state, monoid.empty), state, events)
    assert same(monoid, monoid.merge(monoid.empty, state), state, events)


@every_kind
@given(data=st.data())
@some
def test_merging_does_not_depend_on_brackets(kind: str, data: Any) -> None:
    monoid, eaten = data.draw(monoids(kind))
    parts = [data.draw(events_of(eaten, most=6)) for _ in range(3)]
    a, b, c = (folded(monoid, part) for part in parts)
    left, right = monoid.merge(monoid.merge(a, b), c), monoid.merge(a, monoid.merge(b, c))
    assert same(monoid, left, right, list(chain(*parts)))


@every_kind
@given(data=st.data())
@some
def test_merging_does_not_depend_on_order(kind: str, data: Any) -> None:
    monoid, eaten = data.draw(monoids(kind))
    parts = [data.draw(events_of(eaten, most=6)) for _ in range(2)]
    a, b = (folded(monoid, part) for part in parts)
    assert same(monoid, monoid.merge(a, b), monoid.merge(b, a), list(chain(*parts)))


@every_kind
@given(data=st.data())
@some
def test_folding_many_states_is_merging_them_one_by_one(kind: str, data: Any) -> None:
    monoid, eaten = data.draw(monoids(kind))
    events = data.draw(events_of(eaten))
    states = [monoid.lift(value, time, id) for time, id, value in events]
    assert same(monoid, monoid.fold(states), folded(monoid, events), events)


def test_a_null_leaves_the_state_empty() -> None:
    for monoid, _ in MONOID_CASES:
        assert monoid.lift(None, 5, "a") == monoid.empty


@every_kind
@given(data=st.data())
@some
def test_merging_changes_neither_of_its_arguments(kind: str, data: Any) -> None:
    monoid, eaten = data.draw(monoids(kind))
    a, b = (folded(monoid, data.draw(events_of(eaten, most=5))) for _ in range(2))
    before = copy.deepcopy((a, b))
    monoid.merge(a, b)
    assert repr((a, b)) == repr(before)


@every_kind
@given(data=st.data())
@some
def test_a_packed_state_comes_back_the_same_through_msgpack_and_json(kind: str, data: Any) -> None:
    monoid, eaten = data.draw(monoids(kind))
    state = folded(monoid, data.draw(events_of(eaten)))
    packed = monoid.pack(state)
    for codec in (msgspec.msgpack, msgspec.json):
        back = monoid.unpack(codec.decode(codec.encode(packed)))
        assert repr(back) == repr(state)


def test_an_equal_monoid_has_an_equal_form_that_json_can_carry() -> None:
    for monoid, _ in MONOID_CASES:
        again = copy.deepcopy(monoid)
        assert (again, hash(again), again.form) == (monoid, hash(monoid), monoid.form)
        assert msgspec.json.decode(msgspec.json.encode(monoid.form)) == monoid.form
        assert monoid.form["kind"] == monoid.kind


def test_different_monoids_have_different_forms() -> None:
    forms = {msgspec.json.encode(monoid.form) for monoid, _ in MONOID_CASES}
    assert len(forms) == len({monoid for monoid, _ in MONOID_CASES})
