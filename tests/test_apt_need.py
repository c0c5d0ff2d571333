"""scripts/apt-need on machines that have the thing, may install it, and may not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "scripts" / "apt-need"


def need(folder: Path, user: int, apt: str | None = None) -> subprocess.CompletedProcess[str]:
    """Need the file `thing`, as a user, on a machine whose apt-get does what `apt` says."""
    for name, body in {"id": f"echo {user}", "apt-get": apt}.items():
        if body is not None:
            (folder / name).write_text(f"#!/bin/sh\n{body}\n")
            (folder / name).chmod(0o755)
    command = ["/bin/sh", str(SCRIPT), "thing-package", "/bin/sh", "-c", '[ -e "$0" ]', str(folder / "thing")]
    environ = os.environ | {"PATH": str(folder)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_what_is_there_is_not_installed(tmp_path):
    (tmp_path / "thing").touch()
    ran = need(tmp_path, user=0, apt="exit 9")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_root_gets_what_is_missing_and_stdout_stays_empty(tmp_path):
    ran = need(tmp_path, user=0, apt=f"echo $@; : > {tmp_path}/thing")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "install -y --no-install-recommends thing-package" in ran.stderr


def test_the_package_lists_are_fetched_when_the_first_try_fails(tmp_path):
    fresh = f"case $1 in update) : > {tmp_path}/lists;; *) [ -e {tmp_path}/lists ] && : > {tmp_path}/thing;; esac"
    assert need(tmp_path, user=0, apt=fresh).returncode == 0


def test_anyone_else_is_told_what_to_install(tmp_path):
    ran = need(tmp_path, user=1000, apt=f": > {tmp_path}/thing")
    assert ran.returncode == 3
    assert "hint: sudo apt-get install thing-package" in ran.stderr
    assert not (tmp_path / "thing").exists()


def test_a_package_that_cannot_be_installed_is_an_error(tmp_path):
    ran = need(tmp_path, user=0, apt="exit 100")
    assert ran.returncode == 3
    assert "cannot be installed" in ran.stderr


def test_a_package_that_does_not_help_is_an_error(tmp_path):
    ran = need(tmp_path, user=0, apt="exit 0")
    assert ran.returncode == 3
    assert "still fails" in ran.stderr
