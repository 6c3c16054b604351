"""The story on the page, in a real browser: sentences, arrows of all heads, and a picture that keeps still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from punchcard.viewer.html import write_html
from punchcard.viewer.server import ViewServer
from tests.browsing import Watched, served, settled
from tests.cases import soaked
from tests.opened import opened

STORIES = """async (count) => {
  const { source } = await document.getElementById("punchcard-view").view;
  const found = [];
  for (let moment = 0; moment <= count; moment++) found.push((await source.state(moment)).story);
  return found;
}"""
TEXTS = """() => [...document.querySelectorAll("#punchcard-view *")].filter((one) =>
  [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && one.getClientRects().length)
  .map((one) => [parseFloat(getComputedStyle(one).fontSize), one.textContent.slice(0, 40)]).filter(([size]) => size < 12)"""
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll(".arrows .value:not(.travelling)")].map((one) => one.getBoundingClientRect());
  const hit = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => hit(a, b))).length;
}"""
PLACES = """() => [...document.querySelectorAll(".label")].map(({ textContent, style }) =>
  [textContent, style.top, style.height])"""


@pytest.fixture(scope="module")
def multiply(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("story") / "multiply.html"
    write_html(file, opened("multiply.subleq", design="two-layer", word_bits=8).session, model=True)
    return file


CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "two layers": ("multiply.subleq", {"design": "two-layer"}, 4),
    "nine layers": ("multiply.subleq", {"design": "paper"}, 2),
    "one layer": ("multiply.subleq", {"design": "one-layer"}, 3),
    "fleq": ("newton.fleq", {"design": "compact"}, 2),
    "average": ("functions.fleq", {"design": "three-layer"}, 1),
    "formulas": ("turing/increment.tm", {}, 3),
    "ports": ("von_neumann/hello.asq", {"memory": 64, "precision": "float64"}, 6),
}


@pytest.mark.parametrize("case", [soaked(case) if case in ("one layer", "ports", "average") else case for case in CASES])
def test_the_page_tells_what_python_tells(watched: Watched, tmp_path: Path, case: str) -> None:
    """A page with the model inside has the rules in JavaScript."""
    file, options, loops = CASES[case]
    session = opened(file, **options).session
    write_html(tmp_path / "page.html", session, model=True)
    page = watched.open((tmp_path / "page.html").as_uri())
    count = loops * session.per_loop
    assert page.evaluate(STORIES, count) == [session.story(moment) for moment in range(count + 1)]
    assert not watched.problems


def test_a_loop_is_told(watched: Watched, multiply: Path) -> None:
    """The sentence is the largest text; all heads are drawn, with what they carry; bands keep their places."""
    page = watched.open(multiply.as_uri())
    page.keyboard.press("N")
    settled(page)
    places = page.evaluate(PLACES)
    assert [name for name, *_ in places][:2] == ["memory", "command.a"]
    carried = []
    for _ in range(4):
        page.keyboard.press("n")
        settled(page)
        assert page.evaluate(PLACES) == places
        carried.append(page.locator(".value:not(.travelling)").all_text_contents())
        assert page.evaluate(OVERLAPS) == 0
        assert page.locator(".arc").count() == len(carried[-1])
    assert carried == [["7", "0"], [], ["instruction 1", "−7"], []]
    page.keyboard.press("p")
    settled(page)
    assert page.locator(".sentence").inner_text().startswith("The head stores −7 in minus_a, and fetches instruction 1")
    sizes = page.evaluate("""() => Object.fromEntries([".sentence", "h1", ".told", ".lines code"].map((one) =>
      [one, parseFloat(getComputedStyle(document.querySelector(one)).fontSize)]))""")
    assert max(sizes, key=sizes.__getitem__) == ".sentence"
    assert page.evaluate(TEXTS) == []
    page.keyboard.press("d")
    page.keyboard.press("3")
    settled(page)
    assert page.evaluate(TEXTS) == []
    assert not watched.problems


def test_every_head_has_its_colour_and_its_value(watched: Watched, tmp_path: Path) -> None:
    """Also where a sentence lists heads, and where their arrows are close; a word is read as the sentence reads it."""
    session = opened("von_neumann/sort.asq", memory=1024, input=b"3 1\n").session
    write_html(tmp_path / "page.html", session, last=3)
    page = watched.open((tmp_path / "page.html").as_uri())
    for _ in range(7):
        page.keyboard.press("n")
    settled(page)
    assert page.locator(".sentence").inner_text().startswith("Head 1 stores −16 in $z; heads 1, 2 and 3 fetch")
    named = [(one.inner_text(), one.get_attribute("class")) for one in page.locator(".sentence .head-name").all()]
    assert named == [("Head 1", "head-name h0"), ("heads 1", "head-name h0"), ("2", "head-name h1"), ("3", "head-name h2")]
    carried = page.locator(".arrows .value:not(.travelling)").all_text_contents()
    assert len(carried) == page.locator(".arc").count() == 4
    assert "−16" in carried
    assert page.evaluate(OVERLAPS) == 0


def test_no_scroll_bar_where_all_columns_fit(watched: Watched, multiply: Path) -> None:
    page = watched.open(multiply.as_uri())
    try:
        for width in (1280, 1024, 820, 390):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(50)
            for part in (".grid", ".panel"):
                assert page.evaluate("(part) => { const { scrollWidth, clientWidth } = document.querySelector(part);"
                                     " return scrollWidth - clientWidth; }", part) <= 0, (width, part)
        page.keyboard.press("?")
        assert page.evaluate("() => { const { scrollWidth, clientWidth } = document.querySelector('dialog');"
                             " return scrollWidth - clientWidth; }") <= 0
        page.keyboard.press("Escape")
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize(("asked", "shown"), [("7", "7"), ("9" * 15, "112"), ("-3", "0"), ("1e9", "0"), ("9" * 20, "0")])
def test_a_moment_in_the_address(watched: Watched, multiply: Path, asked: str, shown: str) -> None:
    """Whatever it asks for, the page shows a card at once."""
    page = watched.open(f"{multiply.as_uri()}#moment={asked}")
    assert page.locator("#punchcard-view").get_attribute("data-moment") == shown
    assert not watched.problems


def test_keys_after_a_click_and_before_the_first_card(watched: Watched, multiply: Path) -> None:
    page = watched.open(multiply.as_uri())
    page.get_by_role("button", name="Next", exact=True).click()
    page.keyboard.press(" ")
    page.wait_for_selector("[aria-label=Pause]")
    page.keyboard.press(" ")
    page.wait_for_selector("[aria-label=Play]")
    page.evaluate("""async () => {
      const view = await document.getElementById("punchcard-view").view;
      view.state = null;
      for (const key of ["n", "n"]) view.element.dispatchEvent(new KeyboardEvent("keydown", { key }));
      await view.on_go(0);
    }""")
    page.wait_for_selector("#punchcard-view[data-moment='2']")


def test_on_a_phone(watched: Watched, multiply: Path) -> None:
    """Buttons are large enough for a finger, and nothing is wider than the screen."""
    page = watched.open(multiply.as_uri())
    page.set_viewport_size({"width": 390, "height": 844})
    try:
        for button in page.locator(".controls button:visible, header button").all():
            box = button.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 44
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(TEXTS) == []
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("size", [(820, 1180), soaked((1180, 820))])
def test_on_a_tablet(watched: Watched, multiply: Path, size: tuple[int, int]) -> None:
    """The card comes first, nothing is wider than the screen, and labels of arrows do not overlap."""
    width, height = size
    page = watched.open(multiply.as_uri())
    page.set_viewport_size({"width": width, "height": height})
    try:
        for _ in range(5):
            page.keyboard.press("n")
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(TEXTS) == []
        assert page.evaluate(OVERLAPS) == 0
        card, program = (page.locator(one).bounding_box() for one in (".card", ".program"))
        assert card is not None
        assert program is not None
        assert card["y"] < program["y"] or card["x"] > program["x"]
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})
    assert not watched.problems


