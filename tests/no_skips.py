"""A plugin of pytest for `make everything`: whatever is skipped is a failure, since all that tests need is installed.

A GPU cannot be installed: a test with the mark `gpu` may be skipped.

    python -m pytest -p tests.no_skips
"""

from __future__ import annotations

import pytest


class SkipCheck:
    """Counts what was skipped, in the process that all reports come to."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail") and "gpu" not in getattr(report, "keywords", ()):
            self.skipped.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, and nothing may be")
            terminalreporter.write_line("\n".join(self.skipped))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SkipCheck())
