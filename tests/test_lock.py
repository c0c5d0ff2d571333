"""The lock file pins what pyproject.toml asks for, with hashes and without addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from headrace.cli.doctor import satisfies

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINNED = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", LOCK, re.MULTILINE))


def asked() -> dict[str, str]:
    """Every direct requirement of the package and of its development, with its bounds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    written = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    pairs = [re.fullmatch(r"([A-Za-z0-9._-]+?)((?:[<>=].*)?)", requirement) for requirement in written]
    return {match.group(1).lower(): match.group(2) for match in pairs if match}


def test_everything_asked_for_is_pinned_within_its_bounds():
    wrong = {name: PINNED.get(name) for name, need in asked().items() if not satisfies(PINNED.get(name, ""), need)}
    assert {name: PINNED.get(name) for name in asked() if name not in PINNED} == {}, "run `make lock`"
    assert wrong == {}, "run `make lock`"


def test_every_pin_has_hashes():
    pins = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert [pin.split()[0] for pin in pins if "--hash=sha256:" not in pin] == []


def test_no_address_is_in_the_lock_file():
    assert [line for line in LOCK.splitlines() if "://" in line or line.startswith("-")] == []


def test_the_extra_for_a_users_tests_brings_the_pytest_that_the_templates_tests_ran_on():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (requirement,) = extras["test"]
    assert requirement.startswith("pytest")
    assert satisfies(PINNED["pytest"], requirement.removeprefix("pytest"))
