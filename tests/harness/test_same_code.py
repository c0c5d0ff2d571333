"""scripts.same_code: what moved or was renamed on purpose passes, and every other change is found."""

from __future__ import annotations

import subprocess

import pytest

from scripts.same_code.__main__ import compare_code, main
from scripts.same_code.table import Table

TILE = '''
"""Tiles."""

from __future__ import annotations

import json
from typing import Any

from app.store.rows import Row, width as measure

GRAIN = 10


class Tile(Row):
    """A tile."""

    __slots__ = ("start",)

    def end(self, grain: int = GRAIN) -> int:
        """Where it ends."""
        total = self.start + grain
        for step in range(measure(self)):
            total += step
        return total


def load(text: str) -> Any:
    found = [json.loads(line) for line in text.splitlines()]
    return found if found else None
'''
ROWS = "class Row:\n    start = 0\n\n\ndef width(row):\n    return 1\n"
USER = """
import app.store
from app import tiles
from app.tiles import Tile

COMMAND = ["-m", "app.tiles", "src/app/store/rows.py", ".app/store"]


def make(patched):
    patched.setattr("app.tiles.GRAIN", 20)
    patched.setattr(tiles, "GRAIN", 20)
    return Tile().end(grain=tiles.GRAIN), app.store.rows.width
"""
OLD = {"src/app/__init__.py": "", "src/app/tiles.py": TILE, "src/app/store/rows.py": ROWS, "tests/test_app.py": USER}


def find(new=None, *, modules=None, names=None, **changed):
    """The differences from OLD to files like it; `changed` are pairs of texts to replace in one of them."""
    files = dict(OLD if new is None else new)
    for short, (old, text) in changed.items():
        (path,) = [path for path in files if path.endswith(f"{short}.py")]
        assert old in files[path], old
        files[path] = files[path].replace(old, text)
    return compare_code(OLD, files, Table(modules or {}, names or {}))[1]


def test_the_same_code_has_no_difference():
    assert compare_code(OLD, OLD, Table({}, {})) == (4, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.start + grain", "self.start - grain"),
        ("total += step", "total -= step"),
        ("GRAIN = 10", "GRAIN = 11"),
        ("GRAIN = 10", "GRAIN = 10.0"),
        ("GRAIN = 10", "GRAIN = True"),
        ("if found else", "if not found else"),
        ("range(measure(self))", "range(1, measure(self))"),
        ("        return total", "        return step"),
        ("        return total", "        del step\n        return total"),
        ("        return total", ""),
        ("def end(self, grain: int", "def end(self, width: int"),
        ("grain: int = GRAIN", "*, grain: int = GRAIN"),
        ("grain: int = GRAIN", "grain: int"),
        ("    def end", "    @property\n    def end"),
        ("class Tile(Row)", "class Tile"),
        ("class Tile(Row)", "class Window(Row)"),
        ("(\"start\",)", "(\"begin\",)"),
        ("import json", "import pickle as json"),
        ("import json\n", ""),
        ("Row, width as measure", "Row, Row as measure"),
        ("self.start + grain", "self.begin + grain"),
        ("GRAIN = 10", "STEP = 10"),
    ],
)  # fmt: skip
def test_a_change_of_code_is_found(old, new):
    assert find(tiles=(old, new))


def test_a_difference_names_both_places():
    (found,) = find(tiles=('"""Tiles."""\n', '"""Tiles, and more\nof them."""\n'), rows=("return 1", "return 2"))
    assert found == "src/app/store/rows.py:6 -> src/app/store/rows.py:6: 1 has become 2"


def test_an_inconsistent_local_renaming_is_found():
    first = "total = self.start + grain", "end = self.start + grain"
    assert find(tiles=first)
    merged = TILE.replace("total", "step")
    assert find(OLD | {"src/app/tiles.py": merged})


def test_a_dropped_file_and_one_from_nowhere_are_found():
    new = {path: text for path, text in OLD.items() if not path.endswith("rows.py")} | {"bench/more.py": "MORE = 1\n"}
    found = find(new)
    assert "src/app/store/rows.py -> nothing: there is no module app.store.rows" in found
    assert "nothing -> bench/more.py: it comes from nowhere" in found


