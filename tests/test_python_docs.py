"""The snippets of docs/python.md run one after the other, and its figures are true."""

from __future__ import annotations

import linecache
from pathlib import Path

from tests.test_docs import page, snippets


def test_snippets_run(tmp_path: Path) -> None:
    """Each snippet is a file of its own, since a program needs its source."""
    names: dict[str, object] = {"__name__": "python"}
    for number, text in enumerate(snippets(page("python.md"))):
        file = f"snippet {number} of python.md"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)
