"""The page in a real browser: what it shows is what the plain interpreter has, on a machine of each kind."""

from __future__ import annotations

import base64
import itertools
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard.errors import printable
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.von_neumann.isa import Image
from punchcard.viewer import page as files
from punchcard.viewer.html import write_html
from punchcard.viewer.session import Session
from tests import hostile
from tests.browsing import Watched, served, settled
from tests.cases import EXAMPLES, soaked
from tests.fuzzing import samples
from tests.opened import Opened, opened

INPUT = b"5 3\n"
# file, options -> loops to click through
CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "two layers": ("multiply.subleq", {"design": "two-layer"}, 6),
    "the paper's": ("multiply.subleq", {"design": "paper"}, 4),
    "one layer": ("multiply.subleq", {"design": "one-layer"}, 4),
    "fleq": ("newton.fleq", {}, 4),
    "von neumann": ("von_neumann/sort.asq", {"memory": 1024}, 5),
    "risc-v": ("riscv/hi.s", {"memory": 64}, 3),
    "compiled c": ("riscv/bin/hello.elf", {"memory": 4096}, 5),
    "turing": ("turing/increment.tm", {}, 5),
}
VALUES = """() => Object.fromEntries([...document.querySelectorAll(".values")].map((table) => [table.caption.textContent,
  Object.fromEntries([...table.rows].map((row) => [row.cells[0].textContent, row.cells[1].firstChild.data]))]))"""
MOMENT = """async () => (await document.getElementById("punchcard-view").view).moment"""


def open_case(case: str) -> Opened:
    file, options, _ = CASES[case]
    return opened(file, input=INPUT, **options)


