"""The files of the wheel, data included, and the command that it installs."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_the_files_that_it_had(golden):
    builder = WheelBuilder(str(ROOT))
    files = sorted(each.distribution_path for each in builder.recurse_included_files())
    data = [file for file in files if not file.endswith(".py")]
    modules = [file for file in files if file.endswith(".py")]
    golden("frozen/wheel_files", "\n".join(["# data", *data, "", "# modules", *modules]))


def test_the_wheel_installs_one_command():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"headrace": "headrace_command:main"}
