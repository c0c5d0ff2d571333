"""The pytest plugin of `make prove`: modules in an order that the seed decides, and no new test once time is over."""

from __future__ import annotations

import random
import time
from itertools import groupby

import pytest

from tests.budget import run_seed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("proving").addoption("--shuffle", action="store_true", help="modules in an order of the seed")
    parser.getgroup("proving").addoption("--until", type=float, help="start no test after this time since the epoch")


def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip("time is over")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--shuffle"):
        # Not the order within a module: what it makes for its tests is still made once.
        modules = [list(chosen) for _, chosen in groupby(items, key=lambda item: item.path)]
        random.Random(run_seed()).shuffle(modules)
        items[:] = [item for chosen in modules for item in chosen]
