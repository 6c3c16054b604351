"""The notebooks run, cell by cell. They say themselves what must hold."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases import EXAMPLES

NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


def code(path: Path) -> list[str]:
    cells = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> None:
    """As a notebook does: what stands alone at the end of a cell is shown, so it is asked for its text."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        assert repr(shown)
        if hasattr(shown, "_repr_html_"):
            shown._repr_html_()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_cells_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, which has torch already. `test_site.py` runs the notebooks in kernels."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(path.parent)
    names: dict[str, Any] = {"__name__": path.stem}
    sources = code(path)
    assert "assert " in "".join(sources), "a notebook checks what it claims"
    for source in sources:
        run_cell(source, names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_outputs_are_not_kept(path: Path) -> None:
    """They would be old soon, and large."""
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
