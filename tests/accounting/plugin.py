"""The pytest plugin that keeps the account: `--account FILE` writes it, `--budgets FILE` fails a run that is too dear.

`--least-tests FILE` fails a whole run that has fewer tests than the file says, so that none is lost when files move.

Every process of pytest-xdist books what its tests use; the one that started them adds up. A fixture that several tests
share is booked under its own name, and not under the test that happens to be the first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.accounting.cpu import ProcessTree, read_machine, time_loop
from tests.accounting.expense import Expense, fixture_name, folder_of
from tests.accounting.report import Account
from tests.accounting.rules import find_excess, find_missing, read_budgets
from tests.budget import run_seed

SMALL = 0.1
"""A shared fixture of fewer seconds stays with its first test."""
KEY = "accounting"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("accounting")
    group.addoption("--account", metavar="FILE", help="write what each test used to this file")
    group.addoption("--budgets", metavar="FILE", help="fail a run that used more than this file allows")
    group.addoption("--least-tests", metavar="FILE", help="fail a whole run of fewer tests than this file says")


def pytest_configure(config: pytest.Config) -> None:
    if any(map(config.getoption, ("--account", "--budgets", "--least-tests"))):
        config.pluginmanager.register(Accountant(config), "accountant")


class Accountant:
    """Books tests and shared fixtures in this process, and the books of other processes when they end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._tree = ProcessTree()
        self._entries: list[Expense] = []
        self._cpu_of_workers = 0.0
        self._phases: dict[str, float] = {}
        self._outcome = "passed"
        self._shared: list[tuple[float, float]] = []
        self._loop = 0.0 if self._is_worker else time_loop()
        self._began = (time.monotonic(), read_machine(), self._tree.read_cpu(), os.getloadavg()[0])

    def pytest_sessionstart(self) -> None:
        self._tree.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._phases, self._outcome, self._shared = {}, "passed", [(0.0, 0.0)]
        before = self._tree.read_cpu()
        try:
            return (yield)
        finally:
            (seconds, cpu), name = self._shared[0], item.nodeid.partition("@")[0]
            self._entries.append(
                Expense(
                    name,
                    folder_of(name),
                    self._phases.get("setup", 0.0) + self._phases.get("call", 0.0) - seconds,
                    self._tree.read_cpu() - before - cpu,
                    self._outcome,
                    item.get_closest_marker("prove") is not None,
                )
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._phases[report.when] = report.duration
        if report.outcome != "passed" and self._outcome != "failed":
            self._outcome = report.outcome
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function" or not self._shared:
            return (yield)
        began, before = time.monotonic(), self._tree.read_cpu()
        self._shared.append((0.0, 0.0))
        try:
            return (yield)
        finally:
            inner_seconds, inner_cpu = self._shared.pop()
            seconds, cpu = time.monotonic() - began, self._tree.read_cpu() - before
            outer_seconds, outer_cpu = self._shared[-1]
            own_seconds, own_cpu = seconds - inner_seconds, cpu - inner_cpu
            if own_seconds >= SMALL:
                param = str(getattr(request, "param_index", 0)) if hasattr(request, "param") else None
                name, folder = fixture_name(fixturedef.baseid, fixturedef.argname, param)
                self._entries.append(Expense(name, folder, own_seconds, own_cpu))
            else:
                seconds, cpu = inner_seconds, inner_cpu
            self._shared[-1] = (outer_seconds + seconds, outer_cpu + cpu)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        book = getattr(node, "workeroutput", {}).get(KEY)
        if book is not None:
            self._cpu_of_workers += book["cpu"]
            self._entries += [Expense(**entry) for entry in book["entries"]]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        cpu = self._tree.read_cpu() - self._began[2]
        self._tree.stop()
        if self._is_worker:
            book = {"cpu": cpu, "entries": [asdict(entry) for entry in self._entries]}
            self._config.workeroutput[KEY] = book  # type: ignore[attr-defined]
            return
        if self._cpu_of_workers:  # they are our children, and their books are better than what is left of them
            cpu = self._cpu_of_workers + sum(os.times()[:2])
        self.account = self._close(cpu)
        if file := self._config.getoption("--account"):
            self.account.write(self._config.rootpath / file)
        faults: dict[str, str] = {}
        if budgets := self._config.getoption("--budgets"):
            account = self.account
            excess = find_excess(account.entries, read_budgets(Path(budgets)), account.others, account.loop)
            faults |= {name: f"over its limit: {name} {sentence}" for name, sentence in excess.items()}
        if (file := self._config.getoption("--least-tests")) and self._is_whole(session):
            faults |= find_missing(self.account.entries, Path(file))
        self._fail(session, faults)

    def _close(self, cpu: float) -> Account:
        began, machine, _, load = self._began
        seconds = time.monotonic() - began
        others = max(0.0, read_machine() - machine - cpu) / (seconds * (os.cpu_count() or 1))
        loads = (load, os.getloadavg()[0])
        return Account(run_seed(), seconds, cpu, loads, min(1.0, others), self._loop, tuple(self._entries))

    def _is_whole(self, session: pytest.Session) -> bool:
        """Whether every test was to run: none was chosen by a name or by the last run, and nothing ended it early."""
        chosen = [self._config.getoption(name, None) for name in ("keyword", "deselect", "lf", "stepwise")]
        ended = session.shouldstop or session.shouldfail
        return not any(chosen) and not ended and session.exitstatus <= pytest.ExitCode.TESTS_FAILED

    def _fail(self, session: pytest.Session, faults: dict[str, str]) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        for name, line in faults.items():
            place = (name.partition("::")[0], 0, name)
            report = pytest.TestReport(name, place, {}, "failed", line, "call")
            terminal.stats.setdefault("failed", []).append(report)
        if faults and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self.faults = faults

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("what it took")
        for line in self.account.lines():
            terminalreporter.line(line)
        for line in getattr(self, "faults", {}).values():
            terminalreporter.line(line, red=True)
