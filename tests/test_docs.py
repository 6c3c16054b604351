"""Docs that can fail: snippets run, the file tree is true, every command and option is described."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import punchcard
from punchcard import cli
from punchcard.machines.subleq.text import assemble
from tests.cases import ROOT

README = (ROOT / "README.md").read_text()
DOCS = sorted((ROOT / "docs").glob("*.md"))


def test_readme_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snippets = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert snippets
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), {})


def test_snippets_about_engines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as they are read."""
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "engines.md").read_text(), re.DOTALL)
    assert len(snippets) == 3
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, "engines.md", "exec"), names)


def test_the_program_in_the_readme_is_the_example() -> None:
    text = README[README.index("    ; product = a * b"):].split("\n\n")[0]
    assert assemble(text) == punchcard.load(ROOT / "examples" / "multiply.subleq")


def test_the_assembly_in_the_docs_assembles() -> None:
    text = (ROOT / "docs" / "language.md").read_text()
    blocks = re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
    assert len(blocks) == 2
    assemble(blocks[0])
    from punchcard.machines.subleq.minsky import text as minsky

    minsky.assemble(blocks[1])


def test_the_file_tree_is_true() -> None:
    tree = README[README.index("## What is where"):README.index("## Figures")]
    for name in re.findall(r"[A-Za-z_-]+\.(?:py|md)\b", tree):
        places = [p for folder in ("src", "docs", "tests", "examples") for p in (ROOT / folder).rglob(name)]
        assert places, f"{name} is not in the repository"
    for folder in [p.name for p in (ROOT / "src" / "punchcard").iterdir() if p.is_dir() and p.name != "__pycache__"]:
        assert f"{folder}/" in tree, f"{folder}/ is not in the tree"


def test_every_command_and_option_is_described() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text()
    assert isinstance(cli.main, click.Group)
    sections = {re.match(r"`punchcard (\w+)", part).group(1): part  # type: ignore[union-attr]
                for part in text.split("\n## ")[1:] if part.startswith("`punchcard")}
    assert sections.keys() == cli.main.commands.keys()
    for name, command in cli.main.commands.items():
        text = sections[name]
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert any(option in text for option in parameter.opts), f"{name} {parameter.opts}"


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_paper_table_names_real_files_and_tests() -> None:
    table = (ROOT / "docs" / "PAPER.md").read_text()
    tests = "".join(p.read_text() for p in (ROOT / "tests").glob("*.py"))
    for name in re.findall(r"`(test_\w+)`", table):
        assert f"def {name}(" in tests, name
    for name in re.findall(r"`([\w/]+/\w+\.py)`", table):
        assert (ROOT / "src" / "punchcard" / name).exists(), name


def test_the_figures_in_the_readme() -> None:
    """The table of designs is what the machines have."""
    for design in ("paper", "two-layer", "one-layer"):
        machine = punchcard.SubleqMachine(word_bits=16, memory=101, instructions=152, design=design)
        shapes = machine.model.shapes
        parameters, nonzero = machine.model.parameter_count()
        row = (f"| `{design}` | {len(shapes)} | {', '.join(str(s.heads) for s in shapes)} | {machine.layout.width} | "
               f"{', '.join(str(s.hidden) for s in shapes)} | {parameters:,} ({nonzero:,}) |")
        assert row in README
