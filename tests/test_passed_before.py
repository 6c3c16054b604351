"""A long run of tests that was stopped goes on where it was: `make soak PASSED=FILE`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import ROOT, soaked

TESTS = """
import os
import pytest

@pytest.fixture
def taken_down():
    yield
    assert "MENDED" in os.environ

def test_one():
    pass

def test_with_fixture(taken_down):
    pass

def test_two():
    assert "MENDED" in os.environ
"""


@pytest.mark.parametrize("more", [["-p", "xdist", "-n", "1"], soaked([])])
def test_a_stopped_run_goes_on(more: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    passed = tmp_path / "passed"

    def run(**environment: str) -> tuple[int, str]:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "tests.passed_before", f"--passed={passed}", "-c", "/dev/null",
             *more, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment})
        return ran.returncode, ran.stdout

    status, output = run()
    assert (status, [line.split("::")[-1] for line in passed.read_text().splitlines()]) == (1, ["test_one"]), output
    passed.write_text(passed.read_text() + "1.0")  # a line that was not finished
    status, output = run(MENDED="1")
    assert status == 0, output
    assert "2 passed" in output
    assert "1 tests had passed before, 2 now" in output
    assert [line.split("::")[-1] for line in passed.read_text().splitlines()] == [
        "test_one", "test_with_fixture", "test_two"]
    status, output = run()
    assert (status, "3 tests had passed before, 0 now" in output) == (0, True), output
    (tmp_path / "test_it.py").unlink()
    assert run()[0] == pytest.ExitCode.NO_TESTS_COLLECTED, "nothing was found, so nothing of it had passed before"
