"""`headrace doctor`: whether this machine has what Headrace needs, and how to get what it lacks."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from headrace import disk, machine
from headrace.cli import options
from headrace.cli.output import data, data_json, table
from headrace.errors import MachineError

OLDEST_PYTHON = (3, 11)
LEAST_MEMORY = 3 * 2**30
LEAST_DISK = 2 * 2**30

_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)\s*([^;]*)")
_CLAUSE = re.compile(r"(>=|==|<)\s*([0-9.]+?)(?:\.\*)?$")


@dataclass(frozen=True)
class Check:
    """One thing Headrace needs, what was found, and what to do when it is not enough."""

    name: str
    ok: bool
    found: str
    need: str
    hint: str | None = None


@click.command("doctor")
@options.as_json
def command(as_json: bool) -> None:
    """Say whether this machine has what Headrace needs."""
    checks = [_python(), _java(), _memory(), _disk(Path.cwd()), *_packages()]
    lacking = [check for check in checks if not check.ok]
    if as_json:
        data_json({"ok": not lacking, "checks": [asdict(check) for check in checks]})
    else:
        rows = [("ok" if check.ok else "missing", check.name, check.found, check.need) for check in checks]
        table(("", "what", "found", "needed"), rows)
        for check in lacking:
            data(f"\n{check.name}: {check.hint}")
    if lacking:
        names = ", ".join(check.name for check in lacking)
        raise MachineError("doctor-failed", f"This machine lacks: {names}.", hint=lacking[0].hint)


def _python() -> Check:
    hint = "Make the environment with a newer Python."
    return Check("Python", sys.version_info[:2] >= OLDEST_PYTHON, platform.python_version(), "3.11 or later", hint)


def _java() -> Check:
    need = f"{machine.OLDEST_JAVA} or later"
    try:
        java = machine.find_java()
    except MachineError as error:
        return Check("Java", False, error.got or "none", need, error.hint)
    return Check("Java", True, f"{java.version} ({java.origin})", need)


def _memory() -> Check:
    size, need = machine.memory_bytes(), machine.show_bytes(LEAST_MEMORY)
    if size is None:
        return Check("memory", True, "unknown", need)
    hint = "Spark's driver alone takes 2 GiB: use a larger machine or container."
    return Check("memory", size >= LEAST_MEMORY, machine.show_bytes(size), need, hint)


def _disk(folder: Path) -> Check:
    free = disk.free_bytes(folder)
    hint = "Free some space, or set `data` in headrace.toml to a folder on another disk."
    found = f"{machine.show_bytes(free)} free"
    return Check("disk", free >= LEAST_DISK, found, machine.show_bytes(LEAST_DISK), hint)


def _packages() -> Iterator[Check]:
    """Headrace's own requirements, as pip recorded them at installation."""
    from importlib.metadata import PackageNotFoundError, requires, version

    for requirement in requires("headrace") or ():
        match = _REQUIREMENT.match(requirement)
        if match is None or "extra ==" in requirement:
            continue
        name, need = match.group(1), match.group(2).strip()
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "none"
        hint = f"Run `pip install '{name}{need}'`."
        yield Check(name, found != "none" and satisfies(found, need), found, need or "any", hint)


def satisfies(version: str, need: str) -> bool:
    """Whether a version meets a requirement written with the clauses Headrace itself uses: >=, <, ==X.*.

    >>> satisfies("4.3.1", "==4.3.*"), satisfies("3.0.1", ">=2.2,<3"), satisfies("2026.6", "")
    (True, False, True)
    """
    have = _numbers(version)
    for clause in filter(None, need.split(",")):
        match = _CLAUSE.fullmatch(clause.strip())
        if match is None:
            return False
        sign, bound = match.group(1), _numbers(match.group(2))
        met = {">=": have >= bound, "<": have < bound, "==": have[: len(bound)] == bound}[sign]
        if not met:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
