"""The account of a run: what is dear is found and fails the run, in one process and in two."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.accounting.__main__ import propose
from tests.accounting.cpu import ProcessTree
from tests.accounting.expense import Expense
from tests.accounting.report import Account, read_account
from tests.accounting.rules import Allowance, Budgets, find_excess, find_missing, read_budgets

PATIENCE = 60.0
SPIN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
TESTS = """
import subprocess, sys, pytest
from tests.accounting import rules

@pytest.fixture(scope="session")
def session():
    subprocess.run([sys.executable, "-c", {spin!r}])

def test_slow(session):
    subprocess.run([sys.executable, "-c", {spin!r}])

def test_quick(session):
    pass
"""
EVERYTHING = '[folders]\nfixtures = 1000\n"." = {}\n'
LIMITLESS = '[tests]\n"" = { seconds = 60, reason = "All of them." }\n' + EVERYTHING.format(1000)
PROCESSES = pytest.mark.parametrize("processes", ["0", "2"])


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs the tests above with budgets, where a test may take 0.3 seconds."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent.parent))
    pytester.makepyfile(conftest="from tests.accounting import rules\nrules.LIMIT, rules.MOST_STRETCH = 0.3, 1\n")
    pytester.makepyfile(test_here=TESTS.format(spin=SPIN.format(0.4)))

    def start(budgets, *options):
        pytester.makefile(".toml", budgets=budgets)
        given = ["-p", "tests.accounting.plugin", "--account", "account.json", "--budgets", "budgets.toml"]
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *given, *options)

    return start


@PROCESSES
def test_a_slow_test_fails_the_run(run, processes):
    ran = run(EVERYTHING.format(1000), "-n", processes)
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.stdout.fnmatch_lines(["over its limit: test_here.py::test_slow took * s, and may take 0.3 s.*"])
    ran.stdout.no_fnmatch_line("over its limit: test_here.py::test_quick *")
    ran.stdout.fnmatch_lines(["*2 failed, 2 passed*"])  # the shared fixture is the other one


def test_a_listed_test_and_a_listed_fixture_may_take_longer(run):
    listed = '"{}" = {{ seconds = 60, reason = "It spins." }}\n'
    names = ("test_here.py::test_s", "test_here.py::session (fixture)", "::session (fixture)")
    ran = run("[tests]\n" + "".join(map(listed.format, names)) + EVERYTHING.format(1000))
    assert ran.ret == pytest.ExitCode.OK


def test_a_folder_over_its_budget_fails_the_run(run):
    ran = run('[tests]\n"" = { seconds = 60, reason = "All of them." }\n' + EVERYTHING.format(0.1))
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.stdout.fnmatch_lines(["over its limit: . used * CPU-seconds, and its budget is 0.1."])


def test_a_whole_run_of_too_few_tests_fails(run, pytester):
    pytester.makefile(".txt", least="3")
    ran = run(LIMITLESS, "--least-tests", "least.txt", "-n", "2")
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.stdout.fnmatch_lines(["too few tests: 2 of at least 3. *"])


def test_a_selection_may_have_fewer_tests(run, pytester):
    pytester.makefile(".txt", least="3")
    assert run(LIMITLESS, "--least-tests", "least.txt", "-k", "quick").ret == pytest.ExitCode.OK


def test_a_shared_fixture_is_no_test(tmp_path):
    (tmp_path / "least.txt").write_text("2\n")
    entries = [Expense("test_a.py::test_b", ".", 1, 1), Expense("::session (fixture)", "fixtures", 1, 1)]
    assert list(find_missing(entries, tmp_path / "least.txt")) == ["number of tests"]
    assert find_missing([*entries, entries[0]], tmp_path / "least.txt") == {}


def test_a_shared_fixture_is_booked_under_its_own_name(run, pytester):
    run(EVERYTHING.format(1000), "-k", "quick")
    entries = {entry.name: entry for entry in read_account(pytester.path / "account.json").entries}
    (quick,) = [entry for name, entry in entries.items() if "quick" in name]
    (fixture,) = [entry for name, entry in entries.items() if "(fixture)" in name]
    assert (quick.cpu < 0.3, fixture.cpu > 0.35) == (True, True)


def test_a_test_marked_prove_may_take_as_long_as_it_likes():
    entries = [Expense("tests/a/test_b.py::test_c", "a", 999, 999, is_prove=True)]
    assert find_excess(entries, Budgets({}, {"a": 1}), 0.0) == {}


def test_a_folder_without_a_budget_is_an_excess():
    assert "no budget" in find_excess([Expense("tests/a/test_b.py::test_c", "a", 1, 1)], Budgets({}, {}), 0.0)["a"]


def test_a_test_may_take_twice_as_long_where_others_use_half_of_the_machine():
    entries, budgets = [Expense("tests/a/test_b.py::test_c", "a", 30, 1)], Budgets({}, {"a": 2})
    assert list(find_excess(entries, budgets, 0.0)) == ["tests/a/test_b.py::test_c"]
    assert find_excess(entries, budgets, 0.5) == {}


def test_a_slower_machine_stretches_every_limit_and_a_faster_one_none():
    entries = [Expense("tests/a/test_b.py::test_c", "a", 29.0, 14.0)]
    budgets = Budgets({}, {"a": 10}, loop=0.02)
    assert find_excess(entries, budgets, 0.0, loop=0.03) == {}
    assert [*find_excess(entries, budgets, 0.0, loop=0.02)] == ["tests/a/test_b.py::test_c", "a"]
    assert find_excess(entries, budgets, 0.0, loop=0.01) == find_excess(entries, budgets, 0.0, loop=0.02)


def test_an_allowance_without_a_reason_is_refused(tmp_path):
    (tmp_path / "budgets.toml").write_text('[tests]\n"tests/a" = { seconds = 30, reason = " " }\n')
    with pytest.raises(ValueError, match="say why"):
        read_budgets(tmp_path / "budgets.toml")


def test_proposed_budgets_allow_half_as_much_again(tmp_path):
    entries = (
        Expense("tests/a/test_b.py::test_c", "a", 30.0, 4.0),
        Expense("tests/a/test_d.py::test_e", "a", 1.0, 6.0),
    )
    Account(1, 31.0, 10.0, (0.0, 0.0), 0.0, 0.03, entries).write(tmp_path / "account.json")
    account = read_account(tmp_path / "account.json")
    assert account.entries == entries
    (tmp_path / "budgets.toml").write_text(propose(account).replace('reason = ""', 'reason = "Long."'))
    budgets = read_budgets(tmp_path / "budgets.toml")
    assert budgets == Budgets({"tests/a/test_b.py::test_c": Allowance(45, "Long.")}, {"a": 15}, loop=0.03)


def test_the_report_has_the_sum_of_each_folder(tmp_path):
    Account(1, 1.0, 1.0, (0.0, 0.0), 0.0, 0.03, (Expense("a::b", "a", 1, 2), Expense("a::c", "a", 1, 3))).write(
        tmp_path / "f"
    )
    assert json.loads((tmp_path / "f").read_text())["folders"] == {"a": 5}


SPINS = SPIN.format(1)
DETACHED = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {SPINS!r}], start_new_session=True)"


def test_a_process_that_lost_its_parent_is_counted():
    tree, deadline = ProcessTree(), time.monotonic() + PATIENCE
    tree.start()
    before = tree.read_cpu()
    subprocess.run([sys.executable, "-c", DETACHED], check=True)
    try:
        while tree.read_cpu() - before < 0.8:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        tree.stop()
