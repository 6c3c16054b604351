"""page.svg: the page of a view as a film, a frame for each half layer. `python -m docs.draw.page_film`

The frames are screenshots, so this needs Chromium, Playwright and Pillow. Nobody compares the picture with a new one: text
looks a little different on every computer.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docs.draw.film import Film
from docs.draw.screens import REST, chromium
from docs.draw.svg import EXAMPLES, PICTURES

COMMAND = ("view", str(EXAMPLES / "multiply.subleq"))
"""What the README says to open it with."""
WIDTH, HEIGHT = 1040, 760
FIRST, FRAMES, SECONDS = 4, 6, 2.4
"""The half layers before the first frame, how many frames there are, and how long each stays."""
PAGE = ("#f3f0e9", "#fffdf9", "#f8f2e2")
"""The page's own colours (`viewer/page/page.css`): grounds. What is drawn on them is mixed with each, for smooth edges."""
DRAWN = ("#2a2733", "#6b6558", "#6b3fa0", "#c2410c", "#1d5fa8", "#a3271e", "#2b7a3d")
PLAIN = ("#f5f0e5", "#e0d8c8", "#efe6fa", "#8d8a80")
STEPS = 4


def palette() -> list[int]:
    """The red, green and blue of all colours of a frame."""
    def parts(colour: str) -> tuple[int, ...]:
        return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))

    found = [parts(colour) for colour in (*PAGE, *DRAWN, *PLAIN)]
    for ground in map(parts, PAGE):
        for ink in map(parts, DRAWN):
            found += [tuple(round(a + (b - a) * step / STEPS) for a, b in zip(ground, ink, strict=True))
                      for step in range(1, STEPS)]
    return [part for colour in found for part in colour]


def frames() -> list[bytes]:
    """The page after each half layer, as PNG in few colours."""
    from PIL import Image

    found, colours = [], Image.new("P", (1, 1))
    colours.putpalette(palette())
    with chromium() as browser, TemporaryDirectory() as made:
        file = Path(made) / "page.html"
        subprocess.run([sys.executable, "-m", "punchcard", *COMMAND, "--model", "--html", str(file)], check=True,
                       stdout=subprocess.DEVNULL)
        page: Any = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(file.as_uri())
        page.wait_for_selector("[data-moment]")
        for number in range(FIRST + FRAMES):
            page.keyboard.press("n")
            page.wait_for_selector("[data-moment]")
            if number >= FIRST:
                page.wait_for_timeout(REST)
                whole = Image.open(BytesIO(page.screenshot())).convert("RGB")
                shot = whole.quantize(palette=colours, dither=Image.Dither.NONE)
                data = BytesIO()
                shot.save(data, "PNG", optimize=True)
                found.append(data.getvalue())
    return found


def picture() -> str:
    shots = frames()
    film = Film([SECONDS] * len(shots), poster=0)
    images = [f"<image width='{WIDTH}' height='{HEIGHT}' class='{film.shown([i == at for i in range(len(shots))])}' "
              f"href='data:image/png;base64,{base64.b64encode(shot).decode()}'/>" for at, shot in enumerate(shots)]
    about = "The page of punchcard view: the sentence of each half layer, the arrows of its heads, and the card."
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{about}'>"
            f"<style>{film.style}</style>{''.join(images)}</svg>\n")


if __name__ == "__main__":
    (PICTURES / "page.svg").write_text(picture())
