"""`make everything` fails if a test or a file was skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import ROOT, soaked

PASSES = "def test_it():\n    pass\n"
SKIPS = "import pytest\n\ndef test_it():\n    pytest.skip('for lack of it')\n"
SKIPS_ALL = "import pytest\n\npytest.importorskip('nothing_of_this_name')\n"
SKIPS_WITHOUT_GPU = SKIPS.replace("def test_it", "@pytest.mark.gpu\ndef test_it") + PASSES.replace("it", "two")
FAILS = "import pytest\n\n@pytest.mark.xfail\ndef test_it():\n    assert False\n"


@pytest.mark.parametrize(("text", "more", "status"), [
    (SKIPS_WITHOUT_GPU, [], 0), (SKIPS, ["-p", "xdist", "-n", "1"], 1), (SKIPS_ALL + PASSES, [], 1), soaked(SKIPS, [], 1),
    soaked(FAILS, [], 0)],
    ids=("passes without a GPU", "skips", "skips all", "skips alone", "fails as expected"))
def test_what_is_skipped_is_a_failure(text: str, more: list[str], status: int, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(text)
    (tmp_path / "test_two.py").write_text(PASSES)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.no_skips", "-c", "/dev/null", *more, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})  # plugins take longer to import than the tests to run
    assert ran.returncode == status, ran.stdout
    assert ("skipped, and nothing may be" in ran.stdout) == bool(status)
