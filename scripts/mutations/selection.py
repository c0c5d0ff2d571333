"""Which tests may notice a mutation of a module: the nearest first, the whole cheap run next, tests with Spark last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CHEAP = "not spark and not kafka and not prove"
SPARK = "(spark or kafka) and not prove"
EVERYWHERE = ("tests",)
"""What is run when the nearest tests notice nothing."""
FAR = (
    "tests/test_archive_kills.py",
    "tests/test_demo.py",
    "tests/test_end_to_end.py",
    "tests/test_readme.py",
    "tests/test_docs.py",
    "tests/test_install.py",
    "tests/test_real_time_live.py",
)
"""Long tests of everything together, and tests of texts: they are not what should notice."""
ENGINES = ("tests/conformance/test_engines.py", "tests/spark/test_history.py", "tests/spark/test_archive.py")
"""Tests with Spark that go through most of the code that computes."""


@dataclass(frozen=True)
class Stage:
    """Tests that are run together: a marker expression, files or node ids, and the seconds they may take."""

    tests: tuple[str, ...]
    marked: str | None = None
    seconds: float = 300.0
    ignored: tuple[str, ...] = ()


def stages_for(root: Path, module: str) -> list[Stage]:
    """The stages for a module, given as a path from the root of the tree."""
    near = near_tests(root, module)
    withs = [test for test in near if _has_spark(root / test)]
    found = [Stage((module, *near), CHEAP), Stage(EVERYWHERE, CHEAP, 900.0, FAR)]
    return [*found, Stage(tuple(dict.fromkeys([*withs, *ENGINES])), SPARK, 600.0)]


def near_tests(root: Path, module: str) -> list[str]:
    """Test files of a module: the one of its name, those that import it, those of its folder."""
    parts = Path(module).with_suffix("").parts[2:]
    name, folder = parts[-1], root.joinpath("tests", *parts[:-1])
    own = [folder / f"test_{name}.py"]
    while not folder.is_dir():
        own.append(folder.parent / f"test_{folder.name}.py")
        folder = folder.parent
    among = sorted((root / "tests").rglob("test_*.py"))
    own += [file for file in among if file.name == f"test_{name}.py"]
    importing = [file for file in among if _imports(file.read_text("utf-8"), parts)]
    beside = sorted(folder.glob("test_*.py")) if folder != root / "tests" else []
    found = [file.relative_to(root).as_posix() for file in [*own, *importing, *beside] if file.is_file()]
    return [test for test in dict.fromkeys(found) if test not in FAR]


def _imports(text: str, parts: tuple[str, ...]) -> bool:
    dotted, package = ".".join(("headrace", *parts)), ".".join(("headrace", *parts[:-1]))
    plain = rf"^\s*(?:from|import) {re.escape(dotted)}\b"
    named = rf"^\s*from {re.escape(package)} import \(?[^)\n]*\b{re.escape(parts[-1])}\b"
    return bool(re.search(f"{plain}|{named}", text, re.MULTILINE))


def _has_spark(file: Path) -> bool:
    text = file.read_text("utf-8")
    return "mark.spark" in text or "mark.kafka" in text
