"""nine-layers.svg: one loop of the paper's design, layer by layer, on a real card.

The loop is the last step of a multiplication: b becomes 0, and the program goes to its end. Each panel is the card after a
layer. What the layer changed has another colour, and arrows show what its attention moved.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from docs.draw.listing import instruction_text
from docs.draw.places import Places
from docs.draw.svg import BOLD, EXAMPLES, FAINT, FRESH, INK, MONO, NAME, READ, REGIONS, SMALL, STORE, box, curve, sheet, text

import punchcard
from punchcard.trace import Snapshot

STEPS = ("read the instruction", "read both words", "flip the bits of mem[a]", "add 1: now -mem[a]", "add it to mem[b]",
         "write the difference back", "its sign; counter + 1", "choose where to go on", "correct errors")
WIDTHS = {"scratchpad": 34, "constants": 14, "memory": 20, "instructions": 18}
ROW, GAP, ACROSS, WIDE, HIGH, LEFT, TOP = 3.6, 3, 3, 410, 412, 30, 128


def loop() -> tuple[punchcard.SubleqMachine, punchcard.Program, list[Snapshot]]:
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    machine = punchcard.build(program, design="paper", word_bits=8)
    with machine.observe(program) as seen:
        machine.run(program, max_steps=1000)
    layers = len(machine.model.layers)
    return machine, program, seen[-2 * layers : -layers]  # the last loop of all executes `halt`


def panel(seen: Snapshot, left: float, top: float) -> Iterator[str]:
    """A layer: its number and what it does, the card, what changed by name, and what attention moved."""
    names = 106
    places = Places(seen.layout, left + names, top + 84, WIDTHS, ROW, GAP, wide=3)
    yield text(left + names - 6, top + 21, f"{seen.layer + 1}", size=26, colour=FAINT, anchor="end", more=BOLD)
    yield text(left + names + 2, top + 20, STEPS[seen.layer], more=BOLD)
    yield from places.tints()
    yield from places.holes(seen.after, seen.before)
    for region in seen.layout.regions:
        start, end = places.regions[region.name]
        yield box(start, places.top - 8, end - start, 4, REGIONS[region.name], "rx='2'")
    changed = {block for block, _ in seen.changed()}
    for block in seen.layout.blocks:
        above, below = places.blocks[block.name]
        fresh = block.name in changed
        yield text(places.regions["scratchpad"][0] - 6, (above + below) / 2 + 4, block.name, size=12,
                   colour=FRESH if fresh else FAINT, anchor="end", more=f"{MONO} {BOLD if fresh else ''}")
    for head in range(seen.module.shape.heads):
        for move in seen.moves(head):
            if torch.equal(seen.after[:, move.target_column], seen.before[:, move.target_column]):
                continue  # what it took is cleared again
            start, end = places.columns[move.source_column], places.columns[move.target_column]
            yield curve(start, end, places.top - 12, 36 + 14 * head, READ if move.target_column == 0 else STORE)
    if not seen.module.shape.heads:
        effect = "no head: ReLU alone" if changed else "no head; here it changes nothing"
        yield text(left + names + 2, top + 42, effect, size=SMALL, colour=FAINT)


def picture() -> str:
    machine, program, seen = loop()
    words = instruction_text(program, machine.read(seen[0].before).program_counter)
    parts = [text(LEFT + 22, 48, "One loop, nine layers", size=26, more=BOLD),
             text(LEFT + 22, 76, f"The paper's design executes {words}: {machine.layout.width} rows, "
                  f"{machine.layout.columns} columns.", size=NAME, colour=FAINT)]
    x = LEFT + 22
    for words, colour in {"new after this layer": FRESH, "as it was": INK, **REGIONS}.items():
        parts += [box(x, 91, 14, 8, colour, "rx='2'"), text(x + 20, 100, words, size=SMALL, colour=FAINT)]
        x += 46 + 7 * len(words)
    for number, snapshot in enumerate(seen):
        parts += panel(snapshot, LEFT + WIDE * (number % ACROSS), TOP + HIGH * (number // ACROSS))
    return sheet(2 * LEFT + WIDE * ACROSS - 10, TOP + HIGH * -(-len(seen) // ACROSS) + 10, "One loop, nine layers",
                 "; ".join(f"layer {number}: {step}" for number, step in enumerate(STEPS, start=1)), parts)
