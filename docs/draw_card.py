"""Draws docs/card.svg, a real card with its regions and named rows: `python docs/draw_card.py`.

The card is that of examples/multiply.subleq on the two-layer machine, as it stands before one loop. The arrows are what
attention moves in that loop. The picture brings its own background, so it is readable on a light page and on a dark one.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap

from torch import Tensor

import punchcard
from punchcard.card.layout import Layout, RowBlock
from punchcard.machines.subleq.isa import Subleq
from punchcard.trace import Move, Snapshot

FILE = Path(__file__).parent / "card.svg"
PROGRAM = Path(__file__).parent.parent / "examples" / "multiply.subleq"
LOOP = 11  # the one that is drawn, counted from 0: it executes `subleq minus_a, product`

PAPER, EDGE, INK, FAINT = "#f8f2e2", "#d9cba6", "#2a2733", "#6d6552"
READ, STORE, FETCH = "#1d5fa8", "#b3372c", "#2b7a3d"
REGIONS = {"scratchpad": "#f0b95c", "constants": "#d3c8ae", "memory": "#9cc3ea", "instructions": "#a9d5a2"}
WIDTHS = {"scratchpad": 108, "constants": 46, "memory": 66, "instructions": 66}  # of a column
MARGIN, LABELS, TOP, ROW, GAP = 24, 238, 204, 10, 8
NAME, SMALL, LINE = 16, 14, 17  # sizes of text
MONO = "font-family='ui-monospace,Menlo,Consolas,monospace'"


def card_before(loop: int) -> tuple[punchcard.SubleqMachine, punchcard.Program, Tensor, list[Snapshot]]:
    """The machine, its program, the card before a loop, and what the layers of that loop do to it."""
    program = punchcard.load(PROGRAM)
    machine = punchcard.build(program, design="two-layer", word_bits=8)
    with machine.observe(program) as seen:
        machine.run(program, max_steps=loop)
    layers = [snapshot for snapshot in seen if snapshot.loop == loop]
    return machine, program, layers[0].before, layers


class Places:
    """Where things stand in the picture: a column's middle, a region's span, a row's top."""

    def __init__(self, layout: Layout) -> None:
        self.columns: list[float] = []
        self.regions: dict[str, tuple[float, float]] = {}
        self.rows: list[float] = []
        self.blocks: dict[str, tuple[float, float]] = {}
        x, y = float(MARGIN + LABELS), float(TOP)
        for region in layout.regions:
            width = WIDTHS[region.name]
            self.columns += [x + width * (i + 0.5) for i in range(region.size)]
            self.regions[region.name] = x, x + width * region.size
            x += width * region.size + GAP
        for block in layout.blocks:
            self.rows += [y + ROW * i for i in range(block.size)]
            self.blocks[block.name] = y, y + ROW * block.size
            y += ROW * block.size + GAP
        self.right, self.bottom = x - GAP + MARGIN, y


def text(x: float, y: float, words: str, *, size: int = NAME, colour: str = INK, anchor: str = "start",
         more: str = "") -> str:
    return (f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{colour}' text-anchor='{anchor}' {more}>"
            f"{escape(words)}</text>")