def test_less_motion(watched: Watched, multiply: Path) -> None:
    """Whoever asks for less motion sees none: values stand on their arrows, and nothing turns or fades."""
    watched.page.emulate_media(reduced_motion="reduce")
    try:
        page = watched.open(multiply.as_uri())
        for _ in range(5):
            page.keyboard.press("n")
        settled(page)
        page.locator("#punchcard-view").evaluate("(element) => element.setAttribute('aria-busy', 'true')")
        assert page.evaluate("document.getAnimations().length") == 0
        assert page.locator(".arrows .value:not(.travelling)").count() > 0
        assert page.locator(".arrows .travelling:visible").count() == 0
    finally:
        watched.page.emulate_media(reduced_motion="no-preference")


def test_an_embedded_view_follows_the_site(watched: Watched, multiply: Path) -> None:
    """The site around a view is dark or light by a button of its own: the view changes with it."""
    site = "<body data-md-color-scheme=slate><iframe src=view.html style='width:100%;height:700px'></iframe>"
    page, view = watched.page, multiply.read_text(encoding="utf-8")
    page.route("http://site.test/**", lambda route: route.fulfill(
        content_type="text/html", body=view if route.request.url.endswith("view.html") else site))
    page.goto("http://site.test/index.html")
    frame = page.frame_locator("iframe")
    frame.locator("#punchcard-view[data-moment]").wait_for()
    back = "(element) => getComputedStyle(element).backgroundColor"
    dark = frame.locator("#punchcard-view").evaluate(back)
    page.evaluate("document.body.dataset.mdColorScheme = 'default'")
    frame.locator("#punchcard-view[data-theme=light]").wait_for()
    light = frame.locator("#punchcard-view").evaluate(back)
    assert (dark, light) == ("rgb(21, 23, 27)", "rgb(243, 240, 233)")
    page.unroute("http://site.test/**")


