"""The page on function blocks of one's own is a program: its snippets run in order, in one namespace."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from punchcard.machines.fleq.blocks.block import Elementwise, FittedFunction
from punchcard.machines.fleq.machine import FleqMachine
from tests.cases import ROOT

PAGE = (ROOT / "docs" / "your-own-block.md").read_text()


def test_the_snippets_run() -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(snippets) == 5
    names: dict[str, Any] = {"__name__": "your-own-block"}
    for snippet in snippets:
        exec(compile(snippet, "your-own-block.md", "exec"), names)
    assert all(isinstance(block, Elementwise) for block in names["blocks"])
    assert isinstance(names["heads"], FittedFunction)
    assert isinstance(names["machine"], FleqMachine)
    assert np.array_equal(names["report"].result.memory["s"], [[9, 0]])