def box(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' fill='{fill}' {more}/>"


def holes(layout: Layout, card: Tensor, places: Places) -> Iterator[str]:
    """A hole for 1, a mark for -1, nothing for 0; a tint where the layout says that a block holds something."""
    for block in layout.blocks:
        top, bottom = places.blocks[block.name]
        for region in layout.regions:
            left, right = places.regions[region.name]
            tint = REGIONS[region.name] if region.name in block.holds else "#ece3cb"
            yield box(left, top - 1, right - left, bottom - top + 2, tint, "opacity='.5' rx='3'")
            entries = layout.get(card, block.name, region.name)
            first = layout.region(region.name).start
            for i, j in entries.nonzero().tolist():
                x, y = places.columns[first + j], top + ROW * i
                yield (box(x - 9, y + 1.5, 18, ROW - 3, INK, "rx='2'") if entries[i, j] > 0
                       else box(x - 5, y + ROW / 2 - 0.5, 10, 1, INK, "opacity='.35'"))


def labels(block: RowBlock, top: float, bottom: float) -> Iterator[str]:
    """A block's name, what it is, and the names of its parts."""
    right = MARGIN + LABELS - 12 - 20 * bool(block.parts)
    about = block.about.split(", ")[0] if block.holds else "empty between loops"
    lines = wrap(about, 26) if block.size > 1 else []
    y = (top + bottom) / 2 + 5 - LINE * len(lines) / 2
    yield text(right, y, block.name, anchor="end", more=f"{MONO} font-weight='bold'")
    for number, line in enumerate(lines, start=1):
        yield text(right, y + LINE * number, line, size=SMALL, colour=FAINT, anchor="end")
    for part, size in block.parts.items():
        yield text(right + 20, top + ROW * size / 2 + 5, part, size=SMALL, colour=FAINT, anchor="end", more=MONO)
        top += ROW * size


def arrow(start: float, end: float, y: float, height: float, colour: str, words: str) -> Iterator[str]:
    """A curve from one column to another, with what is moved written at its top."""
    yield (f"<path d='M{start:g} {y:g} C{start:g} {y - height:g} {end:g} {y - height:g} {end:g} {y:g}' fill='none' "
           f"stroke='{colour}' stroke-width='2' marker-end='url(#{colour[1:]})'/>")
    middle = (start + end) / 2
    yield box(middle - 4 * len(words), y - 0.75 * height - 10, 8 * len(words), 20, PAPER)
    yield text(middle, y - 0.75 * height + 5, words, size=SMALL, colour=colour, anchor="middle")


def moves(layers: list[Snapshot], places: Places, names: list[str]) -> Iterator[str]:
    """What attention moves: reads above the card, the store and the fetch below."""
    def x(column: int, shift: float) -> float:
        return places.columns[column] + (shift if column == 0 else 0)

    def go(move: Move, y: float, height: float, shift: float, colour: str, words: str) -> Iterator[str]:
        yield from arrow(x(move.source_column, shift), x(move.target_column, shift), y, height, colour, words)

    first, second = layers
    for head, (height, shift) in enumerate(((60, 14), (116, -14))):
        for move in first.moves(head):
            yield from go(move, TOP - 54, height, shift, READ, f"1  read {names[move.source_column]}")
    for move in second.moves(0):
        if move.target_column == 0:
            yield from go(move, places.bottom + 78, -116, -14, FETCH, f"3  fetch {names[move.source_column]}")
        else:
            yield from go(move, places.bottom + 78, -58, 14, STORE, f"3  store {names[move.target_column]}")


def meanings(program: punchcard.Program, card: Tensor, machine: punchcard.SubleqMachine, places: Places) -> Iterator[str]:
    """Below each column, what it says."""
    y, state, sizes, cells = places.bottom, machine.read(card), machine.sizes, program.cell_names()
    yield text(MARGIN + LABELS - 12, y + 14, "read as", size=SMALL, colour=FAINT, anchor="end")
    for j, value in enumerate((0, -1, *state.memory)):
        yield text(places.columns[sizes.zero_column + j], y + 14, str(value), anchor="middle",
                   more=f"{MONO} font-weight='bold'")
    for j, instruction in enumerate(program.instructions):
        x = places.columns[sizes.instruction_column + j]
        parts = ((cells[instruction.a], cells[instruction.b], f"goto {instruction.c}") if isinstance(instruction, Subleq)
                 else ("halt",))
        for line, part in enumerate(parts):
            yield text(x, y + 14 + LINE * line, part, size=SMALL, anchor="middle", more=MONO)
    current = program.instructions[state.program_counter]
    if isinstance(current, Subleq):
        for line, part in enumerate(("2  compute", f"{cells[current.b]} -", cells[current.a])):
            yield text(places.columns[0], y + 14 + LINE * line, part, size=SMALL, anchor="middle", more=MONO if line else "")


def picture() -> str:
    """The whole picture as SVG."""
    machine, program, card, layers = card_before(LOOP)
    layout, places = machine.layout, Places(machine.layout)
    names = [machine.column_name(j, program) for j in range(layout.columns)]
    width, height = places.right, places.bottom + 196
    heads = "".join(
        f"<marker id='{colour[1:]}' viewBox='0 0 8 8' refX='6' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        f"<path d='M0 0L8 4L0 8z' fill='{colour}'/></marker>" for colour in (READ, STORE, FETCH))
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' "
        "font-family='system-ui,Helvetica,Arial,sans-serif'>",
        f"<title>A card: {PROGRAM.name} on the {machine.design.name} machine</title><defs>{heads}</defs>",
        f"<path d='M44 2H{width - 14:g}a12 12 0 0 1 12 12V{height - 14:g}a12 12 0 0 1 -12 12H14a12 12 0 0 1 -12 -12V44z' "
        f"fill='{PAPER}' stroke='{EDGE}' stroke-width='2'/>",
        text(MARGIN + 28, 42, "One card", size=24, more="font-weight='bold'"),
        text(MARGIN + 28, 68, f"{PROGRAM.name}, before loop {LOOP + 1}", size=SMALL, colour=FAINT),
        text(MARGIN + 28, 88, f"{layout.width} rows, {layout.columns} columns", size=SMALL, colour=FAINT),
        box(MARGIN + 28, 100, 18, 7, INK, "rx='2'"), text(MARGIN + 52, 109, "1", size=SMALL, colour=FAINT),
        box(MARGIN + 80, 103.5, 10, 1, INK, "opacity='.5'"), text(MARGIN + 96, 109, "-1", size=SMALL, colour=FAINT),
        text(MARGIN + 128, 109, "blank: 0", size=SMALL, colour=FAINT),
    ]
    for region in layout.regions:
        left, right = places.regions[region.name]
        parts.append(box(left, TOP - 52, right - left, 26, REGIONS[region.name], "rx='4'"))
        parts.append(text((left + right) / 2, TOP - 33, region.name, anchor="middle", more="font-weight='bold'"))
    for j, name in enumerate(names):
        short = name.removeprefix("instruction ")
        if j and not name.startswith("constants"):
            parts.append(text(places.columns[j], TOP - 10, short, size=SMALL, colour=FAINT, anchor="middle", more=MONO))
    parts += holes(layout, card, places)
    for block in layout.blocks:
        parts += labels(block, *places.blocks[block.name])
    parts += meanings(program, card, machine, places)
    parts += moves(layers, places, names)
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    FILE.write_text(picture())
