"""What all pictures share: paper, ink and colours, text, boxes and arrows as SVG.

A picture is a sheet of paper with its own background, so it is readable on a light page and on a dark one. Colours differ
in lightness too, and what matters is also written, so nobody has to tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PICTURES = ROOT / "docs" / "pictures"
EXAMPLES = ROOT / "examples"

PAPER, EDGE, INK, FAINT, GRID = "#f8f2e2", "#d9cba6", "#2a2733", "#6d6552", "#e6dcc3"
READ, STORE, FETCH, FRESH = "#1d5fa8", "#b3372c", "#2b7a3d", "#c2410c"
EMPTY = "#ece3cb"  # where a block holds nothing
REGIONS = {"scratchpad": "#f0b95c", "constants": "#d3c8ae", "memory": "#9cc3ea", "instructions": "#a9d5a2"}
NAME, SMALL, LINE = 16, 14, 17  # sizes of text, and the step from line to line
SANS = "system-ui,Helvetica,Arial,sans-serif"
MONO = "font-family='ui-monospace,Menlo,Consolas,monospace'"
BOLD = "font-weight='bold'"


def text(x: float, y: float, words: str, *, size: float = NAME, colour: str = INK, anchor: str = "start",
         more: str = "") -> str:
    return (f"<text x='{x:g}' y='{y:g}' font-size='{size:g}' fill='{colour}' text-anchor='{anchor}' {more}>"
            f"{escape(words)}</text>")


def box(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' fill='{fill}' {more}/>"


def line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f"<path d='M{x1:g} {y1:g}L{x2:g} {y2:g}' stroke='{colour}' fill='none' {more}/>"


def curve(start: float, end: float, y: float, height: float, colour: str, more: str = "") -> str:
    """An arrow from one column to another, over the card (height > 0) or under it."""
    return (f"<path d='M{start:g} {y:g} C{start:g} {y - height:g} {end:g} {y - height:g} {end:g} {y:g}' fill='none' "
            f"stroke='{colour}' stroke-width='2' marker-end='url(#{colour[1:]})' {more}/>")


def arrow(start: float, end: float, y: float, height: float, colour: str, words: str) -> Iterator[str]:
    """A curve with what is moved written at its top."""
    yield curve(start, end, y, height, colour)
    middle = (start + end) / 2
    yield box(middle - 4 * len(words), y - 0.75 * height - 10, 8 * len(words), 20, PAPER)
    yield text(middle, y - 0.75 * height + 5, words, size=SMALL, colour=colour, anchor="middle")


def sheet(width: float, height: float, title: str, about: str, parts: Iterable[str], style: str = "") -> str:
    """The whole picture: a card with a cut corner; the arrowheads of all colours; a title for those who cannot see it."""
    heads = "".join(
        f"<marker id='{colour[1:]}' viewBox='0 0 8 8' refX='6' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        f"<path d='M0 0L8 4L0 8z' fill='{colour}'/></marker>" for colour in (READ, STORE, FETCH))
    return "\n".join([
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' width='{width:g}' height='{height:g}' "
        f"font-family='{SANS}' role='img' aria-labelledby='title about'>",
        f"<title id='title'>{escape(title)}</title><desc id='about'>{escape(about)}</desc><defs>{heads}</defs>",
        *([f"<style>{style}</style>"] if style else []),
        f"<path d='M44 2H{width - 14:g}a12 12 0 0 1 12 12V{height - 14:g}a12 12 0 0 1 -12 12H14a12 12 0 0 1 -12 -12V44z' "
        f"fill='{PAPER}' stroke='{EDGE}' stroke-width='2'/>", *parts, "</svg>", ""])