def test_a_file_without_code_may_come_and_go():
    new = {path: text for path, text in OLD.items() if path != "src/app/__init__.py"}
    assert find(new | {"src/app/store/__init__.py": '"""Rows."""\n\nfrom __future__ import annotations\n'}) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Where it ends."""', '"""The end of a tile."""'),
        ('        """Where it ends."""\n', ""),
        ("import json\nfrom typing import Any\n", "from typing import Any\nimport json\n"),
        ("import Row, width as measure", "import width as measure\nfrom app.store.rows import Row"),
        ("found = [json.loads(line) for line in", "found = [json.loads(row) for row in"),
    ],
)
def test_docstrings_imports_in_another_order_and_local_names_are_free(old, new):
    assert find(tiles=(old, new)) == []


def test_a_local_name_may_change_everywhere_in_its_function():
    assert find(OLD | {"src/app/tiles.py": TILE.replace("total", "end")}) == []
    assert find(OLD | {"src/app/tiles.py": TILE.replace("measure", "width").replace("width as width", "width")}) == []


MOVED = {
    path.replace("app/tiles", "app/windows/tile").replace("app/store", "app/kept"): text.replace(
        "app.tiles", "app.windows.tile"
    )
    .replace("from app import tiles", "from app.windows import tile")
    .replace("(tiles,", "(tile,")
    .replace("tiles.GRAIN", "tile.GRAIN")
    .replace("app.store", "app.kept")
    .replace("src/app/store", "src/app/kept")
    for path, text in OLD.items()
}
MODULES = {"app.tiles": "app.windows.tile", "app.store": "app.kept"}


def test_moved_modules_pass_with_their_names_in_texts():
    assert '"src/app/kept/rows.py", ".app/store"' in MOVED["tests/test_app.py"]
    assert find(MOVED, modules=MODULES) == []


def test_moved_modules_are_found_without_the_table():
    assert find(MOVED, modules={"app.tiles": "app.windows.tile"})
    assert find(modules={"app.tile": "app.windows.tile"}) == [
        "the table names app.tile, which is no module of the old code"
    ]


def test_two_modules_cannot_become_one():
    found = find(modules={"app.tiles": "app.store.rows"})
    assert "src/app/store/rows.py -> src/app/store/rows.py: src/app/tiles.py has become that too" in found


def test_a_text_that_only_looks_like_a_module_must_stay():
    changed = ('".app/store"', '".app/kept"')
    assert find(MOVED, modules=MODULES, test_app=changed)


RENAMED = {
    path: text.replace("Tile", "Window")
    .replace("GRAIN", "STEP")
    .replace("grain", "step_size")
    .replace("end(", "last(")
    .replace('"start"', '"begin"')
    .replace(".start", ".begin")
    .replace("    start =", "    begin =")
    .replace("Windows", "Tiles")
    for path, text in OLD.items()
}
NAMES = {
    "app.tiles:Tile": "Window",
    "app.tiles:GRAIN": "STEP",
    "app.tiles:Tile.end": "last",
    "grain": ["step_size"],
    "start": "begin",
}


def test_names_pass_that_the_table_renames():
    assert find(RENAMED, names=NAMES) == []


@pytest.mark.parametrize("left_out", NAMES)
def test_each_renamed_name_needs_the_table(left_out):
    assert find(RENAMED, names={name: new for name, new in NAMES.items() if name != left_out})


def test_a_name_that_one_module_renames_stays_in_the_others():
    assert find(RENAMED, names=NAMES | {"app.store.rows:Tile": "Window"}) == []
    assert find(RENAMED, names={name.replace("app.tiles", "app.store.rows"): new for name, new in NAMES.items()})


def test_what_a_package_hands_on_is_compared_by_where_it_is_defined():
    new = OLD | {"src/app/__init__.py": "from app.tiles import Tile\n"}
    old = new | {"tests/test_app.py": USER.replace("from app.tiles import Tile", "from app import Tile")}
    assert compare_code(old, new, Table({}, {}))[1] == []


def test_the_command_compares_a_commit_with_another_and_with_the_working_tree(tmp_path, monkeypatch, capsys):
    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet")
    for files in (OLD, MOVED):
        git("rm", "-r", "--quiet", "--ignore-unmatch", ".")
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        git("add", ".")
        git("commit", "--quiet", "-m", "A state")
    table = tmp_path / "table.toml"
    table.write_text("[modules]\n" + "".join(f'"{old}" = "{new}"\n' for old, new in MODULES.items()))
    monkeypatch.chdir(tmp_path)
    assert main(["HEAD^", "HEAD", "--table", str(table)]) == 0
    assert capsys.readouterr().out == "4 files compared, 0 differences\n"
    (tmp_path / "tests" / "test_app.py").unlink()
    assert main(["HEAD^", ".", "--table", str(table)]) == 1
    assert "tests/test_app.py -> nothing" in capsys.readouterr().out
