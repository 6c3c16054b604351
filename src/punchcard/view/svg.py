"""A card as an inline SVG picture, for a notebook or a page, without matplotlib."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from html import escape
from itertools import pairwise

import numpy as np

from punchcard.card.layout import Card, Layout
from punchcard.errors import shortened
from punchcard.view.colours import ZERO, shade
from punchcard.view.excerpt import CardExcerpt, excerpt

WIDE, HIGH, GAP, LEFT, TOP, BELOW = 22, 5, 8, 120, 30, 84
"""Pixels: of a column and a row, between two regions, and around the card for names."""
LONGEST = 14
"""Characters of a column's name."""
TEXT = "font-family='system-ui,sans-serif' font-size='9' fill='currentColor'"


def card_svg(layout: Layout, card: Card, *, names: Callable[[int], str] | None = None, columns: int = 32) -> str:
    """The card with the names of its blocks, regions and columns. Text has the colour of what is around it."""
    shown = excerpt(layout, card, most=columns)
    lefts, right = {}, float(LEFT)
    for group in shown.groups:
        lefts[group.region.name] = right
        right += WIDE * len(group.columns) + GAP
    height = TOP + HIGH * sum(len(band.entries) for band in shown.bands)
    drawn = [f"<rect x='{lefts[g.region.name]:g}' y='{TOP}' width='{WIDE * len(g.columns)}' height='{height - TOP}' "
             f"fill='{ZERO}'/>" for g in shown.groups]
    drawn += _cells(shown, lefts) + _bands(shown, right - GAP) + _regions(shown, lefts, height, names or layout.column_name)
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{right:g}' height='{height + BELOW}' "
            f"viewBox='0 0 {right:g} {height + BELOW}' role='img' aria-label='a card of {layout.width} rows and "
            f"{layout.columns} columns'>{''.join(drawn)}</svg>")


def _cells(shown: CardExcerpt, lefts: dict[str, float]) -> list[str]:
    """One path for each colour: a rectangle for each run of equal entries down a column."""
    paths: dict[str, list[str]] = defaultdict(list)
    scaled = np.vstack([band.scaled for band in shown.bands]) if shown.bands else np.zeros((0, len(shown.columns)))
    first = 0
    for group in shown.groups:
        for i in range(len(group.columns)):
            entries, x = scaled[:, first + i], lefts[group.region.name] + WIDE * i
            edges = [0, *(np.flatnonzero(np.diff(entries)) + 1).tolist(), len(entries)]
            for top, bottom in pairwise(edges):
                if bottom > top and entries[top]:
                    runs = paths[shade(float(entries[top]))]
                    runs.append(f"M{x:g} {TOP + HIGH * top}h{WIDE - 1}v{HIGH * (bottom - top)}h{1 - WIDE}z")
        first += len(group.columns)
    return [f"<path fill='{colour}' d='{''.join(runs)}'/>" for colour, runs in paths.items()]


def _bands(shown: CardExcerpt, right: float) -> list[str]:
    """Names of row blocks on the left, if there is room, and lines between them."""
    found, top, written = [], TOP, 0.0
    for band in shown.bands:
        size = HIGH * len(band.entries)
        middle = top + size / 2 + 3
        found.append(f"<path d='M{LEFT - 4} {top}H{right:g}' stroke='currentColor' stroke-width='.4' opacity='.6'/>")
        if middle - written >= 8:
            found.append(f"<text x='{LEFT - 6}' y='{middle:g}' text-anchor='end' {TEXT}>{escape(band.name)}</text>")
            written = middle
        top += size
    return found


def _regions(shown: CardExcerpt, lefts: dict[str, float], bottom: int, names: Callable[[int], str]) -> list[str]:
    """Names of regions above, with the columns that are folded, and of columns below."""
    found = []
    for number, group in enumerate(shown.groups):
        left = lefts[group.region.name]
        folded = f" + {group.folded:,} folded" if group.folded else ""
        place = f"x='{left:g}' y='{TOP - 6 - 11 * (number % 2)}'"
        found.append(f"<text {place} {TEXT}>{escape(group.region.name + folded)}</text>")
        for i, column in enumerate(group.columns):
            x, y = left + WIDE * (i + 0.5) + 3, bottom + 4
            name = names(column)
            name = name if len(name) <= LONGEST else shortened(name, LONGEST)[1:-1]
            place = f"transform='translate({x:g} {y}) rotate(-90)' text-anchor='end'"
            found.append(f"<text {place} {TEXT}>{escape(name)}</text>")
    return found
