"""The measures of the source tree: each counts what it says, and a value above its limit fails."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts.house import SOURCE, Module, measure, show

LIMITS = {
    name: [0, 0]
    for name in (
        "files",
        "lines",
        "largest_file",
        "long_functions_percent",
        "class_names_twice",
        "vague_names",
        "untyped_dicts_per_1000_lines",
        "small_files_with_one_importer",
        "long_sentences_percent",
    )
}


def make_module(name: str, text: str) -> Module:
    return Module(SOURCE / name, text.count("\n"), ast.parse(text))


def read_value(name: str, *modules: Module) -> float:
    (found,) = [each for each in measure(list(modules), frozenset({"told"})) if each.name == name]
    return found.value


SHORT = make_module("short.py", 'def answer() -> int:\n    """A number."""\n    return 42\n')


def test_a_long_body_is_counted_without_its_docstring():
    body = "\n".join(f"    x = {n}" for n in range(26))
    assert read_value("long_functions_percent", SHORT, make_module("a.py", f"def f():\n{body}\n")) == 50
    documented = 'def f():\n    """One.\n' + "\n" * 30 + '    """\n    x = 1\n'
    assert read_value("long_functions_percent", SHORT, make_module("a.py", documented)) == 0


def test_a_class_name_in_two_modules_is_counted_once_unless_it_is_private():
    pair = [make_module(f"{name}.py", "class Place: ...\nclass _Own: ...\n") for name in "ab"]
    assert read_value("class_names_twice", *pair, SHORT) == 1


@pytest.mark.parametrize(
    ("file", "text", "count"),
    [
        ("a.py", "def told(): ...\n", 1),
        ("told.py", "x = 1\n", 1),
        ("a.py", "class Told: ...\n", 1),
        ("a.py", "told = 1\n", 0),
    ],
)
def test_vague_names_of_modules_classes_and_functions_are_counted(file, text, count):
    assert read_value("vague_names", make_module(file, text), SHORT) == count


def test_untyped_mappings_are_counted_by_a_thousand_lines():
    text = "def f(x: dict[str, Any]) -> Mapping[str, Any]: ...\n" + "\n" * 996
    assert read_value("untyped_dicts_per_1000_lines", make_module("a.py", text), SHORT) == 2


def test_a_small_file_with_one_importer_is_counted():
    small, other = make_module("small.py", "x = 1\n"), make_module("other.py", "from headrace.small import x\n" * 41)
    assert read_value("small_files_with_one_importer", small, other, SHORT) == 1
    second = make_module("second.py", "from headrace import small\n" * 41)
    assert read_value("small_files_with_one_importer", small, other, second, SHORT) == 0


def test_a_sentence_of_more_than_35_words_is_long():
    sentence = " ".join(["word"] * 36)
    assert read_value("long_sentences_percent", make_module("a.py", f'"""{sentence}."""\n')) == 100
    assert read_value("long_sentences_percent", make_module("a.py", f'"""Short. {sentence}."""\n')) == 50


def test_a_value_above_its_limit_is_named(capsys):
    above = show(measure([SHORT], frozenset()), LIMITS | {"lines": [2, 2]}, [SHORT])
    assert above == ["files", "lines", "largest_file"]
    assert "lines" in capsys.readouterr().out


def test_the_words_that_name_nothing_are_in_the_repository():
    assert '"told"' in (Path(__file__).parents[2] / "scripts" / "house.toml").read_text("utf-8")
