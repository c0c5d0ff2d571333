"""The public names are pinned: adding or losing one is a decision, not an accident."""

from __future__ import annotations

import inspect

import pytest

import headrace


def test_the_public_names_are_the_ones_agreed_on(golden):
    golden("public_names", "\n".join(sorted(headrace.__all__)))


@pytest.mark.parametrize("name", headrace.__all__)
def test_a_public_name_leads_to_something_documented(name):
    thing = getattr(headrace, name)
    own = inspect.getdoc(thing) or ""
    assert own.splitlines()[0].endswith(".")


def test_no_public_name_is_forgotten():
    public = {
        name
        for name, value in vars(headrace).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("headrace.")
    }
    assert public - set(headrace.__all__) == set()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        headrace.nonsense  # noqa: B018
