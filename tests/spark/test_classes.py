"""Kept classes: named after the Java they are for, and really used by a session."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from headrace.machine import find_java
from headrace.spark import classes
from headrace.spark.classes import classes_file, keeping, stable_home, starting


def test_each_java_has_its_own_file():
    java = find_java()
    others = [dataclasses.replace(java, version="99"), dataclasses.replace(java, home=Path("elsewhere"))]
    assert len({classes_file(each) for each in (java, *others)}) == 3


def test_without_kept_classes_a_session_starts_as_always():
    assert starting(dataclasses.replace(find_java(), version="99")) == ""


def test_what_is_kept_is_what_a_session_starts_from(tmp_path):
    assert str(tmp_path / "x.jsa") in keeping(tmp_path / "x.jsa")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs PySpark somewhere, with the files of another installation or its own, and makes it the one in use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def install(name, files_of=None):
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        (home / "jars").mkdir()
        jar = home / "jars" / "spark-core_2.13-1.jar"
        jar.touch() if files_of is None else jar.hardlink_to(files_of / "jars" / jar.name)
        monkeypatch.setattr(classes, "spark_home", lambda: home)
        return home

    return install


def test_environments_that_share_the_files_of_pyspark_share_its_classes(installed, tmp_path):
    java = find_java()
    first = installed("first")
    assert tmp_path not in classes_file(java).parents, "nobody shares them yet"
    installed("second", files_of=first)
    shared = classes_file(java)
    assert shared.is_relative_to(tmp_path / "cache")
    installed("third", files_of=first)
    assert classes_file(java) == shared


def test_shared_classes_outlive_the_environment_they_were_made_in(installed):
    first = installed("first")
    installed("second", files_of=first)
    home = stable_home(classes_file(find_java()))
    assert (home / "jars" / "spark-core_2.13-1.jar").samefile(first / "jars" / "spark-core_2.13-1.jar")
    assert (home / "bin").is_dir()


def test_classes_that_no_environment_uses_any_more_are_removed(installed, tmp_path):
    first, java = installed("first"), find_java()
    second = installed("second", files_of=first)
    left = stable_home(classes_file(java))
    for gone in (first, second):
        shutil.rmtree(gone)
    third = installed("third")
    installed("fourth", files_of=third)
    assert stable_home(classes_file(java)).is_dir()
    assert not left.exists()


@pytest.mark.spark
def test_a_session_starts_from_kept_classes(spark):
    from pyspark import SparkContext

    file = classes_file(find_java())
    assert file.is_file(), "run `headrace prepare` first, as `make test` does"
    mapped = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
    assert str(file) in mapped
    assert spark.range(1).count() == 1
