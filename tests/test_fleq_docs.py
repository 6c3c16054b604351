"""The pages on FLEQ are programs: their snippets run in order, in one namespace."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard.machines.fleq.blocks.block import Elementwise, FittedFunction, Scale
from punchcard.machines.fleq.machine import FleqMachine
from tests.cases import ROOT, soaked

OWN_BLOCK = (ROOT / "docs" / "your-own-block.md").read_text()


def run_snippets(page: str, count: int) -> dict[str, Any]:
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(snippets) == count
    names: dict[str, Any] = {"__name__": "page"}
    for snippet in snippets:
        exec(compile(snippet, "page", "exec"), names)
    return names


@pytest.mark.parametrize("engine", ["scratchpad", soaked(None)])
def test_the_snippets_run(engine: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run is a few loops of a machine of its own, which an engine that compiles takes long for."""
    if engine is not None:
        monkeypatch.setattr(punchcard, "run", partial(punchcard.run, engine=engine))
    names = run_snippets(OWN_BLOCK, 6)
    assert all(isinstance(block, Elementwise) for block in names["blocks"])
    assert isinstance(names["heads"], FittedFunction)
    assert isinstance(names["machine"], FleqMachine)
    assert np.array_equal(names["report"].result.memory["s"], [[9, 0]])


def test_a_scale_has_what_the_page_says() -> None:
    row = next(line for line in OWN_BLOCK.splitlines() if "`enclosure(scale)`" in line)
    also = re.findall(r"`(\w+)`", row.split("`scale` also has")[1])
    assert len(also) == 4
    for name in also:
        assert isinstance(getattr(Scale(2, 16.0, 2.0**-53), name), int | float)


def test_the_snippets_about_the_language_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed: with no name that the page does not define."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names = run_snippets((ROOT / "docs" / "fleq-language.md").read_text(), 4)
    assert np.allclose(names["inverse"], [[0.3, -0.1], [-0.2, 0.4]])
    assert (tmp_path / "newton.safetensors").exists()
    assert "maximum" in names["program"].functions