@pytest.fixture(scope="module")
def multiply(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the model inside."""
    file = tmp_path_factory.mktemp("page") / "multiply.html"
    write_html(file, open_case("two layers").session, model=True)
    return file


def json_of(value: Any) -> Any:
    """As JSON gives it back: lists for tuples, text for keys."""
    return json.loads(json.dumps(value))


def agree(text: str, expected: Any) -> bool:
    """Whether a value on the page is the interpreter's: a number, or a matrix to the digits that are shown."""
    shown = [float(number) for number in re.findall(r"[^\s;,]+", text.replace("−", "-"))]
    wanted = [float(number) for number in getattr(expected, "ravel", lambda: [expected])()]
    return len(shown) == len(wanted) and all(abs(a - b) <= 2e-6 * max(1, abs(b)) for a, b in zip(shown, wanted, strict=True))


def compare(page: Any, found: Opened, loop: int, *, ended: bool = False) -> int:
    """The values, the program counter and the output of a loop's card; how many values there were."""
    machine, program = found.machine, found.program
    oracle, output = found.oracle(machine.steps(loop, ended=ended))
    groups = page.evaluate(VALUES)
    assert page.locator(".note:not([hidden])").count() == 0
    if machine.kind.name == "turing":  # it says nothing of its own, so the layout's values are shown
        scratchpad, head = groups["scratchpad"], oracle.state.head
        tape = [groups[f"tape[{i}]"]["square"] for i in range(len(oracle.state.tape))]
        tape[int(scratchpad["behind"])] = scratchpad["done.write"]  # on its way to the tape
        assert (tape, scratchpad["here"]) == ([program.symbols[symbol] for symbol in oracle.state.tape], str(head))
        return len(tape)
    shown = {name: value for values in groups.values() for name, value in values.items()}
    expected = {name: value for name, value in machine.values(program, oracle.state).items() if name in shown}
    for name, value in expected.items():
        assert agree(shown[name], value), (loop, name, shown[name], value)
    if loop >= machine.design.warm_up and not ended:
        counter = oracle.state.program_counter
        written = f"{counter:#06x}" if machine.counter_base == 16 else str(counter)
        assert f"instruction {written}" in page.locator(".told").inner_text()
    if machine.has_ports:
        assert page.locator(".streams pre").last.inner_text().encode() == output
    return len(expected)


@pytest.mark.parametrize("case", [soaked(case) if case == "compiled c" else case for case in CASES])
def test_a_run_on_each_machine(watched: Watched, case: str) -> None:
    """Loop by loop with clicks, half layer by half layer with keys, and to the end."""
    found, loops = open_case(case), CASES[case][2]
    with served(found.session) as address:
        page = watched.open(address)
        for loop in range(1, loops + 1):
            page.get_by_role("button", name="Next loop").click()
            settled(page)
            if loop >= found.machine.design.warm_up:
                assert compare(page, found, loop) > 0
        layers = len(found.machine.weights.layers)
        assert settled(page) == 2 * layers * loops
        page.get_by_role("button", name="Back", exact=True).click()
        assert settled(page) < 2 * layers * loops
        page.keyboard.press("n")
        settled(page)
        compare(page, found, loops)
        page.get_by_role("button", name="details").click()
        page.get_by_role("button", name="To the next halt").click()
        page.wait_for_selector(".told em")
        compare(page, found, settled(page) // (2 * layers), ended=True)
        assert not watched.problems
        assert not watched.foreign(address)


def test_a_file_shows_what_a_session_shows(watched: Watched, multiply: Path) -> None:
    """The page reads values off its own cards by the rules that Python has."""
    page, session = watched.open(multiply.as_uri()), open_case("two layers").session
    session.explore(5)
    told = "moment loop layer stage changed values story program_counter instruction line ended loops".split()
    shown = page.evaluate("""async ([moments, told]) => {
      const { source } = await document.getElementById("punchcard-view").view;
      const states = await Promise.all(moments.map((moment) => source.state(moment)));
      return states.map((state) => Object.fromEntries(told.map((name) => [name, state[name]])));
    }""", [[*range(40), 111, 112, 200], told])
    for state in shown:
        expected: Any = session.state(state["moment"])
        state["changed"], expected["changed"] = sorted(map(tuple, state["changed"])), sorted(expected["changed"])
        assert state == {name: expected[name] for name in told}
    questions: list[tuple[Any, ...]] = [
        ("attention", 3, 0, 1), ("attention", 5, 1, 0), ("explain", 13, 0), ("explain", 14, 0), ("explain", 16, 6),
        ("weights", 0, {"head": 1}), ("weights", 1, {"unit": 7})]
    for name, *given in questions:
        reply = page.evaluate("""async ([name, given]) => {
          const reply = await (await document.getElementById("punchcard-view").view).source[name](...given);
          return { ...reply, matrix: null, before: null, after: null };
        }""", [name, given])
        options = given.pop() if isinstance(given[-1], dict) else {}
        answer: Any = {**getattr(session, name)(*given, **options), "matrix": None, "before": None, "after": None}
        assert reply == json_of(answer), (name, given)


@pytest.mark.parametrize(("case", "first"), [("two layers", 0), ("von neumann", 1)])
def test_a_recorded_file(watched: Watched, tmp_path: Path, case: str, first: int) -> None:
    """Replies that were written down, on a card of which all columns are shown, and on one of which some are."""
    found = open_case(case)
    file = tmp_path / "recorded.html"
    assert write_html(file, found.session, first=first, last=3) < 1_000_000
    page = watched.open(file.as_uri())
    assert settled(page) == found.session.per_loop * first
    for moment in range(found.session.per_loop * first + 1, found.session.per_loop * 3 + 1):
        page.keyboard.press("n")
        assert settled(page) == moment
        state = found.session.state(moment)
        values = [value.replace("\n", " ; ") for group in page.evaluate(VALUES).values() for value in group.values()]
        assert [value.replace("−", "-") for value in values] == state["values"]
        entries = page.evaluate("document.getElementById('punchcard-view').view.then((view) => [...view.state.entries])")
        assert np.array_equal(entries, np.frombuffer(base64.b64decode(state["entries"]), "<f8"))
    page.keyboard.press("n")
    assert settled(page) == found.session.per_loop * 3
    assert f"this file holds loops {first} to 3" in page.get_by_role("alert").inner_text()
    page.keyboard.press("p")
    page.keyboard.press("3")
    settled(page)
    assert page.locator(".moves tbody tr").count() == len({(a, b) for a, b, *_ in found.session.attention(
        2, found.session.layers - 1, 0)["moves"] if a != b})
    assert not watched.problems
    assert not watched.foreign(file.as_uri())


def test_a_run_that_fails_says_why(watched: Watched) -> None:
    program = assemble(".data\na scalar 9\nb scalar 9\n.code\n a = mul(a, b)\n halt\n")
    session = Session(punchcard.build(program), program)
    with served(session) as address:
        page = watched.open(address)
        page.keyboard.press("End")
        page.wait_for_selector(".told em")
        assert "beyond the declared range ±16" in page.get_by_role("alert").inner_text()
        page.evaluate("""async () => {
          await (await document.getElementById("punchcard-view").view).on_find("change", true, { rows: "x" });
        }""")
        assert "no row block 'x'" in page.get_by_role("alert").inner_text()


def test_searches_of_a_file(watched: Watched, multiply: Path) -> None:
    page, session = watched.open(multiply.as_uri()), open_case("two layers").session
    session.explore(5)
    column = session.layout.region("memory").start + 2
    cell, back = {"rows": "memory", "column": column}, {"forward": False}
    searches: list[tuple[str, int, dict[str, Any]]] = [
        ("halt", 0, {}), ("halt", 112, {}), ("branch", 0, {}), ("branch", 30, {}), ("branch", 30, back),
        ("breakpoint", 9, {"instructions": [2]}), ("breakpoint", 50, {"instructions": [2, 3], **back}),
        ("change", 0, cell), ("change", 60, cell | back)]
    for search in searches:
        found = page.evaluate("""async ([what, moment, more]) =>
          (await (await document.getElementById("punchcard-view").view).source.find(what, moment, more)).moment""", search)
        what, moment, more = search
        assert found == session.find(what, moment, **more), search


def test_with_the_keyboard_alone(watched: Watched, multiply: Path) -> None:
    page = watched.open(multiply.as_uri())

    def press(*keys: str) -> int:
        for key in keys:
            page.keyboard.press(key)
        return settled(page)

    assert press("n") == 1
    assert press("n", "n", "p") == 2
    assert press("N") == 4
    assert press("N", "N", "P") == 8
    assert press("u", "n") == 10
    assert press("u", "n", "u") == 12
    assert "ReLU" not in page.locator(".step[aria-current]").inner_text()
    press("d")
    before = page.locator(".cell").inner_text()
    press("ArrowDown", "ArrowRight")
    assert page.locator(".cell").inner_text() != before
    press("x", "Home")
    assert page.locator(".mark[aria-pressed=true]").count() == 1
    assert press("k") == 12
    assert press("End") == 112
    assert "halted" in page.locator(".told").inner_text()
    assert press("K") == 12 + 4 * 3 * 8  # the loop of this program is three instructions, nine times
    press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog", name="Keys").is_visible()
    press("Home", "n", "3")
    for _ in range(60):  # every control can be reached
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('arc')"):
            break
    tip = page.get_by_role("tooltip").inner_text()
    assert all(word in tip for word in ("takes from", "weight 1", "score", "gap", "temperature 512"))
    page.keyboard.press("Escape")
    press("]", "]", "]", "]", " ")
    page.wait_for_selector("#punchcard-view[data-moment='12']")  # playing stops at the breakpoint
    page.wait_for_selector("[aria-label=Play]")
    assert not watched.problems


def test_a_dragged_slider_asks_for_few(watched: Watched) -> None:
    with served(open_case("two layers").session) as address:
        page = watched.open(address)
        page.evaluate("""() => {
          const slider = document.querySelector(".run");
          slider.max = 27;
          for (let loop = 1; loop <= 20; loop++) { slider.value = loop; slider.dispatchEvent(new Event("input")); }
        }""")
        assert settled(page) == 80
        asked = [url for url in watched.requests if url.endswith("/state")]
        assert len(asked) <= 3  # the first card, the first that was wanted and the last


def test_by_clicks(watched: Watched, multiply: Path) -> None:
    """A breakpoint, a value, a cell, formulas number by number, weights."""
    page = watched.open(multiply.as_uri())
    page.get_by_role("button", name="details").click()
    page.get_by_role("button", name="Breakpoint at line 12").click()
    page.get_by_role("button", name="To the next breakpoint").click()
    settled(page)
    assert page.locator("li[aria-current] code").inner_text().strip() == "subleq one, b, done"
    page.get_by_role("button", name="product", exact=True).click()
    assert page.locator(".cell").inner_text().startswith("product · memory[0] = 1")
    page.get_by_role("tab", name="Column").click()
    page.get_by_role("button", name="next change").click()
    settled(page)
    numbers = page.locator(".numbers tr").first.inner_text().split()
    assert numbers[0].startswith("memory[")
    assert numbers[2] == "→"
    page.get_by_role("tab", name="Attention").click()
    point = page.locator(".reach").first.evaluate("""(path) => {
      const middle = path.getPointAtLength(path.getTotalLength() / 2), box = path.ownerSVGElement.getBoundingClientRect();
      return [box.x + middle.x, box.y + middle.y];
    }""")
    page.mouse.move(*point)
    assert "temperature 1024" in page.get_by_role("tooltip").inner_text()
    page.get_by_role("tab", name="Code").click()
    assert "subleq minus_a, product" in page.locator(".code tr[aria-current]").inner_text()
    page.get_by_role("tab", name="Weights").click()
    page.get_by_label(re.compile("A hidden unit")).fill("3")
    page.keyboard.press("Enter")
    assert page.locator("caption").all_inner_texts()[0].startswith("in bias")
    assert not watched.problems


def luminance(colour: str) -> float:
    """Of a colour as the stylesheet has it, by the rules for contrast on the web."""
    digits = colour.lstrip("#") if len(colour) == 7 else "".join(2 * digit for digit in colour.lstrip("#"))
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_in_the_light_and_the_dark(watched: Watched, multiply: Path, scheme: Any) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    page = watched.open(multiply.as_uri())

    def contrast(one: str, other: str) -> float:
        style = "(name) => getComputedStyle(document.querySelector('.punchcard')).getPropertyValue(name)"
        dark, light = sorted(luminance(page.evaluate(style, f"--{name}")) for name in (one, other))
        return (light + 0.05) / (dark + 0.05)

    for ink in ("ink", "muted", "accent", "bad"):
        assert contrast(ink, "panel") >= 4.5, (scheme, ink)
    for drawn in ("ink", "changed", "h0", "h1", "h2", "h3"):
        assert contrast(drawn, "paper") >= 4.5, (scheme, drawn)
    for bit in ("plus", "minus"):
        assert contrast(bit, "paper") >= 2, (scheme, bit)
    assert contrast("plus", "minus") >= 1.7  # they differ in lightness, not in hue alone
    watched.page.emulate_media(color_scheme="light")


def test_text_follows_the_browser(watched: Watched, multiply: Path) -> None:
    page = watched.open(multiply.as_uri())
    sizes = """() => ["h1", ".lines code", ".values td"]
      .map((one) => parseFloat(getComputedStyle(document.querySelector(one)).fontSize))"""
    before = page.evaluate(sizes)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate(sizes) == [2 * size for size in before]


def test_small_and_quick(watched: Watched, tmp_path: Path) -> None:
    """At most 3 MB; at 256 columns a step takes 50 ms of the page's thread, however busy the machine is."""
    file = tmp_path / "wide.html"
    assert write_html(file, opened(design="two-layer", memory=246).session, model=True) < 3e6
    page = watched.open(file.as_uri())
    page.keyboard.press("d")
    assert page.get_by_role("button", name=re.compile("unused columns")).is_visible()
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")

    def thread_time() -> float:
        metrics = tools.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "ThreadTime"))

    begun, moment = thread_time(), page.evaluate(MOMENT)
    page.evaluate("""async () => {
      const view = await document.getElementById("punchcard-view").view;
      for (let i = 0; i < 20; i++) await view.on_go(view.moment + 1);
    }""")
    assert page.evaluate(MOMENT) == moment + 20
    assert 0 < (thread_time() - begun) / 20 < 0.05
    page.get_by_label(re.compile("Show a column by its number")).fill("200")
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator(".cell").inner_text().startswith("memory[197]")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    assert page.locator("canvas").first.evaluate("(canvas) => canvas.getBoundingClientRect().width") > 9 * 250


