"""The snippets of docs/python.md run one after the other, and its figures are true."""

from __future__ import annotations

import linecache
import textwrap
from pathlib import Path

from tests.cases import ROOT
from tests.pages import page, snippets


def test_snippets_run(tmp_path: Path) -> None:
    """Each snippet is a file of its own, since a program needs its source."""
    names: dict[str, object] = {"__name__": "python"}
    for number, text in enumerate(snippets(page("python.md"))):
        file = f"snippet {number} of python.md"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)


def test_functions_that_pages_show_are_those_that_run() -> None:
    """The README shows what the snippets of this page run; the page shows an example as its file has it."""
    ran = "\n".join(snippets(page("python.md")))
    readme = (ROOT / "README.md").read_text()
    for name in ("inverse", "gcd"):
        assert function(name, textwrap.dedent(ran)) == function(name, textwrap.dedent(part(readme, "## Python in")))
    attention = (ROOT / "examples" / "python" / "attention.py").read_text()
    assert function("attention", attention) == function("attention", page("python.md").replace("\n    ", "\n"))


def part(text: str, heading: str) -> str:
    """What is below a heading, its indented lines only."""
    lines = text[text.index(heading):].split("\n## ")[0].splitlines()
    return "\n".join(line for line in lines if not line or line.startswith("    "))


def function(name: str, text: str) -> str:
    """The lines of a function in a text."""
    text = text[text.index(f"def {name}("):]
    return text[: text.index("\n\n")]
