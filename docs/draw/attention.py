"""attention.svg: the attention matrix of each head of the two-layer SUBLEQ machine in one loop, with the columns by name.

The loop is the one of card.svg. Across are the columns that ask, down those that they take from, as on the
page: a column of a panel sums to 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from docs.draw.card import LOOP, PROGRAM, card_before
from docs.draw.listing import instruction_text
from docs.draw.svg import BOLD, EMPTY, FAINT, FETCH, INK, MONO, NAME, PAPER, READ, SMALL, STORE, box, sheet, text

from punchcard.trace import Snapshot

CELL, NAMES, TOP, LEFT, GAP = 21, 112, 124, 40, 22
ABOUT = {(0, 0): "reads mem[a]", (0, 1): "reads mem[b]", (1, 0): "stores, and fetches"}


def panel(seen: Snapshot, head: int, left: float, names: list[str]) -> Iterator[str]:
    """A matrix: who asks across, from whom down. What is not a column's own has a colour and a number."""
    weights, size = seen.attention(head), len(names)
    x, y = left + NAMES, TOP + 122
    yield text(x, TOP + 4, f"layer {seen.layer + 1}, head {head + 1}", more=BOLD)
    yield text(x, TOP + 24, ABOUT[seen.layer, head], size=SMALL, colour=FAINT)
    for i, name in enumerate(names):
        yield text(x - 7, y + CELL * i + 15, name, size=13, colour=FAINT, anchor="end", more=MONO)
        yield text(0, 0, name, size=13, colour=FAINT,
                   more=f"{MONO} transform='translate({x + CELL * i + 15:g} {y - 7:g}) rotate(-90)'")
    yield box(x, y, CELL * size, CELL * size, EMPTY, "rx='3'")
    for target in range(size):
        for source in range(size):
            weight = float(weights[source, target])
            if weight == 0:
                continue
            moved = source != target and weight > 0.25
            colour = INK if not moved else READ if seen.layer == 0 else FETCH if target == 0 else STORE
            place = x + CELL * target + 1.5, y + CELL * source + 1.5, CELL - 3, CELL - 3
            yield box(*place, colour, f"rx='3' opacity='{weight if moved else 0.3 * weight:.3g}'")
            if moved:
                yield text(place[0] + 9, place[1] + 13.5, f"{weight:.2g}", size=13, colour=PAPER, anchor="middle",
                           more=BOLD)


def picture() -> str:
    machine, program, card, layers = card_before(LOOP)
    names = [machine.column_name(j, program).replace("instruction", "instr.").replace("constant", "const.")
             for j in range(machine.layout.columns)]
    heads = [(seen, head) for seen in layers for head in range(seen.module.shape.heads)]
    wide = NAMES + CELL * len(names) + GAP
    words = instruction_text(program, machine.read(card).program_counter)
    parts = [text(LEFT + 22, 48, "Who takes from whom", size=26, more=BOLD),
             text(LEFT + 22, 76, f"{PROGRAM.name}, loop {LOOP + 1}: {words}. Across: who takes; down: from whom. "
                  "Grey: from itself.", size=NAME, colour=FAINT)]
    for number, (seen, head) in enumerate(heads):
        parts += panel(seen, head, LEFT + wide * number, names)
    return sheet(2 * LEFT + wide * len(heads) - GAP, TOP + 122 + CELL * len(names) + 40,
                 "The attention of each head of the two-layer machine",
                 "; ".join(f"layer {seen.layer + 1} head {head + 1}: {move.target} takes {move.weight:.2g} of {move.source}"
                           for seen, head in heads for move in seen.moves(head)), parts)