def test_the_page_is_one_module() -> None:
    assert re.findall(r"^export .*$", files.module(), re.MULTILINE) == ["export async function mount(element, source) {"]
    assert "import " not in re.sub(r"/\*.*?\*/", "", files.module(), flags=re.DOTALL)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", files.module() + files.stylesheet() + files.served())


def test_every_key_is_documented() -> None:
    """The page's own list and the guide name the same keys."""
    table = resources.files(files).joinpath("keys.js").read_text(encoding="utf-8")
    keys = re.findall(r'^    \["([^"]+)", "', table, re.MULTILINE)
    assert len(keys) > 20
    guide = (EXAMPLES.parent / "docs" / "view.md").read_text(encoding="utf-8")
    named = {name for cell in re.findall(r"^\| (`.*?`) \|", guide, re.MULTILINE) for name in re.findall(r"`([^`]+)`", cell)}
    assert {part for key in keys for part in key.split(" or ")} - named == {"with shift", "tab"}


def test_names_are_text_on_the_page(watched: Watched) -> None:
    """A file, a label and a line of the source that would be markup, or a control character, are shown as they are."""
    name = hostile.NAME.replace("<b>", "<b id=made>")
    image = Image((3, 4, 0, 1, 1), name, {name: 0}, lines=(1, 1, 1, 1, 1))
    session = Session(samples.machine("von-neumann"), image, source=f"# {name}", name=hostile.FILE_NAME)
    with served(session) as address:
        page = watched.open(address)
        assert printable(name) in (page.locator("#punchcard-view").text_content() or "")
        assert page.locator("#made").count() == 0
        assert not watched.foreign(address)  # every request has the token
        assert not watched.problems


