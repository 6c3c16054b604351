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
        assert watched.page.locator(".fixed").is_visible() == (not entry["language"]), "a prepared program is called so"
        if entry["language"] == "subleq":
            program = assemble(entry["text"])
            oracle = SubleqInterpreter(program, entry["bits"], len(program.memory))
            oracle.run(5000)
            assert oracle.halted
            assert to_the_end(watched)["loops"] == oracle.steps + 1
    assert not watched.foreign(address)
    assert not watched.problems


LONG = "a_long_name_" * 30
LONG_PROGRAM = f".data\n{LONG} 1\nb 3\n.code\nloop: subleq {LONG}, b\nhalt\n"
CARET_IS_SEEN = """() => {
  const quoted = document.querySelector(".problem pre");
  const lengths = quoted.textContent.split("\\n").map((line) => line.length);
  const caret = lengths[1] / Math.max(...lengths) * quoted.scrollWidth;
  return quoted.scrollLeft <= caret && caret <= quoted.scrollLeft + quoted.clientWidth;
}"""


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone(watched: Watched, address: str, width: int) -> None:
    """Nothing is wider than the screen, whatever things are called; the buttons are in one row; the caret is in sight."""
    page = watched.page
    page.goto("about:blank")
    page.set_viewport_size({"width": width, "height": 640})
    try:
        page.goto(address)
        page.wait_for_selector(".stage [data-moment]")
        assert len({round(box["y"]) for one in page.locator(".buttons button").all() if (box := one.bounding_box())}) == 1
        for text in ("", LONG_PROGRAM, f".data\na 1\n.code\nloop: subleq a, {LONG}, loop\nhalt\n"):
            if text:
                run(watched, text, bits=8)
            page.evaluate("document.getElementById('punchcard-view').playground.view?.on_go(5)")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CARET_IS_SEEN)
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})


def test_long_names_are_cut(watched: Watched) -> None:
    """Above the card, and among the values, which show the whole name on hover."""
    run(watched, LONG_PROGRAM, bits=8)
    watched.page.evaluate("document.getElementById('punchcard-view').playground.view.on_go(5)")
    watched.page.wait_for_selector(".stage [data-moment='5']")
    assert max(map(len, watched.page.locator(".arrows .name").evaluate_all(
        "(all) => all.map((one) => one.firstChild.data)"))) <= 18
    value = watched.page.locator(".values td").nth(1)
    assert len(value.inner_text().rstrip("●")) <= 40
    assert LONG in (value.get_attribute("title") or "")
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert watched.page.locator(".stage header p").first.inner_text() == "8-bit words, 2 cells, 2 instructions"


def test_what_the_page_has_is_said(watched: Watched) -> None:
    """For which sizes there are weights; another language comes with an example."""
    page = watched.page
    words = "memories of up to 2,048 words of 16 bits"
    rooms = {"subleq": "cards of up to 256 columns, with words of 8 or 16 bits", "asq": words, "brainfuck": words,
             "turing": "up to 16 states, 7 symbols and 30 squares"}
    page.evaluate("document.getElementById('punchcard-view').playground.load("
                  "document.getElementById('punchcard-view').playground.data.gallery[0])")
    for language, room in rooms.items():
        page.get_by_label("The language").select_option(language)
        assert f"This page has weights for {room}." in page.locator(".editor .hint").inner_text()
        first = next(entry for entry in gallery() if entry["language"] == language)
        assert page.get_by_label("Your program").input_value() == first["text"]
    page.get_by_label("Your program").fill("tape _[1]_\nmine 1 -> 1 R mine\n")
    page.get_by_label("The language").select_option("subleq")
    assert page.get_by_label("Your program").input_value().startswith("tape")


def test_what_was_asked_for_last_is_shown(watched: Watched) -> None:
    """A run that has to be unpacked may be ready after the one that was asked for later."""
    watched.page.evaluate("""async () => {
      const { playground } = document.getElementById("punchcard-view");
      const entry = (name) => playground.data.gallery.find(({ id }) => id === name);
      await Promise.all(["hello_c", "primes", "newton", "multiply"].map((name) => playground.load(entry(name))));
    }""")
    assert watched.page.locator(".entry[aria-pressed=true] .title").inner_text() == "Six times three"
    assert watched.page.locator(".stage h1").all_inner_texts() == ["Six times three"]


def test_a_program_without_an_end(watched: Watched, address: str) -> None:
    """The page stays alive: what is far away is refused, and a search ends; both say how far they came."""
    page = watched.page
    page.goto("about:blank")
    page.add_init_script("if (location.hash.includes('&quick')) { const now = performance.now.bind(performance);"
                         " performance.now = () => 50 * now(); }")
    text = ".data\na 0\n.code\nloop: subleq a, a, loop\nhalt\n"
    link = run_link(watched, address, text)
    page.goto("about:blank")
    page.goto(f"{link}&quick")
    page.wait_for_selector(".stage [data-moment]")
    note = page.locator(".stage .note")
    page.locator(".lines li").nth(4).locator("code").click()
    page.keyboard.press("k")
    note.get_by_text("No breakpoint was found after this moment, up to loop").wait_for()
    page.get_by_label("Go to loop").fill("1000000000000")
    page.keyboard.press("Enter")
    note.get_by_text("Loop 1,000,000,000,000 is far away: this page has computed").wait_for()
    page.get_by_label("End of the run").click()
    note.get_by_text("No end of the run was found after this moment, up to loop").wait_for()
    page.get_by_role("button", name="Next", exact=True).click()
    page.wait_for_selector(".stage [data-moment='1']")
    assert not watched.problems


def run_link(watched: Watched, address: str, text: str) -> str:
    """The address of the page with a program."""
    watched.page.goto(address)
    watched.page.wait_for_selector(".stage [data-moment]")
    return address + str(run(watched, text, bits=8)["hash"])


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


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("playground", "--html", tmp_path / "p.html", status=0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "punchcard-playground.html").symlink_to(tmp_path / "other")
    invoke("playground", "--no-open", status=0)
    assert not (tmp_path / "other").exists(), "no link of somebody else's is followed in a folder for all"
    (own,) = tmp_path.glob("punchcard-*/playground.html")
    assert own.parent.stat().st_mode & 0o077 == 0
    assert "Six times three" in (tmp_path / "p.html").read_text(encoding="utf-8")
