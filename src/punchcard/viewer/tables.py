"""What a notebook shows of a machine, a result or a report: a small table, and a picture of the card."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.card.layout import Card, Layout
from punchcard.errors import shortened
from punchcard.formatting import format_value, plural
from punchcard.viewer.colours import EDGE, FAINT, INK, PAPER, shade
from punchcard.viewer.excerpt import CardExcerpt, excerpt
from punchcard.viewer.page import escape

if TYPE_CHECKING:
    from punchcard.machines.base import Machine
    from punchcard.machines.result import Report, Result

MOST = 16
"""Values of a program that are shown."""
MOST_OUTPUT = 400
"""Characters of an output that is shown."""
MOST_CARD_COLUMNS = 32
ALIGNED = "style='text-align:left;vertical-align:top'"
WIDE, HIGH, GAP, LEFT, TOP, BELOW = 22, 5, 8, 120, 30, 84
"""Pixels: of a column and a row, between two regions, and around the card for names."""
LONGEST = 14
"""Characters of a column's name."""
CUT = 14
"""Pixels of the corner that is cut off."""
TEXT = f"font-family='system-ui,sans-serif' font-size='9' fill='{INK}'"


def result_html(result: Result[Any]) -> str:
    """How the run ended, its values and output, and its last card."""
    return _run_html(result, "")


def report_html(report: Report[Any]) -> str:
    """The same, and what the interpreter says of it."""
    mark = "✓" if report.agrees else "✗" if report.agrees is False else "–"
    return _run_html(report.result, f"<br>{mark} {escape(report.summary())}")


def machine_html(machine: Machine[Any, Any]) -> str:
    """Its figures, and the blocks and regions of its card."""
    facts = {name: value for name, value in machine.summary().items() if name not in ("paper", "machine", "design")}
    layout = machine.layout
    blocks = ((block.name, block.size, block.about, ", ".join(f"{content} in {region}" for region, content in
              block.holds.items()) or "nothing when a loop begins") for block in layout.blocks)
    regions = ((region.name, region.size, region.about) for region in layout.regions)
    return (f"<div><p>{escape(machine.title())}</p>{named(facts)}"
            f"<details><summary>{plural(layout.width, 'row')}</summary>{table(('block', 'rows', 'what', 'holds'), blocks)}"
            f"</details><details><summary>{plural(layout.columns, 'column')}</summary>"
            f"{table(('region', 'columns', 'what'), regions)}</details></div>")


def _run_html(result: Result[Any], verdict: str) -> str:
    values = dict(list(result.memory.items())[:MOST])
    more = len(result.memory) - len(values)
    text = result.output[:MOST_OUTPUT].decode(errors="replace")
    written = f"<pre>{escape(text)}{'…' * (len(result.output) > MOST_OUTPUT)}</pre>" if result.output else ""
    card = card_svg(result.layout, result.raw_card, names=result.names) if result.layout is not None else ""
    return (f"<div><p>{escape(result.summary())} on the {escape(result.engine)} engine{verdict}</p>{named(values)}"
            f"{f'<p>and {more:,} more</p>' if more > 0 else ''}{written}{card}</div>")


def named(values: Mapping[str, Any]) -> str:
    """Names and values."""
    return table((), ((name, format_value(value, 200)) for name, value in values.items())) if values else ""


def table(heading: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A plain table; every cell is text."""
    head = "".join(f"<th {ALIGNED}>{escape(str(name))}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td {ALIGNED}>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


# The card, without matplotlib


def card_svg(layout: Layout, card: Card, *, names: Callable[[int], str] | None = None) -> str:
    """A cream card with the names of its blocks, regions and columns: +1 is a punched mark, -1 a faint dash."""
    shown = excerpt(layout, card, most=MOST_CARD_COLUMNS)
    lefts, right = {}, float(LEFT)
    for group in shown.groups:
        lefts[group.region.name] = right
        right += WIDE * len(group.columns) + GAP
    height = TOP + HIGH * sum(len(band.entries) for band in shown.bands)
    drawn = [f"<path d='M{CUT} .5H{right - 0.5:g}V{height + BELOW - 0.5}H.5V{CUT}z' fill='{PAPER}' stroke='{EDGE}'/>"]
    drawn += _cells(shown, lefts) + _bands(shown, right - GAP) + _regions(shown, lefts, height, names or layout.column_name)
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{right:g}' height='{height + BELOW}' "
            f"viewBox='0 0 {right:g} {height + BELOW}' role='img' aria-label='a card of {layout.width} rows and "
            f"{layout.columns} columns'>{''.join(drawn)}</svg>")


def _cells(shown: CardExcerpt, lefts: dict[str, float]) -> list[str]:
    """One path for the punched marks, one for the dashes, and one for each colour of other numbers."""
    paths: dict[str, list[str]] = defaultdict(list)
    columns = [lefts[group.region.name] + WIDE * i for group in shown.groups for i in range(len(group.columns))]
    top = TOP
    for band in shown.bands:
        for (row, place), value in np.ndenumerate(band.entries):
            x, y = columns[place], top + HIGH * row
            if value == 1:
                paths[INK].append(f"M{x + 2:g} {y + 1}h{WIDE - 4}v{HIGH - 2}h{4 - WIDE}z")
            elif value == -1:
                paths[FAINT].append(f"M{x + 7:g} {y + HIGH / 2:g}h{WIDE - 14}v.6h{14 - WIDE}z")
            elif value:
                colour = shade(float(band.scaled[row, place]))
                paths[colour].append(f"M{x + 2:g} {y + 1}h{WIDE - 4}v{HIGH - 2}h{4 - WIDE}z")
        top += HIGH * len(band.entries)
    return [f"<path fill='{colour}' d='{''.join(runs)}'/>" for colour, runs in paths.items()]


def _bands(shown: CardExcerpt, right: float) -> list[str]:
    """Names of row blocks on the left, if there is room, and lines between them."""
    found, top, written = [], TOP, 0.0
    for band in shown.bands:
        size = HIGH * len(band.entries)
        middle = top + size / 2 + 3
        found.append(f"<path d='M{LEFT - 4} {top}H{right:g}' stroke='{EDGE}' stroke-width='.6'/>")
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
