"""How many cases a property test tries is said in tests/budget.py and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
EXEMPT = {TESTS / "budget.py", TESTS / "draws.py"}
"""Where the numbers of the profiles stand, and what draws as many cases as its caller counted with them."""


def find_settings(text: str) -> Iterator[int]:
    """The lines of a module that bring settings of hypothesis, or say how many examples there are."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module="hypothesis", names=names) if any(each.name == "settings" for each in names):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="hypothesis"), attr="settings"):
                yield node.lineno
            case ast.keyword(arg="max_examples"):
                yield node.lineno


def test_no_test_says_by_itself_how_many_cases_it_tries():
    files = sorted(set(TESTS.rglob("*.py")) - EXEMPT)
    assert len(files) > 100
    found = [f"{file.relative_to(TESTS.parent)}:{line}" for file in files for line in find_settings(file.read_text())]
    assert found == [], "use @examples(share) of tests/budget.py"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from hypothesis import given, settings\n", [1]),
        ("import hypothesis\n\n@hypothesis.settings(deadline=None)\ndef test_a(): ...\n", [3]),
        ("@anything(max_examples=7)\ndef test_a(): ...\n", [1]),
        ("from hypothesis import HealthCheck, given\nfrom headrace.spark.session import settings\n", []),
        ("@examples(0.2)\n@given(integers())\ndef test_a(number): ...\n", []),
    ],
)
def test_settings_of_hypothesis_are_found_in_every_form(text, lines):
    assert list(find_settings(text)) == lines
