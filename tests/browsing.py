"""A browser for tests of the page: Chromium through Playwright, where both are present."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from punchcard.card.formats import AnyArray
from punchcard.viewer.server import ViewServer
from punchcard.viewer.session import Session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
STEPS = """async ([first, count]) => {
  // What changes from moment to moment, by its bits: places and new values.
  const { source } = await document.getElementById("punchcard-view").view;
  let before = new Uint32Array(source.card(first).buffer);
  const counts = [], places = [], values = [];
  for (let moment = first + 1; moment <= first + count; moment++) {
    const card = source.card(moment), bits = new Uint32Array(card.buffer);
    const found = places.length;
    for (let i = 0; i < card.length; i++) {
      if (bits[2 * i] !== before[2 * i] || bits[2 * i + 1] !== before[2 * i + 1]) { places.push(i); values.push(card[i]); }
    }
    counts.push(places.length - found);
    before = bits;
  }
  const text = (array) => {
    const bytes = new Uint8Array(array.buffer);
    let binary = "";
    for (let i = 0; i < bytes.length; i += 32768) binary += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(binary);
  };
  return [counts, text(Uint32Array.from(places)), text(Float64Array.from(values))];
}"""


def browser_path() -> str | None:
    """Where Chromium is."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser; the test is skipped, and says why, where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    path = browser_path()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed (make browser installs chromium)")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


class Watched:
    """A page, and what it must not do: write errors, or ask another host."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 800}, **options)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def open(self, address: str) -> Page:
        """Go there, and wait for the first card."""
        self.page.goto("about:blank")  # the last page has no more to ask
        self.requests.clear()
        self.problems.clear()
        self.page.goto(address)
        settled(self.page)
        return self.page

    def foreign(self, *own: str) -> list[str]:
        """Requests that go elsewhere."""
        return [url for url in self.requests if not url.startswith((*own, "data:"))]


def settled(page: Page) -> int:
    """Wait until what was asked for last is shown; the moment."""
    page.wait_for_selector("#punchcard-view[data-moment]")
    return int(page.locator("#punchcard-view").get_attribute("data-moment") or -1)


def cards_of(page: Page, first: AnyArray, moments: int) -> Iterator[AnyArray]:
    """The cards that a page with the model inside computes, moment after moment, from that of moment 0 on."""
    counts, places, values = page.evaluate(STEPS, [0, moments])
    at, to = np.frombuffer(base64.b64decode(places), "<u4"), np.frombuffer(base64.b64decode(values), "<f8")
    flat, done = np.ascontiguousarray(first.T).ravel(), 0
    for count in counts:
        flat = flat.copy()
        flat[at[done : done + count]] = to[done : done + count]
        done += count
        yield flat.reshape(first.shape[::-1]).T


@contextmanager
def served(session: Session) -> Iterator[str]:
    """The address of a session's page."""
    server = ViewServer(session)
    server.start()
    try:
        yield server.address
    finally:
        server.close()