def test_a_disassembly(watched: Watched, tmp_path: Path) -> None:
    """Addresses and encodings in hex, symbols, registers by name and the lines of the source."""
    session = opened("riscv/fibonacci.s", memory=64).session
    write_html(tmp_path / "page.html", session, last=2)
    page = watched.open((tmp_path / "page.html").as_uri())
    page.keyboard.press("N")
    settled(page)
    page.get_by_role("button", name="details").click()
    page.get_by_role("tab", name="Disassembly").click()
    assert "_start:" in page.locator(".code .symbol").all_inner_texts()
    names = page.evaluate("async () => (await document.getElementById('punchcard-view').view).about.column_names")
    assert names["1"] == "_start"
    assert page.locator(".code tr[aria-current]").inner_text().split(None, 2) == [
        "0x0000", "00000413", "addi s0, zero, 0\t8: li s0, 0 # this number"]
    assert "0x0000" in page.locator(".told").inner_text()
    assert page.get_by_role("tab", name="Values").is_visible()
    assert not watched.problems


def test_a_tooltip_is_not_cut_off(watched: Watched, multiply: Path) -> None:
    page = watched.open(multiply.as_uri())
    for _ in range(5):
        page.keyboard.press("n")
    settled(page)
    for arc in page.locator(".arc").all():
        arc.focus()
        tip, card = (page.locator(one).bounding_box() for one in (".tip", ".card"))
        assert tip is not None
        assert card is not None
        assert tip["y"] >= card["y"]


def test_another_design_is_one_click_away(watched: Watched) -> None:
    session = opened("multiply.subleq", design="two-layer").session
    session.choices = [{"name": "design", "label": "design", "now": "two-layer", "options": ["two-layer", "one-layer"]}]
    asked = []

    def build(given: Any) -> Any:
        asked.append(dict(given))
        return opened("multiply.subleq", design=given["design"]).session

    server = ViewServer(session, build=build)
    server.start()
    try:
        page = watched.open(server.address)
        page.get_by_label("design").select_option("one-layer")
        page.wait_for_selector("header > p")  # the other session offers no choice
        settled(page)
        assert asked == [{"design": "one-layer"}]
        assert "one-layer" in page.locator("header > p").first.inner_text()
    finally:
        server.close()
    with served(opened("multiply.subleq", design="two-layer").session) as address:
        assert watched.open(address).locator("select").count() == 0
