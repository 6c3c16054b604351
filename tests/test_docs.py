"""Docs that can fail: snippets run, results are what is printed, named files are there, every option is described."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

import click
import numpy as np
import pytest
from docs.draw import running
from docs.draw.__main__ import DRAWN
from docs.draw.svg import PICTURES

import punchcard
from punchcard.cli import main
from punchcard.machines.fleq.blocks.block import Elementwise, FittedFunction, Scale
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.subleq import minsky
from punchcard.machines.subleq.text import assemble
from tests.cases import ROOT, soaked
from tests.command_line import invoke
from tests.pages import page, run_snippets, snippets

README = (ROOT / "README.md").read_text()
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
RUN_ELSEWHERE = {"linear-algebra.md", "your-own-block.md", "your-own-machine.md", "python.md", "interop.md",
                 "fleq-language.md", "language-models.md", "widened.md"}
"""Pages whose snippets tests of their own run, and look at what they give."""


@pytest.mark.parametrize("path", [p for p in PAGES if p.name not in RUN_ELSEWHERE and snippets(p.read_text())],
                         ids=lambda p: p.name)
def test_snippets_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    run_snippets(path.read_text())


def test_the_snippets_on_the_language_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert len(snippets(page("fleq-language.md"))) == 4
    names = run_snippets(page("fleq-language.md"))
    assert np.allclose(names["inverse"], [[0.3, -0.1], [-0.2, 0.4]])
    assert (tmp_path / "newton.safetensors").exists()
    assert "maximum" in names["program"].functions


@pytest.mark.parametrize("engine", ["scratchpad", soaked(None)])
def test_the_snippets_on_blocks_run(engine: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run is a few loops of a machine of its own, which an engine that compiles takes long for."""
    if engine is not None:
        monkeypatch.setattr(punchcard, "run", partial(punchcard.run, engine=engine))
    assert len(snippets(page("your-own-block.md"))) == 6
    names = run_snippets(page("your-own-block.md"))
    assert all(isinstance(block, Elementwise) for block in names["blocks"])
    assert isinstance(names["heads"], FittedFunction)
    assert isinstance(names["machine"], FleqMachine)
    assert np.array_equal(names["report"].result.memory["s"], [[9, 0]])


def test_a_scale_has_what_the_page_on_blocks_says() -> None:
    row = next(line for line in page("your-own-block.md").splitlines() if "`enclosure(scale)`" in line)
    also = re.findall(r"`(\w+)`", row.split("`scale` also has")[1])
    assert len(also) == 4
    for name in also:
        assert isinstance(getattr(Scale(2, 16.0, 2.0**-53), name), int | float)


# Pictures, programs and results


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_are_what_is_drawn_now(name: str) -> None:
    """A picture of a run is drawn again from that run, a chart from the figures beside it."""
    assert DRAWN[name]() == (PICTURES / f"{name}.svg").read_text(), "draw it anew: make pictures"


def test_the_film_tells_what_the_interpreter_computes() -> None:
    """The product at its end, and a loop for each instruction and one to fetch the first; it stands still on request."""
    film = (PICTURES / "running.svg").read_text()
    program = punchcard.load(ROOT / "examples" / "multiply.subleq").with_values(running.VALUES)
    result = punchcard.run(program, design="two-layer", word_bits=8, engine="dense").result
    assert result.memory["product"] == running.VALUES["a"] * running.VALUES["b"]
    assert f">halted: {running.VALUES['a']} × {running.VALUES['b']} = {result.memory['product']}</text>" in film
    assert sorted({int(loop) for loop in re.findall(r">loop (\d+) of", film)}) == list(range(2, result.loops + 1))
    assert "prefers-reduced-motion" in film


def test_the_card_names_its_rows_and_regions() -> None:
    drawn = (PICTURES / "card.svg").read_text()
    layout = punchcard.build(punchcard.load(ROOT / "examples" / "multiply.subleq"), design="two-layer", word_bits=8).layout
    for name in [*(block.name for block in layout.blocks), *(region.name for region in layout.regions)]:
        assert f">{name}</text>" in drawn


