"""card.svg: a real card with its regions and named rows.

The card is that of examples/multiply.subleq on the two-layer machine, as it is before one loop. The arrows are what
attention moves in that loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from docs.draw.places import Places
from docs.draw.svg import (
    BOLD,
    EXAMPLES,
    FAINT,
    FETCH,
    INK,
    LINE,
    MONO,
    READ,
    REGIONS,
    SMALL,
    STORE,
    arrow,
    box,
    sheet,
    text,
)
from torch import Tensor

import punchcard
from punchcard.card.layout import RowBlock
from punchcard.machines.subleq.isa import Subleq
from punchcard.trace import Move, Snapshot

PROGRAM = EXAMPLES / "multiply.subleq"
LOOP = 11  # the one that is drawn, counted from 0: it executes `subleq minus_a, product`
WIDTHS = {"scratchpad": 108, "constants": 46, "memory": 66, "instructions": 66}  # of a column
MARGIN, LABELS, TOP, ROW, GAP = 24, 238, 204, 10, 8


def card_before(loop: int) -> tuple[punchcard.SubleqMachine, punchcard.Program, Tensor, list[Snapshot]]:
    """The machine, its program, the card before a loop, and what the layers of that loop do to it."""
    program = punchcard.load(PROGRAM)
    machine = punchcard.build(program, design="two-layer", word_bits=8)
    with machine.observe(program) as seen:
        machine.run(program, max_steps=loop)
    layers = [snapshot for snapshot in seen if snapshot.loop == loop]
    return machine, program, layers[0].before, layers


def labels(block: RowBlock, top: float, bottom: float) -> Iterator[str]:
    """A block's name, what it is, and the names of its parts."""
    right = MARGIN + LABELS - 12 - 20 * bool(block.parts)
    about = block.about.split(", ")[0] if block.holds else "empty between loops"
    lines = wrap(about, 26) if block.size > 1 else []
    y = (top + bottom) / 2 + 5 - LINE * len(lines) / 2
    yield text(right, y, block.name, anchor="end", more=f"{MONO} {BOLD}")
    for number, line in enumerate(lines, start=1):
        yield text(right, y + LINE * number, line, size=SMALL, colour=FAINT, anchor="end")
    for part, size in block.parts.items():
        yield text(right + 20, top + ROW * size / 2 + 5, part, size=SMALL, colour=FAINT, anchor="end", more=MONO)
        top += ROW * size


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
                   more=f"{MONO} {BOLD}")
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
    layout, places = machine.layout, Places(machine.layout, MARGIN + LABELS, TOP, WIDTHS, ROW, GAP)
    names = [machine.column_name(j, program) for j in range(layout.columns)]
    width, height = places.right + MARGIN, places.bottom + 196
    parts = [
        text(MARGIN + 28, 42, "One card", size=24, more=BOLD),
        text(MARGIN + 28, 68, f"{PROGRAM.name}, before loop {LOOP + 1}", size=SMALL, colour=FAINT),
        text(MARGIN + 28, 88, f"{layout.width} rows, {layout.columns} columns", size=SMALL, colour=FAINT),
        box(MARGIN + 28, 100, 18, 7, INK, "rx='2'"), text(MARGIN + 52, 109, "1", size=SMALL, colour=FAINT),
        box(MARGIN + 80, 103.5, 10, 1, INK, "opacity='.5'"), text(MARGIN + 96, 109, "-1", size=SMALL, colour=FAINT),
        text(MARGIN + 128, 109, "blank: 0", size=SMALL, colour=FAINT),
    ]
    for region in layout.regions:
        left, right = places.regions[region.name]
        parts.append(box(left, TOP - 52, right - left, 26, REGIONS[region.name], "rx='4'"))
        parts.append(text((left + right) / 2, TOP - 33, region.name, anchor="middle", more=BOLD))
    for j, name in enumerate(names):
        short = name.removeprefix("instruction ")
        if j and not name.startswith("constant "):
            parts.append(text(places.columns[j], TOP - 10, short, size=SMALL, colour=FAINT, anchor="middle", more=MONO))
    parts += [*places.tints(), *places.holes(card)]
    for block in layout.blocks:
        parts += labels(block, *places.blocks[block.name])
    parts += meanings(program, card, machine, places)
    parts += moves(layers, places, names)
    return sheet(width, height, "One card of the two-layer SUBLEQ machine",
                 f"{PROGRAM.name} before loop {LOOP + 1}: {layout.width} rows by {layout.columns} columns, and what "
                 "attention moves", parts)
