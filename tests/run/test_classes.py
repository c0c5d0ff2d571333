"""Kept classes: named after the Java they are for, and really used by a session."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from headrace.machine import find_java
from headrace.run.classes import keeping, kept, starting


def test_each_java_has_its_own_file():
    java = find_java()
    others = [dataclasses.replace(java, version="99"), dataclasses.replace(java, home=Path("elsewhere"))]
    assert len({kept(each) for each in (java, *others)}) == 3


def test_without_kept_classes_a_session_starts_as_always():
    assert starting(dataclasses.replace(find_java(), version="99")) == ""


def test_what_is_kept_is_what_a_session_starts_from(tmp_path):
    assert str(tmp_path / "x.jsa") in keeping(tmp_path / "x.jsa")


@pytest.mark.spark
def test_a_session_starts_from_kept_classes(spark):
    from pyspark import SparkContext

    file = kept(find_java())
    assert file.is_file(), "run `headrace prepare` first, as `make test` does"
    mapped = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
    assert str(file) in mapped
    assert spark.range(1).count() == 1
