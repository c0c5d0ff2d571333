"""The command: it reads two commits, compares their files by module, and prints every difference."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.same_code.code import Code
from scripts.same_code.comparison import Comparison
from scripts.same_code.table import Table

FOLDERS = ("src", "tests", "bench", "scripts")
Files = Mapping[str, str]


def compare_code(old_files: Files, new_files: Files, table: Table) -> tuple[int, list[str]]:
    """How many files were compared, and every difference."""
    old_code, new_code = Code(old_files), Code(new_files)
    differences, sources = list[str](), dict[str, str]()
    for name in table.modules:
        if not any(f"{module}.".startswith(f"{name}.") for module in old_code.modules):
            differences.append(f"the table names {name}, which is no module of the old code")
    for name, module in old_code.modules.items():
        found = new_code.modules.get(table.move(name))
        if found is None and module.has_code:
            differences.append(f"{module.path} -> nothing: there is no module {table.move(name)}")
        elif found is not None and found.name in sources:
            differences.append(f"{module.path} -> {found.path}: {sources[found.name]} has become that too")
        elif found is not None:
            sources[found.name] = module.path
            differences += Comparison(table, old_code, new_code, module, found).differences
    for name, module in new_code.modules.items():
        if name not in sources and module.has_code:
            differences.append(f"nothing -> {module.path}: it comes from nowhere")
    return len(sources), differences


def read_commit(root: Path, commit: str) -> Files:
    """The Python files of a commit, by path; of "." those of the working tree."""
    if commit == ".":
        listed = run_git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
        return {path: (root / path).read_text("utf-8") for path in listed if is_ours(path) and (root / path).is_file()}
    with tarfile.open(fileobj=io.BytesIO(run_git(root, "archive", commit))) as archive:
        found = {member.name: archive.extractfile(member) for member in archive if is_ours(member.name)}
        return {path: file.read().decode() for path, file in found.items() if file is not None}


def is_ours(path: str) -> bool:
    return path.endswith(".py") and path.partition("/")[0] in FOLDERS


def run_git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, stdout=subprocess.PIPE).stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.same_code", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", help="a commit")
    parser.add_argument("new", help='a commit, or "." for the working tree')
    parser.add_argument("--table", type=Path, required=True, help="a TOML file with what was renamed")
    given = parser.parse_args(arguments)
    content = tomllib.loads(given.table.read_text("utf-8"))
    table = Table(content.get("modules", {}), content.get("names", {}))
    root = Path.cwd()
    count, differences = compare_code(read_commit(root, given.old), read_commit(root, given.new), table)
    for each in differences:
        sys.stdout.write(f"{each}\n")
    sys.stdout.write(f"{count} files compared, {len(differences)} differences\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
