"""A plugin for pytest: the package under test is the one of the copy that was broken, or nothing is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "MUTATED_SOURCE"
"""The environment variable with the folder that `headrace` must come from; no setting of Headrace's own."""


def pytest_configure() -> None:
    """Refuse to run the tests of another tree's package: they would say nothing about the mutation."""
    import headrace

    found, wanted = Path(headrace.__file__).resolve(), Path(os.environ[VARIABLE]).resolve()
    if not found.is_relative_to(wanted):
        raise pytest.UsageError(f"headrace was imported from {found}, not from {wanted}")
