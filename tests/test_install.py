"""scripts/install: the locked versions, by uv from its cache, by uv, or by pip, whichever can first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
echo "$*" >> "{folder}/said"
case "$*" in *"-r /dev/stdin") cat > "{folder}/lock" ;; esac
case "$*" in {failing}) exit 1 ;; esac
"""
OFFLINE = "-m uv pip install --quiet --offline --require-hashes -r requirements.lock"
ONLINE = "-m uv pip install --quiet --require-hashes -r requirements.lock"
PIP = "-m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock"
SELF = "-m uv pip install --quiet --offline --no-build-isolation --no-deps -e ."
SELF_BY_PIP = "-m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e ."


def installed(folder, failing='""'):
    """What a Python was asked that fails at some of it."""
    python = folder / "python"
    python.write_text(PYTHON.format(folder=folder, failing=failing))
    python.chmod(0o755)
    ran = subprocess.run([ROOT / "scripts" / "install", python], cwd=ROOT, capture_output=True, text=True, check=False)
    said = (folder / "said").read_text().splitlines()
    return ran, said


def test_uv_itself_is_of_the_lock_file_with_its_hashes(tmp_path):
    ran, said = installed(tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert said[0].endswith("--require-hashes -r /dev/stdin")
    first, *hashes = (tmp_path / "lock").read_text().splitlines()
    assert first.startswith("uv==")
    assert hashes
    assert all(line.strip().startswith("--hash=sha256:") for line in hashes)


@pytest.mark.parametrize(
    ("failing", "tried"),
    [
        ('""', [OFFLINE, SELF]),
        ("*--offline*", [OFFLINE, ONLINE, SELF, SELF_BY_PIP]),
        ('*"uv pip"*', [OFFLINE, ONLINE, PIP, SELF, SELF_BY_PIP]),
    ],
)
def test_the_quickest_way_that_works_is_taken(tmp_path, failing, tried):
    ran, said = installed(tmp_path, failing)
    assert ran.returncode == 0, ran.stderr
    assert said[1:] == tried


def test_when_no_way_works_it_fails(tmp_path):
    ran, said = installed(tmp_path, "*requirements.lock*")
    assert ran.returncode != 0
    assert said[1:] == [OFFLINE, ONLINE, PIP]
