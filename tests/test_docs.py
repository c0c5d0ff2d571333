"""Undocumented is broken: the reference says what the code says, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace import errors
from headrace.cli.main import VERBS
from headrace.config.config import SETTINGS
from scripts import reference

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if path.is_file()
)


@pytest.mark.parametrize("page", reference.pages())
def test_the_reference_says_what_the_code_says(page):
    written = (reference.FOLDER / page).read_text(encoding="utf-8")
    assert written == reference.pages()[page], "run `make docs`"


def test_every_error_code_setting_and_verb_is_in_the_reference():
    pages = reference.pages()
    assert [code for code in errors.CODES if f"| `{code}` |" not in pages["errors.md"]] == []
    assert [name for name in SETTINGS if f"| `{name}` |" not in pages["settings.md"]] == []
    assert [verb for verb in VERBS if f"\n## headrace {verb}\n" not in pages["cli.md"]] == []


def test_every_error_class_is_in_the_tree_at_the_top_of_its_module():
    classes = [kind.__name__ for kind in reference._classes(errors.HeadraceError)]
    assert [name for name in classes if name not in str(errors.__doc__)] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_link_leads_to_a_file(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_every_page_can_be_reached_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/") and page != "docs/index.md"]
    assert [page for page in pages if f"({page})" not in index] == []


def test_every_file_that_the_architecture_names_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / "src" / "headrace" / path).is_file()] == []
