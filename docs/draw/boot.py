"""The console of a boot, as it was recorded: what `punchcard boot` wrote, and the figures that it printed.

The recording is beside the picture. With an image of your own:

    punchcard boot IMAGE --input docs/pictures/boot-input.txt | tr -d '\\r' > docs/pictures/boot.txt
"""

from __future__ import annotations

from collections.abc import Iterator

from docs.draw.svg import EDGE, LINE, MONO, PAPER, PICTURES, REGIONS, SMALL, box, sheet, text

WIDTH, MARGIN, MOST = 900, 28, 100
SCREEN = "#24222c"
FIRST, LAST = 7, 28
"""Lines from the beginning of the recording, and from its end."""


def picture() -> str:
    lines = recording()
    shown = [*lines[:FIRST], f"... {len(lines) - FIRST - LAST} lines ...", *lines[-LAST:]]
    height = 2 * MARGIN + 20 + LINE * len(shown)
    about = "The kernel's first messages, the login prompt, commands and their output, and power off."
    return sheet(WIDTH, height, "Linux boots on a looped transformer", about, _parts(shown, height))


def recording() -> list[str]:
    """Its lines; one that is too long ends in dots."""
    lines = (PICTURES / "boot.txt").read_text().split("\n")
    return [line if len(line) <= MOST else f"{line[: MOST - 3]}..." for line in lines if line.strip()]


def _parts(lines: list[str], height: float) -> Iterator[str]:
    yield box(MARGIN, MARGIN, WIDTH - 2 * MARGIN, height - 2 * MARGIN, SCREEN, f"rx='8' stroke='{EDGE}'")
    commands = tuple(f" {command}" for command in (PICTURES / "boot-input.txt").read_text().splitlines())
    for number, words in enumerate(lines):
        yield text(MARGIN + 16, MARGIN + 24 + LINE * number, words.expandtabs(), size=SMALL - 1.5,
                   colour=REGIONS["scratchpad"] if words.endswith(commands) else PAPER, more=f"{MONO} xml:space='preserve'")