def test_what_a_document_holds_cannot_end_its_script() -> None:
    text = files.document("a </title>", {"kind": "recorded", "about": "</script><script>"})
    assert text.count("</script>") == 2
    assert "<title>a &lt;/title&gt;</title>" in text


def test_steps_of_a_loop_stand_beside_each_other_at_twice_the_size(watched: Watched, multiply: Path) -> None:
    """A browser at 200 % has half the pixels."""
    page = watched.open(multiply.as_uri())
    page.set_viewport_size({"width": 640, "height": 400})
    try:
        boxes = [box for box in (step.bounding_box() for step in page.locator(".step").all()) if box]
        assert len(boxes) == 5
        for one, other in itertools.pairwise(boxes):
            assert other["x"] >= one["x"] + one["width"] or other["y"] >= one["y"] + one["height"]
        fits = "(step) => step.scrollWidth <= step.clientWidth"
        assert all(step.evaluate(fits) for step in page.locator(".step").all())
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})


def test_what_a_beginner_reads_is_true(watched: Watched, multiply: Path) -> None:
    """The first loop fetches, and a difference has a sign."""
    page = watched.open(multiply.as_uri())
    assert page.locator(".told").inner_text() == "Before loop 1 · fetches the first instruction"
    for _ in range(6):
        page.keyboard.press("n")
        settled(page)
    page.keyboard.press("d")
    page.get_by_role("button", name="difference").click()
    assert page.locator(".cell").inner_text().endswith("the word is −7")
