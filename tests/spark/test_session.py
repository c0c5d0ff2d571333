"""What a session's JVM is started with."""

from __future__ import annotations

import os

import pytest

from headrace.spark.session import COLLECTOR, UMASK, _collector


@pytest.mark.parametrize("name", ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [("", COLLECTOR), ("-Xmx1g", COLLECTOR), ("-XX:+UseSerialGC", ""), ("-Xmx1g -XX:+UseZGC -Dx=1", "")],
)
def test_a_collector_that_the_user_has_chosen_is_the_only_one(monkeypatch, name, given, expected):
    for each in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, given)
    assert _collector() == expected


@pytest.mark.spark
def test_spark_writes_files_with_the_umask_of_the_process(spark):
    umask = os.umask(0o077)
    os.umask(umask)
    assert spark.sparkContext.getConf().get(UMASK) == f"{umask:03o}"
