"""The tool that breaks the code on purpose: it breaks what it names, nothing else, and says who survived."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.mutations.__main__ import main, reason_if_equivalent
from scripts.mutations.generated import choose_mutations, mutations_of
from scripts.mutations.mutation import Mutation, MutationError, changed_lines
from scripts.mutations.named import EquivalentChange, read_equivalents, read_mutations
from scripts.mutations.selection import Stage, near_tests, stages_for
from scripts.mutations.trial import TestRun, TreeCopy

ROOT = Path(__file__).parents[1]
SOURCE = "def is_late(behind, most):\n    return behind > most\n"
ENTRY = """
[[mutation]]
name = "late"
file = "src/headrace/late.py"
before = '{before}'
after = '{after}'
tests = ["tests/test_late.py"]
"""
PASSING, FAILING = TestRun(0, None), TestRun(1, "tests/test_late.py::test_late")


@pytest.fixture
def tree(tmp_path):
    """A package with one module, and a test that notices less than it should."""
    root = tmp_path / "tree"
    for folder in ("src/headrace", "tests"):
        (root / folder).mkdir(parents=True)
    (root / "src/headrace/__init__.py").touch()
    (root / "src/headrace/late.py").write_text(SOURCE)
    test = "from headrace.late import is_late\n\n\ndef test_late():\n    assert is_late(2, 1)\n"
    (root / "tests/test_late.py").write_text(test)
    plugin = root / "scripts/mutations"
    plugin.mkdir(parents=True)
    for name in ("__init__.py", "origin.py"):
        (plugin / name).write_text((ROOT / "scripts/mutations" / name).read_text("utf-8"))
    return root


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A tree with one package of the source, which is read faster than all of them."""
    root = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "src/headrace/store", root / "src/headrace/store")
    return root


def named(tree, before, after):
    listed = tree / "named.toml"
    listed.write_text(ENTRY.format(before=before, after=after))
    return read_mutations(tree, listed)


def test_every_named_mutation_fits_the_code_and_the_tests_of_today():
    assert len(read_mutations(ROOT)) > 50


def test_every_equivalent_change_is_of_a_line_that_is_there():
    for each in read_equivalents():
        lines = [line.strip() for line in (ROOT / each.file).read_text("utf-8").splitlines()]
        assert each.before in lines, each


@pytest.mark.parametrize("before", ["behind < most", "most"])
def test_a_text_that_does_not_stand_there_exactly_once_is_refused(tree, before):
    with pytest.raises(MutationError, match="times, not once"):
        named(tree, before, "other")


def test_a_mutation_that_changes_nothing_or_whose_test_is_gone_is_refused(tree):
    with pytest.raises(MutationError, match="the same text"):
        named(tree, "behind > most", "behind > most")
    (tree / "tests/test_late.py").unlink()
    with pytest.raises(MutationError, match=r"there is no tests/test_late\.py"):
        named(tree, "behind > most", "behind >= most")


def test_a_name_that_nothing_has_is_an_error_and_not_a_success(capsys):
    assert main(["--only", "no such mutation"]) == 3
    assert "no mutation has" in capsys.readouterr().err


def test_one_seed_chooses_the_same_mutations_and_another_one_others(package):
    first, again, other = (choose_mutations(package, seed, 20) for seed in (1, 1, 2))
    assert first == again != other
    assert len({(each.file, each.span) for each in first}) == 20


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("a = b < c", ["a = b <= c"]),
        ("a = b == c", ["a = b != c"]),
        ("a = b + c", ["a = b - c"]),
        ("a = max(b, c)", ["a = min(b, c)"]),
        ("a = np.minimum(b, c)", ["a = np.maximum(b, c)"]),
        ("a = b and c and d", ["a = b or c and d", "a = b and c or d"]),
        ("a = b if c else d", ["a = b if (not (c)) else d"]),
        ("a = b[1]", ["a = b[2]"]),
        ("put(b)", ["pass"]),
        ("a = 'ö' if b else (c) < (d)", ["a = 'ö' if (not (b)) else (c) < (d)", "a = 'ö' if b else (c) <= (d)"]),
        ("_logger.info(b)", []),
        ("a = 500", []),
        ("a = f'{b + 1}' + 'c'", []),
        ("def a(b: Literal[1]) -> Literal[2]: ...", []),
    ],
)
def test_every_kind_of_change_is_made_and_nothing_else(line, after):
    assert [each.apply(line) for each in mutations_of(line, "a.py")] == after


