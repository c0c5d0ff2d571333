"""What importing loads. Times are in bench/startup.py: here it is about modules, which do not depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "pyspark",
    "pandas",
    "pyarrow",
    "numpy",
    "sqlglot",
    "datasketches",
    "rich",
    "click",
    "pytest",
    "confluent_kafka",
}


def loaded(code: str) -> set[str]:
    """The modules a fresh interpreter has after running some code."""
    told = f"{code}\nimport sys; sys.stderr.write(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


def test_importing_headrace_loads_no_engine():
    assert loaded("import headrace") & HEAVY == set()


def test_naming_a_public_name_loads_no_engine():
    names = "[getattr(headrace, name) for name in headrace.__all__ if name != 'preview']"
    assert loaded(f"import headrace; {names}") & HEAVY == set()


def test_importing_the_test_tools_loads_no_engine():
    assert loaded("import headrace.testing") & (HEAVY - {"numpy"}) == set()


def test_help_loads_no_verb_and_no_definition_language():
    modules = loaded("from headrace.cli.main import main; main(['--help'])")
    assert modules & (HEAVY - {"click"}) == set()
    assert {name for name in modules if name.startswith("headrace.cli.")} == {
        "headrace.cli.interrupt",
        "headrace.cli.main",
        "headrace.cli.output",
    }


VERBS = "init check plan features doctor up status logs down run send tail dead-letters lake lateness get kafka redis"


@pytest.mark.parametrize("verb", VERBS.split())
def test_the_help_of_a_verb_loads_no_engine(verb):
    modules = loaded(f"from headrace.cli.main import main; main(['{verb}', '--help'])")
    assert f"headrace.cli.{verb.replace('-', '_')}" in modules
    assert modules & (HEAVY - {"click"}) == set()


def test_the_kafka_log_loads_its_client_when_it_is_used():
    assert loaded("import headrace.log.kafka.log, headrace.topics") & HEAVY == set()


def test_only_the_kafka_log_imports_its_client():
    source = Path(__file__).parent.parent / "src"
    naming = [
        path
        for path in source.rglob("*.py")
        if "import confluent_kafka" in (text := path.read_text()) or "from confluent_kafka" in text
    ]
    assert naming
    assert [path for path in naming if path.parent != source / "headrace" / "log" / "kafka"] == []


def test_the_engine_is_loaded_when_it_is_asked_for():
    # Shows that the tests above can fail.
    assert "pyspark" in loaded("import headrace.spark.session")
