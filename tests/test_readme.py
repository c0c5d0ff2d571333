"""What the README and the docs show is run; and so is the code that runs it, on documents that lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import blocks, commands, run
from tests.verbs import unknown_words

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    "README.md",
    "docs/index.md",
    *sorted(
        path.relative_to(ROOT).as_posix()
        for folder in ("concepts", "guides")
        for path in (ROOT / "docs" / folder).glob("*.md")
    ),
]
LIVE = "docs/guides/five-minutes.md"
"""The document whose long part `make test` runs too: what a newcomer types first."""
LONG = [
    name
    for name in DOCUMENTS
    if (ROOT / name).is_file() and any(b.mark == "long" for b in blocks((ROOT / name).read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_shows_is_what_happens(document, tmp_path):
    run(ROOT / document, tmp_path, long=False)


@pytest.mark.spark
@pytest.mark.xdist_group("live")
@pytest.mark.parametrize(
    "document", [name if name == LIVE else pytest.param(name, marks=pytest.mark.prove) for name in LONG]
)
def test_what_a_document_shows_is_what_happens_in_its_long_parts_too(document, tmp_path):
    run(ROOT / document, tmp_path, long=True)


def test_one_document_with_a_long_part_is_run_every_time():
    assert LIVE in LONG


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_in_a_document_has_a_verb_and_options_that_exist(document):
    unknown = [
        f"{document}:{block.line}: {fault}"
        for block in blocks((ROOT / document).read_text(encoding="utf-8"))
        if block.language == "console"
        for command, output in commands(block.text)
        if "error:" not in output
        for fault in unknown_words(command)
    ]
    assert unknown == []


@pytest.mark.parametrize(
    ("command", "faults"),
    [
        ("headrace up --detach --port 0", []),
        ("headrace ups", ["headrace ups"]),
        ("headrace up --detached", ["headrace up --detached"]),
        ("headrace lake sql 'SELECT 1 --all' | sort -r", []),
        ("cat a && headrace lake sgl x", ["headrace lake sgl"]),
        ("until headrace get card_activity card=42 --jason | grep -q 3; do sleep 1; done", ["headrace get --jason"]),
        ("diff <(headrace plan --jso) b", ["headrace plan --jso"]),
        ("headrace --version", []),
    ],
)
def test_a_verb_or_an_option_that_does_not_exist_is_found(command, faults):
    assert list(unknown_words(command)) == faults


def test_the_readme_shows_code_before_line_30_and_runs_it(tmp_path):
    first = next(block for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if block.language)
    assert first.line < 30
    assert run(ROOT / "README.md", tmp_path, long=False) > 0


def written(folder: Path, text: str) -> Path:
    (folder / "page.md").write_text(text, encoding="utf-8")
    (folder / "session").mkdir()
    return folder / "page.md"


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1 + 1\n```\nthen\n```python\nx  # -> 2\nprint('a', x)  # -> a 2\n```",
        "```python\nprint('a')\nprint('b')\n```\n\n```text\na\nb\n```",
        "```python\nlist(\n    range(3)\n)  # -> [0, 1, 2]\n```",
        "```python\nlist(range(100))  # -> [0, 1, ...]\n```",
        "```console\n$ mkdir shop && cd shop\n$ basename $PWD\nshop\n```",
        "```console\n$ echo a \\\n    b\na b\n$ sh -c 'echo error: no; exit 2'\nerror: no\n```",
        "<!-- file: a/b.txt -->\n```text\nhello\n```\n```console\n$ cat a/b.txt\nhello\n```",
        "<!-- not run: it would not end -->\n```console\n$ sleep 1000000\n```",
        "<!-- long -->\n```console\n$ false\n```",
    ],
)
def test_a_document_that_tells_the_truth_passes(tmp_path, text):
    run(written(tmp_path, text), tmp_path / "session", long=False)


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 + 1  # -> 3\n```",
        "```python\nprint('a')  # -> b\n```",
        "```python\nprint('a')\n```\n```text\nb\n```",
        "```python\nprint('a')\n```\n```text\na\nb\n```",
        "```console\n$ echo a\nb\n```",
        "```console\n$ false\n```",
        "```console\n$ sh -c 'echo error: no'\nerror: no\n```",
        "<!-- not run -->\n```console\n$ true\n```",
    ],
)
def test_a_document_that_lies_fails(tmp_path, text):
    with pytest.raises(AssertionError):
        run(written(tmp_path, text), tmp_path / "session", long=True)


def test_an_error_in_a_document_has_the_line_of_the_document(tmp_path):
    page = written(tmp_path, "# Title\n\n```python\nx = 1\nx / 0\n```")
    with pytest.raises(ZeroDivisionError) as caught:
        run(page, tmp_path / "session", long=False)
    assert caught.traceback[-1].path == page
    assert caught.traceback[-1].lineno + 1 == 5
