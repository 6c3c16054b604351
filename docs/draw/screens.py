"""Screenshots of the page's main states, to look at: `python -m docs.draw.screens FOLDER`. They are not committed.

They need Chromium and Playwright (`make browser` installs both).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from docs.draw.svg import EXAMPLES

DESKTOP, TABLET, PHONE = (1280, 800), (820, 1100), (390, 844)
REST = 1200  # milliseconds until what travels has arrived


class Screen(NamedTuple):
    """A command whose page is opened, the keys that are pressed, the size and the colours."""

    command: tuple[str, ...]
    keys: str = "nnnnn"
    size: tuple[int, int] = DESKTOP
    scheme: str = "light"


MULTIPLY = ("view", str(EXAMPLES / "multiply.subleq"), "--model")
SCREENS = {
    "story": Screen(MULTIPLY),
    "story-dark": Screen(MULTIPLY, "nnnnnnn", scheme="dark"),
    "story-phone": Screen(MULTIPLY, size=PHONE),
    "story-tablet": Screen(MULTIPLY, size=TABLET),
    "details": Screen(MULTIPLY, "nnnnnd3"),
    "nine-layers": Screen((*MULTIPLY, "--design", "paper"), "nnnnn"),
    "fleq": Screen(("view", str(EXAMPLES / "newton.fleq"), "--model"), "nnn"),
    "riscv": Screen(("view", str(EXAMPLES / "riscv" / "hi.s"), "--loops", "8"), "Nnn"),
    "playground": Screen(("playground",), ""),
}


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; without one, a line says how to get it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("no Playwright: make browser installs it")
    path = next((found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None)
    if path is None:
        sys.exit("no browser: make browser installs chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, TemporaryDirectory() as made:
        for name, screen in SCREENS.items():
            file = Path(made) / f"{name}.html"
            subprocess.run([sys.executable, "-m", "punchcard", *screen.command, "--html", str(file)], check=True,
                           stdout=subprocess.DEVNULL)
            take(browser, screen, file, folder / f"{name}.png")


def take(browser: Any, screen: Screen, file: Path, into: Path) -> None:
    """One screenshot."""
    width, height = screen.size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=screen.scheme)
    page.goto(file.as_uri())
    page.wait_for_selector("[data-moment]")
    for key in screen.keys:
        page.keyboard.press(key)
        page.wait_for_selector("[data-moment]")
    page.wait_for_timeout(REST)
    page.screenshot(path=into)
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
