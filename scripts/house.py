"""Measure the source tree: sizes, names and sentences, each held to a limit. `make lint` runs it.

A limit is in scripts/house.toml beside the value that is wanted in the end. A value above its limit fails. A value
below its limit is the new limit: write it down, so that the tree can only get better.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "headrace"
LIMITS = Path(__file__).with_name("house.toml")

BODY = 25
"""The lines of a function's body, without its docstring, from which on it is long."""
SMALL = 40
"""The lines of a file below which it is small."""
SENTENCE = 35
"""The words of a sentence from which on it is long."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A file of the source: its path, its lines, and its syntax tree."""

    path: Path
    lines: int
    tree: ast.Module

    @property
    def name(self) -> str:
        """The dotted name of the module below `headrace`."""
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@dataclass(frozen=True)
class Measure:
    """A number that is held to a limit, and the places that count towards it."""

    name: str
    value: float
    places: tuple[str, ...] = ()


def read_modules(source: Path = SOURCE) -> list[Module]:
    """Every module of the package, in the order of their paths."""
    texts = ((path, path.read_text("utf-8")) for path in sorted(source.rglob("*.py")))
    return [Module(path, text.count("\n"), ast.parse(text)) for path, text in texts]


def measure(modules: list[Module], vague: frozenset[str]) -> list[Measure]:
    """All measures, in the order in which they are shown."""
    lines = sum(module.lines for module in modules)
    functions = [(module, node) for module in modules for node in _functions(module.tree)]
    long = [f"{_place(module, node)} {node.name}" for module, node in functions if _body_lines(node) > BODY]
    untyped = sum(_count_untyped(module.tree) for module in modules)
    sentences = [sentence for module in modules for sentence in _sentences(module)]
    lengthy = [place for place, words in sentences if words > SENTENCE]
    return [
        Measure("files", len(modules)),
        Measure("lines", lines),
        Measure("largest_file", max(module.lines for module in modules)),
        Measure("long_functions_percent", _percent(len(long), len(functions)), tuple(long)),
        _count_doubled(modules),
        _count_vague(modules, vague),
        Measure("untyped_dicts_per_1000_lines", round(1000 * untyped / lines, 2)),
        _count_small(modules),
        Measure("long_sentences_percent", _percent(len(lengthy), len(sentences)), tuple(lengthy)),
    ]


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def _place(module: Module, node: ast.stmt | ast.expr) -> str:
    return f"{module.path.relative_to(ROOT)}:{node.lineno}"


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _body_lines(function: Function) -> int:
    """The lines of a body, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _count_untyped(tree: ast.AST) -> int:
    """How often a mapping from text to anything is written as a type."""
    found = (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    return sum(text in ("dict[str, Any]", "Mapping[str, Any]") for text in found)


def _count_doubled(modules: list[Module]) -> Measure:
    """Public classes whose name stands in several modules."""
    places = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(_place(module, node))
    doubled = {name: where for name, where in sorted(places.items()) if len(where) > 1}
    return Measure("class_names_twice", len(doubled), tuple(f"{k}: {', '.join(v)}" for k, v in doubled.items()))


def _count_vague(modules: list[Module], vague: frozenset[str]) -> Measure:
    """Modules, classes and public functions named by a word that says nothing."""
    places = [str(module.path.relative_to(ROOT)) for module in modules if module.path.stem in vague]
    named = ((module, node) for module in modules for node in ast.walk(module.tree))
    places += [
        f"{_place(module, node)} {node.name}"
        for module, node in named
        if isinstance(node, ast.ClassDef | Function) and node.name.lower().strip("_") in vague
    ]
    return Measure("vague_names", len(places), tuple(places))


def _count_small(modules: list[Module]) -> Measure:
    """Small files that only one other module imports."""
    importers: Counter[str] = Counter()
    names = {module.name for module in modules}
    for module in modules:
        importers.update({name for name in _imports(module.tree, names) if name != module.name})
    small = [m for m in modules if m.lines < SMALL and m.path.name != "__init__.py" and importers[m.name] == 1]
    return Measure("small_files_with_one_importer", len(small), tuple(str(m.path.relative_to(ROOT)) for m in small))


def _imports(tree: ast.AST, names: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "headrace":
            module = node.module.removeprefix("headrace").lstrip(".")
            yield module
            yield from (name for alias in node.names if (name := f"{module}.{alias.name}".lstrip(".")) in names)


def _sentences(module: Module) -> Iterator[tuple[str, int]]:
    """The place and the words of every sentence of the module's docstrings."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Module | ast.ClassDef | Function):
            continue
        text = ast.get_docstring(node) or ""
        where = "1" if isinstance(node, ast.Module) else str(node.lineno)
        for paragraph in re.split(r"\n\s*\n|\n(?=[A-Za-z_]+\n-{3,})", text):
            if paragraph.lstrip().startswith(">>>") or "──" in paragraph or "\n    " in paragraph:
                continue
            for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split())):
                if words := len(sentence.split()):
                    yield f"{module.path.relative_to(ROOT)}:{where}", words


def show(found: list[Measure], limits: dict[str, list[float]], modules: list[Module]) -> list[str]:
    """Print folders and measures; the names of the measures that are above their limits."""
    folders: dict[str, list[int]] = defaultdict(list)
    for module in modules:
        parts = module.path.relative_to(SOURCE).parts
        folders[parts[0] if len(parts) > 1 else "."].append(module.lines)
    for folder, sizes in sorted(folders.items()):
        _say(f"{folder:<14} {len(sizes):>4} files {sum(sizes):>7,} lines")
    above = []
    for each in found:
        limit, wanted = limits[each.name]
        _say(f"{each.name:<32} {each.value:>10,} limit {limit:>10,} wanted {wanted:>10,}")
        if each.value > limit:
            above.append(each.name)
        elif each.value < limit and limit > wanted:
            _say(f"  better than its limit: write {each.value} into scripts/house.toml")
    return above


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(arguments: list[str] | None = None) -> int:
    """Measure the tree; 1 when a measure is above its limit."""
    parser = argparse.ArgumentParser(prog="python -m scripts.house", description=__doc__)
    parser.add_argument("--places", metavar="MEASURE", help="the places that count towards a measure")
    asked = parser.parse_args(arguments)
    rules = tomllib.loads(LIMITS.read_text("utf-8"))
    modules = read_modules()
    found = measure(modules, frozenset(rules["vague"]))
    if asked.places:
        _say("\n".join(place for each in found if each.name == asked.places for place in each.places))
        return 0
    above = show(found, rules["limits"], modules)
    if above:
        _say(f"above the limit: {', '.join(above)} (see `python -m scripts.house --places MEASURE`)")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
