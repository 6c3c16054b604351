"""The playground in a real browser: its cards are the dense engine's, its errors the assembler's, its links lead back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import punchcard
from punchcard.card.formats import as_array
from punchcard.errors import ProgramError, SourceError
from punchcard.machines.subleq.oracle import SubleqInterpreter
from punchcard.machines.subleq.text import assemble, disassemble
from punchcard.viewer.playground import gallery, write_playground
from tests.browsing import Watched, browser
from tests.command_line import invoke
from tests.playgrounds import entries, run, to_the_end
from tests.random_programs import random_program


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("playground") / "playground.html"
    assert write_playground(file) < 1_200_000
    return file.as_uri()


@pytest.fixture(scope="module")
def watched(address: str) -> Iterator[Watched]:
    with browser() as found:
        page = Watched(found)
        page.page.goto(address)
        page.page.wait_for_selector(".stage [data-moment]")
        yield page


@pytest.mark.parametrize("bits", [8, 16])
def test_cards_are_the_dense_engines(watched: Watched, bits: int) -> None:
    """Punched and computed in the page, bit by bit, for random programs."""
    for seed, (cells, instructions) in enumerate([(1, 2), (3, 4), (5, 8), (9, 14), (20, 30), (70, 90)]):
        program = random_program(random.Random(seed), bits, cells, instructions)
        machine = punchcard.build(program, design="two-layer", word_bits=bits)
        found = run(watched, disassemble(program), bits=bits, moments=range(0, 28, 4))
        card = machine.punch(program)
        for loop, (shown, _) in enumerate(found["cards"]):
            assert np.array_equal(entries(shown, machine.layout.columns), as_array(card)), (seed, loop)
            card = machine.model(card)
    assert not watched.problems


@pytest.mark.parametrize("text", [
    ".data\na 1\n.code\nsubleq a, bb\n", ".data\na 1\n.code\nloop: sublq a, a\nhalt", "a 1", ".data\na 1\na 2\n.code\nhalt",
    ".data\na 1\n.code\nsubleq a, a, lop\nloop: halt", ".data\na 1x\n.code\nhalt", ".data\na 1\n.code\nsubleq a\n",
    ".data\na 1\n.code\nsubleq a, a, 7\nhalt", ".data\na 1\n.code\nhalt a", ".data\nlist 1 2\n.code\nsubleq list+2, list\n",
    ".data\n", ".date\n", ".data\na 1\n.code\nsubleq 3, a\n"])
def test_errors_are_the_assemblers(watched: Watched, text: str) -> None:
    with pytest.raises(ProgramError) as refused:
        assemble(text)
    problem = run(watched, text, bits=8)["problem"]
    assert problem.splitlines()[0] == str(refused.value)
    if isinstance(refused.value, SourceError):
        *_, line, caret = problem.splitlines()
        assert line == text.splitlines()[refused.value.line - 1]
        assert caret.index("^") == refused.value.column - 1


def test_a_link_shows_the_program(watched: Watched, address: str) -> None:
    text = ".data\nn 3  ; größer als 0 – ok\none 1\n.code\nloop: subleq one, n, done\n subleq one, one, loop\ndone: halt\n"
    link = address + run(watched, text, bits=16)["hash"]
    watched.page.goto("about:blank")
    watched.page.goto(link)
    watched.page.wait_for_selector(".stage [data-moment]")
    assert watched.page.get_by_label("Your program").input_value() == text
    assert watched.page.get_by_label("Bits of a word").input_value() == "16"
    link = address + run(watched, "+++.", "brainfuck", input="ä")["hash"]
    watched.page.goto("about:blank")
    watched.page.goto(link)
    watched.page.wait_for_selector(".stage [data-moment]")
    shown = [watched.page.get_by_label(name).input_value() for name in ("The language", "Your program", "Its input")]
    assert shown == ["brainfuck", "+++.", "ä"]
    watched.page.goto("about:blank")
    watched.page.goto(address + "#subleq=%%%")
    assert "was it cut" in watched.page.locator(".problem").inner_text()


def test_too_large_for_the_page(watched: Watched) -> None:
    assert "room for 256" in run(watched, ".data\na " + "1 " * 260 + "\n.code\nhalt\n", bits=8)["problem"]
    assert "does not fit a word of 8 bits" in run(watched, ".data\na 200\n.code\nhalt\n", bits=8)["problem"]


def test_the_gallery(watched: Watched, address: str) -> None:
    """Every entry has a title, words and a picture, and opens; programs of SUBLEQ end where the interpreter does."""
    assert len(gallery()) >= 10
    assert len({entry["id"] for entry in gallery()}) == len(gallery())
    for entry in gallery():
        assert entry["picture"].startswith("<svg")
        assert entry["title"]
        assert entry["look"].endswith((".", "?"))
        watched.page.goto("about:blank")
        watched.page.goto(f"{address}#show={entry['id']}")
        watched.page.wait_for_selector(".stage [data-moment]")
        assert watched.page.locator(".entry[aria-pressed=true] .title").inner_text() == entry["title"]
        assert watched.page.locator(".stage .sentence").inner_text()
        if entry["language"] == "subleq":
            program = assemble(entry["text"])
            oracle = SubleqInterpreter(program, entry["bits"], len(program.memory))
            oracle.run(5000)
            assert oracle.halted
            assert to_the_end(watched)["loops"] == oracle.steps + 1
    assert not watched.foreign(address)
    assert not watched.problems


def test_a_phone(watched: Watched, address: str) -> None:
    watched.page.goto("about:blank")
    watched.page.set_viewport_size({"width": 390, "height": 844})
    watched.page.goto(address)
    watched.page.wait_for_selector(".stage [data-moment]")
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390
    watched.page.set_viewport_size({"width": 1280, "height": 800})


def test_a_large_card_keeps_few_columns(watched: Watched, address: str) -> None:
    """Where a step changes all columns alike, those with a part in it stay; the number of the others is said."""
    watched.page.goto("about:blank")
    watched.page.goto(f"{address}#show=gcd")
    watched.page.wait_for_selector(".stage [data-moment]")
    shown = watched.page.evaluate("""async () => {
      const { view } = document.getElementById("punchcard-view").playground;
      for (const moment of [19, 20, 23]) await view.on_go(moment);
      return view.card.across.places.length;
    }""")
    assert shown < 80
    assert watched.page.locator(".stage .away").inner_text() == f"{1027 - shown:,} columns left out"
    assert watched.page.get_by_label("Go to loop").input_value() == "6"
    assert watched.page.locator(".stage .told b").inner_text().startswith("Loop 6, ")
    seen = watched.page.locator(".entry[aria-pressed=true]").bounding_box()
    assert seen is not None
    assert seen["x"] + seen["width"] <= 1280, "the strip is scrolled to the chosen entry"


def test_the_command(tmp_path: Path) -> None:
    invoke("playground", "--html", tmp_path / "p.html", status=0)
    assert "Six times three" in (tmp_path / "p.html").read_text(encoding="utf-8")
