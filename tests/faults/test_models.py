"""The registry of models after a crash: every version that is there can be scored with, and roles are whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.models import ModelRegistry
from headrace.testing import FakeClock
from tests.faults.image import CrashImages, at_each_point
from tests.models.models import add, rule

Step = Callable[[ModelRegistry], object]


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """Two versions, one after the other the champion, and the way back."""
    sources = tmp_path_factory.mktemp("sources")
    adding: Step = lambda kept: add(kept, rule(sources))  # noqa: E731 - a step among others
    return [
        adding,
        lambda kept: kept.promote("fraud", 1),
        adding,
        lambda kept: kept.promote("fraud", 2, "better"),
        lambda kept: kept.rollback("fraud"),
        lambda kept: kept.shadow("fraud", 2),
    ]


def kept(folder, faults=None):
    clock = FakeClock("2026-01-01T00:00:00Z")
    return ModelRegistry(folder, clock) if faults is None else ModelRegistry(folder, clock, faults)


def contents(registry):
    """The versions, each of which can be loaded, and the roles."""
    versions = registry.versions("fraud") if "fraud" in registry.models() else []
    found = [registry.load("fraud", version).manifest for version in versions]
    assert [each.version for each in found] == versions
    return found, registry.roles("fraud")


@pytest.fixture(scope="module")
def meant(steps, tmp_path_factory):
    registry = kept(tmp_path_factory.mktemp("meant") / "models")
    found = [contents(registry)]
    for step in steps:
        step(registry)
        found.append(contents(registry))
    return found


@pytest.fixture(scope="module")
def images(steps, tmp_path_factory):
    folder, done = tmp_path_factory.mktemp("models"), 0
    made = CrashImages(folder / "world", folder / "images", "models", known=lambda: done)
    registry = kept(folder / "world", made)
    for step in steps:
        step(registry)
        done += 1
    return made


@at_each_point("models")
def test_a_version_is_there_whole_or_not_at_all_and_roles_are_the_old_or_the_new_ones(images, steps, meant, name):
    for taken in images.of(name):
        registry, done = kept(taken.folder), taken.known
        there = done + (name in ("models.version.after", "models.roles.after"))
        assert contents(registry) == meant[there], taken
        for step in steps[there:]:
            step(registry)
        assert contents(registry) == meant[-1], taken
