"""One line of the account: a test, or a fixture that several tests share, and what it used."""

from __future__ import annotations

from dataclasses import dataclass

FIXTURE = " (fixture)"
"""How the name of a fixture ends."""
SHARED = "fixtures"
"""The folder of the fixtures that all tests share."""


@dataclass(frozen=True)
class Expense:
    """`seconds` are those of set-up and call, which are limited; `cpu` are those of the whole, teardown included."""

    name: str
    folder: str
    seconds: float
    cpu: float
    outcome: str = "passed"
    is_prove: bool = False

    @property
    def is_fixture(self) -> bool:
        """Whether it is a fixture that several tests share, and no test."""
        return self.name.endswith(FIXTURE)


def folder_of(name: str) -> str:
    """The folder of tests/ that a test or a fixture stands in.

    >>> [folder_of(name) for name in ("tests/store/test_lmdb.py::test_a", "tests/test_docs.py::test_b")]
    ['store', 'tests']
    >>> [folder_of(name) for name in ("src/headrace/clock.py::headrace.clock", "test_here.py::test_c")]
    ['src', '.']
    """
    parts = name.partition("::")[0].split("/")
    if parts[0] == "tests" and len(parts) > 2:
        return parts[1]
    return parts[0] if len(parts) > 1 else "."


def fixture_name(place: str, name: str, param: str | None) -> tuple[str, str]:
    """The name and the folder under which a fixture is booked; `place` is the node below which it can be used.

    >>> fixture_name("tests", "spark", None)
    ('tests::spark (fixture)', 'fixtures')
    >>> fixture_name("tests/conformance", "result", "batch")
    ('tests/conformance::result[batch] (fixture)', 'conformance')
    """
    label = f"{place}::{name}" + (f"[{param}]" if param is not None else "") + FIXTURE
    if place in ("", "tests"):
        return label, SHARED
    return label, folder_of(place if place.endswith(".py") or "::" in place else f"{place}/conftest.py")