def test_every_chosen_mutation_is_still_python(package):
    for each in choose_mutations(package, 3, 100):
        source = (package / each.file).read_text("utf-8")
        compile(each.apply(source), each.file, "exec")
        assert each.apply(source) != source


def test_a_survivor_is_reported_and_the_tree_stays_as_it_was(tree, tmp_path):
    (mutation,) = named(tree, "behind > most", "behind >= most")
    finding = TreeCopy(tree, tmp_path / "copy").try_mutation(mutation, [Stage(mutation.tests)])
    assert (finding.end, finding.test) == ("survived", None)
    assert (tree / mutation.file).read_text() == (tmp_path / "copy" / mutation.file).read_text() == SOURCE


def test_a_mutation_that_a_test_notices_is_caught_by_it(tree, tmp_path):
    (mutation,) = named(tree, "behind > most", "behind < most")
    finding = TreeCopy(tree, tmp_path / "copy").try_mutation(mutation, [Stage(mutation.tests)])
    assert (finding.end, finding.test) == ("caught", "tests/test_late.py::test_late")


def test_a_test_that_fails_without_the_mutation_is_left_out_and_named(tree, tmp_path):
    (mutation,) = named(tree, "behind > most", "behind < most")

    def fails_always(stage, left_out):
        return PASSING if FAILING.failed in left_out else FAILING

    finding = TreeCopy(tree, tmp_path / "copy").try_mutation(mutation, [Stage(mutation.tests)], fails_always)
    assert (finding.end, finding.broken) == ("survived", (FAILING.failed,))


def test_who_runs_out_of_time_without_a_failing_test_has_noticed_nothing(tree, tmp_path):
    (mutation,) = named(tree, "behind > most", "behind < most")
    finding = TreeCopy(tree, tmp_path / "copy").try_mutation(
        mutation, [Stage(mutation.tests)], lambda *_: TestRun(None, None)
    )
    assert finding.end == "timed out"


def test_tests_that_would_import_another_package_are_not_run(tree, tmp_path):
    copy = TreeCopy(tree, tmp_path / "copy")
    (tmp_path / "copy/src/headrace/__init__.py").unlink()
    (tmp_path / "copy/src/headrace/late.py").unlink()
    with pytest.raises(MutationError, match="headrace was imported from"):
        copy.run_tests(Stage(("tests/test_late.py",)), ())


def test_a_change_that_is_listed_as_equivalent_is_no_finding():
    mutation = Mutation("late", "a.py", (SOURCE.index(">"), SOURCE.index(">") + 1), ">=")
    before, after = (text.strip() for text in changed_lines(mutation, SOURCE))
    listed = [EquivalentChange("a.py", before, after, "it is never equal")]
    assert reason_if_equivalent(mutation, SOURCE, listed) == "it is never equal"
    assert reason_if_equivalent(mutation, SOURCE, []) is None


def test_the_tests_of_a_module_are_its_own_then_those_that_import_it_then_its_folder():
    near = near_tests(ROOT, "src/headrace/store/materializer.py")
    assert near[0] == "tests/store/test_materializer.py"
    assert near.index("tests/store/test_damage.py") < near.index("tests/store/test_conformance.py")
    assert [stage.marked for stage in stages_for(ROOT, "src/headrace/store/materializer.py")][-1] == (
        "(spark or kafka) and not prove"
    )


def test_the_command_lists_what_it_would_try():
    command = [sys.executable, "-m", "scripts.mutations", "--list", "--seed", "1", "--count", "2", "--only", "seed 1"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told.count("seed 1, ") == 2
    assert "  + " in told
