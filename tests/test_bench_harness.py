"""The results of a benchmark: their shape, their verdict against the target, and where they are written."""

from __future__ import annotations

import json

import pytest

from bench.harness import Result, commit, machine, measured, report, run, table


def test_the_middle_of_the_samples_is_reported_with_their_ends():
    made = measured("read_ms", [9.0, 1.0, 2.0], "lower")
    assert (made.value, made.spread) == (2.0, (1.0, 9.0))


@pytest.mark.parametrize(
    ("value", "better", "target", "ok"),
    [
        (1.0, "lower", 1.0, True),
        (1.1, "lower", 1.0, False),
        (1.0, "higher", 1.0, True),
        (0.9, "higher", 1.0, False),
        (99.0, "lower", None, True),
    ],
)
def test_a_target_is_met_on_its_better_side(value, better, target, ok):
    assert Result("x", value, better, target).ok is ok


def test_a_report_has_the_agreed_shape():
    made = report("engine", [Result("p50_ms", 8.123456, "lower", 10.0)])
    row = {"name": "p50_ms", "value": 8.123, "target": 10.0, "better": "lower", "ok": True}
    assert made == {
        "benchmark": "engine",
        "command": "make bench-engine",
        "commit": commit(),
        "machine": machine(),
        "results": [row],
    }


def test_a_report_without_results_or_with_one_name_twice_is_refused():
    with pytest.raises(ValueError, match="different names"):
        report("engine", [])
    with pytest.raises(ValueError, match="different names"):
        report("engine", [Result("x", 1, "lower"), Result("x", 2, "lower")])
    with pytest.raises(ValueError, match="no samples"):
        measured("x", [], "lower")


def test_a_folder_that_is_no_repository_has_an_unknown_commit(tmp_path):
    assert commit(tmp_path) == "unknown"


@pytest.mark.parametrize("quick", [False, True])
def test_a_run_writes_its_results_and_only_a_full_one_the_table(tmp_path, capsys, quick):
    (tmp_path / "docs").mkdir()
    asked = []

    def measure(quick: bool) -> list[Result]:
        asked.append(quick)
        return [Result("p50_ms", 8.0, "lower", 5.0)]

    assert run("engine", measure, arguments=["--quick"] if quick else [], root=tmp_path) == 0
    assert asked == [quick]
    written = json.loads((tmp_path / "bench" / "results" / "engine.json").read_text())
    assert written["results"][0]["ok"] is False
    assert written.get("quick", False) is quick
    assert (tmp_path / "docs" / "benchmarks.md").exists() is not quick
    assert capsys.readouterr().err == "engine.p50_ms  8  missed: target 5\n"


def test_a_part_keeps_what_the_others_measured_and_says_at_which_commit(tmp_path):
    (tmp_path / "docs").mkdir()
    file = tmp_path / "bench" / "results" / "engine.json"

    def first(quick: bool) -> list[Result]:
        return [Result("a", 1, "lower")]

    def second(quick: bool) -> list[Result]:
        return [Result("b", 2, "lower")]

    assert run("engine", first, second, arguments=[], root=tmp_path) == 0
    before = json.loads(file.read_text())
    assert [row["name"] for row in before["results"]] == ["a", "b"]
    file.write_text(json.dumps(before | {"commit": "abc1234"}))
    assert run("engine", first, second, arguments=["--part", "2"], root=tmp_path) == 0
    rows = {row["name"]: row for row in json.loads(file.read_text())["results"]}
    assert (rows["a"]["commit"], "commit" in rows["b"]) == ("abc1234", False)
    assert "| a (at abc1234) | 1 |" in (tmp_path / "docs" / "benchmarks.md").read_text()


def test_the_table_shows_every_number_and_whether_its_target_was_met():
    rows = [Result("a", 2, "lower", 1.0, (1.5, 3)), Result("b", 7, "higher")]
    text = table([report("engine", rows)])
    assert "| a | 2 | 1.5 to 3 | lower than 1 | no |" in text
    assert "| b | 7 | - | - | yes |" in text


def test_what_is_to_be_said_of_a_benchmark_stands_below_its_table():
    made = report("engine", [Result("a", 2, "lower", 1.0)])
    text = table([made], {"engine": "The disk was slow.\n", "log": "Of another."})
    assert text.endswith("no |\n\nThe disk was slow.\n")
