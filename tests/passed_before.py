"""A plugin of pytest for runs of hours: a run that was stopped goes on with the tests that have not passed yet.

    python -m pytest -p tests.passed_before --passed=FILE

The file has a line for each test that passed, with its seconds. Without it, or with an empty one, all tests run. After a
space instead of `=` pytest would take the file for one of tests, and look for its settings there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


class PassedTests:
    """Leaves out the tests of a file of lines, and adds a line for each that passes, once its fixtures are taken down."""

    def __init__(self, file: Path, before: dict[str, float], *, writes: bool) -> None:
        self.file, self.before, self.writes = file, before, writes
        self.now: dict[str, float] = {}
        self._left_out, self._called = 0, dict[str, float]()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        known = [item for item in items if item.nodeid in self.before]
        self._left_out += len(known)
        if known:
            config.hook.pytest_deselected(items=known)
            items[:] = [item for item in items if item.nodeid not in self.before]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker that takes the place of one that died must leave out the same tests."""
        node.workerinput["passed_before"] = self.before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._left_out += getattr(node, "workeroutput", {}).get("left_out", 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self.writes or not report.passed:
            return
        if report.when == "call":
            self._called[report.nodeid] = report.duration
        elif report.when == "teardown" and report.nodeid in self._called:
            self.now[report.nodeid] = self._called[report.nodeid]
            with self.file.open("a") as file:
                file.write(f"{self.now[report.nodeid]:.2f} {report.nodeid}\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Without a test to run, it is well where all that were found had passed before."""
        if not self.writes:
            session.config.workeroutput["left_out"] = self._left_out  # type: ignore[attr-defined]
        elif session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._left_out:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        passed = {**self.before, **self.now}
        terminalreporter.write_line(f"{len(self.before):,} tests had passed before, {len(self.now):,} now: "
                                    f"{sum(passed.values()):,.0f} seconds in all")


def _lines(file: Path) -> dict[str, float]:
    """The tests of a file. What a run that was killed had begun to write is taken away."""
    if not file.exists():
        return {}
    whole, end, _ = file.read_text().rpartition("\n")
    file.write_text(whole + end)
    return {name: float(seconds) for seconds, name in (line.split(" ", 1) for line in whole.splitlines())}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--passed", type=Path, required=True, metavar="FILE", help="the tests that passed, to be left out")


def pytest_configure(config: pytest.Config) -> None:
    given, file = getattr(config, "workerinput", None), config.getoption("--passed")
    before = _lines(file) if given is None else given["passed_before"]
    config.pluginmanager.register(PassedTests(file, before, writes=given is None))
