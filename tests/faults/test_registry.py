"""The registry of fault points is complete: each is in the code once, and each has a test that reaches it."""

from __future__ import annotations

import ast
import importlib
import re
import timeit
from collections import Counter
from pathlib import Path

import pytest

import headrace
from headrace.faults import NO_FAULTS, POINTS
from tests.faults import image

SOURCE, TESTS = Path(headrace.__file__).parent, Path(__file__).parent


def reached_in(file: Path) -> list[str]:
    """The names that a file's code reaches; a name that is not written out is refused."""
    calls = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
    found = []
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "reach":
            (name,) = call.args
            assert isinstance(name, ast.Constant), f"{file.name}:{call.lineno} reaches a point by a computed name"
            found.append(str(name.value))
    return found


def test_every_point_is_in_the_code_exactly_once_and_none_is_unknown():
    found = Counter(name for file in sorted(SOURCE.rglob("*.py")) for name in reached_in(file))
    assert found == Counter(POINTS.keys())


def test_every_point_has_a_test_that_recovers_from_its_image():
    for file in TESTS.glob("test_*.py"):
        importlib.import_module(f"tests.faults.{file.stem}")
    assert set(POINTS) == image.CLAIMED


def test_names_say_component_step_and_side_and_each_is_explained_in_one_line():
    for name, meaning in POINTS.items():
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+\.(before|after)", name), name
        assert re.fullmatch(r"[A-Z][^\n]{10,100}\.", meaning), name


def test_an_unknown_name_is_refused_at_once():
    with pytest.raises(ValueError, match=r"'late\.tiles\.afterwards' is no fault point"):
        NO_FAULTS.reach("late.tiles.afterwards")


def test_a_point_costs_less_than_ten_microseconds_when_nothing_is_armed():
    assert min(timeit.repeat(lambda: NO_FAULTS.reach("late.tiles.after"), number=1_000, repeat=5)) < 0.01
