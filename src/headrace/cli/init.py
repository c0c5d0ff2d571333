"""`headrace init`: a project that works at once, with late data in its first test and its first events.

The files are templates beside this module; `$name` in them becomes the project's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import click

from headrace.cli.output import data, talk
from headrace.config.kinds import NAME_HINT, NAME_PATTERN
from headrace.errors import ProjectError, shown

TEMPLATES = files("headrace.cli") / "template"
FILES: dict[str, Traversable] = {
    "headrace.toml": TEMPLATES / "headrace.toml.txt",
    "features.py": TEMPLATES / "features.py.txt",
    "events.jsonl": TEMPLATES / "events.jsonl.txt",
    "tests/test_features.py": TEMPLATES / "test_features.py.txt",
    "pytest.ini": TEMPLATES / "pytest.ini.txt",
    "README.md": TEMPLATES / "README.md.txt",
    ".gitignore": TEMPLATES / "gitignore.txt",
}
"""Each file of a new project, and its template."""


@click.command("init")
@click.argument("name", metavar="NAME")
def command(name: str) -> None:
    """Make a project: headrace.toml, features.py and a passing test.

    NAME is the folder to make; its last part becomes the project's name.
    """
    folder = Path(name)
    for path in create(folder):
        data(path.as_posix())
    talk(f"Made. Next: cd {name} && pytest && headrace plan" if folder != Path() else "Made. Next: pytest")


def create(folder: Path, of: Mapping[str, Traversable] = FILES) -> list[Path]:
    """Write the files of a new project into an absent or empty folder, and say which."""
    title = folder.resolve().name
    if not NAME_PATTERN.fullmatch(title):
        raise ProjectError("bad-name", "A project's name cannot be used.", got=shown(title), hint=NAME_HINT)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        hint = "Choose another name, or an empty folder."
        raise ProjectError(
            "already-a-project", "The folder exists and is not empty.", got=shown(str(folder)), hint=hint
        )
    for path, template in of.items():
        text = Template(template.read_text(encoding="utf-8")).substitute(name=title)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [folder / path for path in of]
