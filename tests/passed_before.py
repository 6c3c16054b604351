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
    """Leaves out the tests of a file of lines, and adds a line for each that passes."""

    def __init__(self, file: Path, before: dict[str, float], *, writes: bool) -> None:
        self.file, self.before, self.writes = file, before, writes
        self.now: dict[str, float] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        known = [item for item in items if item.nodeid in self.before]
        if known:
            config.hook.pytest_deselected(items=known)
            items[:] = [item for item in items if item.nodeid not in self.before]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker that takes the place of one that died must leave out the same tests."""
        node.workerinput["passed_before"] = self.before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.writes and report.when == "call" and report.passed:
            self.now[report.nodeid] = report.duration
            with self.file.open("a") as file:
                file.write(f"{report.duration:.2f} {report.nodeid}\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Without a test to run, all have passed before; or, with an empty file, none was found."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.before:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        passed = {**self.before, **self.now}
        terminalreporter.write_line(f"{len(self.before):,} tests had passed before, {len(self.now):,} now: "
                                    f"{sum(passed.values()):,.0f} seconds in all")


def _lines(file: Path) -> dict[str, float]:
    lines = file.read_text().splitlines() if file.exists() else []
    return {name: float(seconds) for seconds, name in (line.split(" ", 1) for line in lines)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--passed", type=Path, required=True, metavar="FILE", help="the tests that passed, to be left out")


def pytest_configure(config: pytest.Config) -> None:
    given, file = getattr(config, "workerinput", None), config.getoption("--passed")
    before = _lines(file) if given is None else given["passed_before"]
    config.pluginmanager.register(PassedTests(file, before, writes=given is None))
