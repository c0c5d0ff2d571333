"""The public names are pinned: adding or losing one is a decision, not an accident."""

from __future__ import annotations

import inspect

import pytest

import headrace
from headrace.errors import DefinitionError, HeadraceError

MADE = {"Dimension", "FeatureSet", "HeadraceError", "Label", "Model", "OnDemand", "Stream", "View"}
"""Classes whose values are made by functions."""


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


def test_a_misspelt_name_is_an_attribute_error_that_suggests_the_right_one():
    with pytest.raises(AttributeError) as caught:
        headrace.cuont  # noqa: B018
    assert isinstance(caught.value, HeadraceError)
    assert caught.value.hint == "Did you mean 'count'?"


def test_importing_a_misspelt_name_suggests_the_right_one():
    with pytest.raises(ImportError) as caught:
        from headrace import cuont  # noqa: F401
    assert isinstance(caught.value, HeadraceError)
    assert caught.value.hint == "Did you mean 'count'?"


def test_a_name_that_is_not_there_can_be_asked_about():
    assert not hasattr(headrace, "cuont")


def test_dir_lists_the_public_names_and_only_those():
    assert dir(headrace) == sorted(headrace.__all__)


@pytest.mark.parametrize("name", [each for each in headrace.__all__ if each not in MADE])
def test_a_public_function_refuses_an_unknown_argument_in_a_sentence(name):
    with pytest.raises(DefinitionError) as caught:
        getattr(headrace, name)(nonsense=1)
    assert caught.value.message == f"hr.{name} has no argument 'nonsense'."
    assert caught.value.hint
    assert caught.value.where.startswith("tests/test_public_surface.py:")
