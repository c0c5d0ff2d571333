"""The mutations that must always be caught, from `named.toml`.

Each entry names a file, the exact text before and after, and the tests that are expected to notice. The text must stand
in the file exactly once: an entry that no longer fits the code is an error, never a mutation that changes nothing.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.mutations.mutation import Mutation, MutationError, find_once

LIST = Path(__file__).with_name("named.toml")


@dataclass(frozen=True)
class EquivalentChange:
    """A change of a line that changes no behaviour, and why: that it survives is no finding."""

    file: str
    before: str
    after: str
    reason: str


def read_mutations(root: Path, listed: Path = LIST) -> list[Mutation]:
    """The named mutations of a tree, each at its place."""
    found = [_mutation(root, entry) for entry in _entries(listed, "mutation")]
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise MutationError(f"{listed.name}: two mutations have the name {name!r}")
    return found


def read_equivalents(listed: Path = LIST) -> list[EquivalentChange]:
    """The changes that are known to change no behaviour."""
    return [EquivalentChange(**entry) for entry in _entries(listed, "equivalent")]


def _entries(listed: Path, kind: str) -> list[dict[str, Any]]:
    return list(tomllib.loads(listed.read_text("utf-8")).get(kind, []))


def _mutation(root: Path, entry: dict[str, Any]) -> Mutation:
    name, file, before, after = (entry[key] for key in ("name", "file", "before", "after"))
    if before == after:
        raise MutationError(f"{name}: before and after are the same text")
    if not entry["tests"]:
        raise MutationError(f"{name}: it names no test")
    missing = [test for test in entry["tests"] if not (root / test.partition("::")[0]).exists()]
    if missing:
        raise MutationError(f"{name}: there is no {missing[0]}")
    span = find_once((root / file).read_text("utf-8"), before, f"{name}: {file}")
    return Mutation(name, file, span, after, tuple(entry["tests"]))
