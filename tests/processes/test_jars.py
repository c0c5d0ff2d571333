"""Pinned jars: asked of Maven one by one, kept only when they are the right ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headrace.errors import MachineError
from headrace.processes import jars
from headrace.processes.jars import BROKER, CONNECTOR, Jar

CONTENT = b"not really a jar"
PINNED = (
    Jar(CONNECTOR, "org.example", "one", "1.0", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),
    Jar(CONNECTOR, "org.example", "two", "2.0", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),
)
MAVEN = """#!/bin/sh
# Stands in for Maven: writes what is asked for into the folder that the last argument names.
echo "$@" >> {calls}
{before}
for last do :; done
folder=${{last#-DoutputDirectory=}}
for file in one-1.0.jar two-2.0.jar; do printf '%s' '{content}' > "$folder/$file"; done
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """An environment with a Maven of our own; `write` says what it does."""
    monkeypatch.setattr(jars, "jars", lambda _: PINNED)
    (tmp_path / "bin").mkdir()

    def write(content: str = CONTENT.decode(), before: str = "") -> dict[str, str]:
        maven = tmp_path / "bin" / "mvn"
        maven.write_text(MAVEN.format(calls=tmp_path / "calls", content=content, before=before))
        maven.chmod(0o755)
        return {"PATH": f"{maven.parent}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    return write


def calls(tmp_path: Path) -> int:
    return len((tmp_path / "calls").read_text().splitlines())


def test_jars_are_fetched_once(machine, tmp_path):
    environ = machine()
    counts: list[int] = []
    found = jars.fetch(CONNECTOR, environ, tell=counts.append)
    assert [file.name for file in found] == ["one-1.0.jar", "two-2.0.jar"]
    assert [file.read_bytes() for file in found] == [CONTENT, CONTENT]
    assert jars.fetch(CONNECTOR, environ) == jars.present(CONNECTOR, environ) == found
    assert calls(tmp_path) == 1
    assert counts[0] == 0


def test_a_jar_that_was_changed_is_fetched_again(machine, tmp_path):
    environ = machine()
    found = jars.fetch(CONNECTOR, environ)
    found[0].write_bytes(CONTENT[::-1])
    assert jars.fetch(CONNECTOR, environ)[0].read_bytes() == CONTENT
    assert calls(tmp_path) == 2


def test_a_jar_with_another_sum_is_refused_and_nothing_of_it_kept(machine):
    environ = machine(content="something else!!")
    with pytest.raises(MachineError) as caught:
        jars.fetch(CONNECTOR, environ)
    assert (caught.value.code, caught.value.got) == ("bad-jar", "one-1.0.jar")
    assert list(jars.folder(CONNECTOR, environ).iterdir()) == []


def test_what_maven_says_when_it_fails_is_told(machine):
    environ = machine(before="echo '[ERROR] Could not find artifact'; exit 1")
    with pytest.raises(MachineError) as caught:
        jars.fetch(CONNECTOR, environ)
    assert (caught.value.code, caught.value.got) == ("no-jars", "'[ERROR] Could not find artifact'")


def test_a_machine_without_maven_is_told_what_to_install(machine, tmp_path):
    environ = machine() | {"PATH": str(tmp_path)}
    with pytest.raises(MachineError) as caught:
        jars.fetch(CONNECTOR, environ)
    assert caught.value.code == "no-maven"
    assert "apt-get install maven" in str(caught.value.hint)


def test_jars_that_are_not_there_are_named_with_the_verb_that_fetches_them(machine):
    with pytest.raises(MachineError) as caught:
        jars.present(CONNECTOR, machine())
    assert (caught.value.code, caught.value.hint) == ("no-jars", "Fetch them with `headrace kafka jars`.")


@pytest.mark.parametrize("use", [CONNECTOR, BROKER])
def test_every_pinned_jar_has_a_sum_and_is_asked_for_without_what_it_depends_on(use):
    pinned = jars.jars(use)
    assert len({jar.file for jar in pinned}) == len(pinned) > 3
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in pinned)
    assert jars.pom(pinned).count("<artifactItem>") == len(pinned)
    assert "<dependency>" not in jars.pom(pinned)


def test_the_connectors_are_those_that_were_tried_together():
    wanted = {
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
        "spark-avro_2.13-4.1.1.jar",
    }
    assert {jar.file for jar in jars.jars(CONNECTOR)} == wanted