def test_every_picture_is_shown() -> None:
    shown = {Path(target).name for path in PAGES for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", path.read_text())}
    assert {path.name for path in PICTURES.glob("*.svg")} <= shown


def test_the_program_in_the_readme_is_the_example() -> None:
    text = README[README.index("    ; product = a * b"):].split("\n\n")[0]
    assert assemble(text) == punchcard.load(ROOT / "examples" / "multiply.subleq")


def test_the_result_in_the_readme_is_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what the engine line measures."""
    shown = README[README.index("    $ punchcard run"):].split("\n\n")[0]
    command, *printed = [line.strip() for line in shown.split("\n")]
    monkeypatch.chdir(ROOT)
    result = invoke(*shlex.split(command)[2:], status=0)
    lines = [without_figures(line) for line in result.stdout.splitlines()]
    expected = [without_figures(line) for line in printed if line != "..."]
    assert len(expected) > 1
    assert [line for line in lines if line in expected] == expected


def without_figures(line: str) -> str:
    return re.sub(r"[\d.,]+ ", "", line) if line.startswith("engine") else line


def test_the_assembly_in_the_docs_assembles() -> None:
    first, second = re.findall(r"(?:^    .*\n)+", page("language.md"), re.MULTILINE)
    assemble(first)
    minsky.assemble(second)


# Names: commands, options, files


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_commands_and_their_options_exist(path: Path) -> None:
    """Every command line that begins with `punchcard` in a block or in quotes: command, options, and files of examples."""
    assert isinstance(main, click.Group)
    found = re.findall(r"(?:^    (?:\$ )?|`|\| )(punchcard [a-z][a-z-]* [^`|\n]*)", path.read_text(), re.MULTILINE)
    for line in found:
        _, name, *words = shlex.split(line, comments=True)
        assert name in main.commands, line
        known = {option for parameter in parameters(main.commands[name]) for option in parameter.opts}
        for word in words:
            if re.match(r"--?[a-z]", word):
                assert word.split("=")[0] in known, f"{word} in: {line}"
            if word.startswith("examples/"):
                assert (ROOT / word).exists(), line


def parameters(command: click.Command) -> list[click.Parameter]:
    """Those of a command, and of the commands that it has."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return [*command.params, *(parameter for each in below for parameter in parameters(each))]


def test_every_command_and_option_is_described() -> None:
    assert isinstance(main, click.Group)
    sections = {re.match(r"`punchcard ([\w-]+)", part).group(1): part  # type: ignore[union-attr]
                for part in page("command-line.md").split("\n## ")[1:] if part.startswith("`punchcard")}
    assert sections.keys() == main.commands.keys()
    for name, command in main.commands.items():
        for parameter in parameters(command):
            if isinstance(parameter, click.Option):
                assert any(f"`{option}" in sections[name] for option in parameter.opts), f"{name} {parameter.opts}"


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_page_is_reached() -> None:
    """From the README, over links."""
    reached, to_read = set[Path](), [ROOT / "README.md"]
    while to_read:
        here = to_read.pop()
        reached.add(here)
        links = {(here.parent / target).resolve() for target in re.findall(r"\][([]([^])#:]+\.md)", here.read_text())}
        to_read += [path for path in links - reached if path.exists()]
    assert not {path.resolve() for path in DOCS} - reached


def test_the_file_tree_is_true() -> None:
    tree = README[README.index("## What is where"):].split("\n\n")[1]
    for name in re.findall(r"[A-Za-z_-]+\.(?:py|md)\b", tree):
        places = [p for folder in ("src", "docs", "tests", "examples") for p in (ROOT / folder).rglob(name)]
        assert places, f"{name} is not in the repository"
    for folder in [p.name for p in (ROOT / "src" / "punchcard").iterdir() if p.is_dir() and p.name != "__pycache__"]:
        assert f"{folder}/" in tree, f"{folder}/ is not in the tree"


def test_the_files_that_the_architecture_names_exist() -> None:
    """Paths from src/punchcard or from the root; every folder of the package is named."""
    text = page("architecture.md")
    for name in re.findall(r"`([\w./-]+(?:\.(?:py|md|subleq|fleq|asq|toml)|/))`", text):
        assert any((root / name).exists() for root in (ROOT / "src" / "punchcard", ROOT)), name
    for folder in (ROOT / "src" / "punchcard").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"{folder.name}/" in text, f"{folder.name}/ is not in architecture.md"


@pytest.mark.parametrize("name", ["PAPER.md", "reliability.md"])
def test_tables_name_real_files_and_tests(name: str) -> None:
    table = page(name)
    tests = "".join(p.read_text() for p in (ROOT / "tests").glob("*.py"))
    for test in re.findall(r"`(test_\w+)`", table):
        assert f"def {test}(" in tests, test
    for file in re.findall(r"`(test_\w+\.py)`", table):
        assert (ROOT / "tests" / file).exists(), file
    for file in re.findall(r"`([\w/]+/\w+\.py)`", table):
        assert (ROOT / "src" / "punchcard" / file).exists(), file


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda p: p.name)
def test_plain_english(path: Path) -> None:
    """`is not a`, which is read once, in place of `is no`."""
    text = " ".join(path.read_text().split())
    assert not re.findall(r"(?<![Tt]here )\b(?:is|are|was) no (?!longer|more|less)[a-z]+", text)


# Figures


def test_the_figures_of_the_designs() -> None:
    """The table of designs is what the machines have."""
    for design in ("paper", "two-layer", "one-layer"):
        machine = punchcard.SubleqMachine(word_bits=16, memory=101, instructions=152, design=design)
        shapes = machine.model.shapes
        parameters, nonzero = machine.model.parameter_count()
        row = (f"| `{design}` | {len(shapes)} | {', '.join(str(s.heads) for s in shapes)} | {machine.layout.width} | "
               f"{', '.join(str(s.hidden) for s in shapes)} | {parameters:,} ({nonzero:,}) |")
        assert row in page("machine.md")


def test_the_speeds_in_the_readme_are_those_of_the_engines_page() -> None:
    for subleq, fleq in (("dense", "dense"), ("scratchpad", "scratchpad"), ("lowered", "lowered"), ("python", "numpy")):
        figures = []
        for row in (f"multiply | two-layer | 1,024 | {subleq}", f"newton | 4 | compact | 1,000 | {fleq}"):
            found = re.search(rf"\| {re.escape(row)} \| ([\d.,]+) \|", page("engines.md"))
            assert found, row
            figures.append(found[1])
        assert f"| {figures[0]} | {figures[1]} |" in README


@pytest.mark.parametrize(("row", "test"), [
    ("SUBLEQ, each design", "test_subleq_machine"), ("FLEQ", "test_fleq_machine"), ("images", "test_von_neumann")])
def test_the_instructions_compared_are_those_that_the_tests_have(row: str, test: str) -> None:
    text = (ROOT / "tests" / f"{test}.py").read_text()
    quick, soak = (f"{int(count):,}" for count in re.findall(r"^\w*STEPS\w* = ([\d_]+)$", text, re.MULTILINE))
    assert f"| {row} | {quick} | {soak} |" in page("architecture.md")
