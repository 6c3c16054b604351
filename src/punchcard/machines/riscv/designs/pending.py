"""The word that is pending: where results lag, the scratchpad holds the last one, which the next loop stores.

Who looks at a card between two loops must see it as if it were stored; who changes a card stores it first.
"""

from __future__ import annotations

from punchcard.card.layout import Card, Layout
from punchcard.machines.riscv.isa import REGISTERS

PENDING = "pending"
SETTLED = len(REGISTERS)
"""The sink, in the space of registers: nothing is pending."""


def pending_word(layout: Layout, card: Card) -> tuple[int, int] | None:
    """The column of a register or a word of the memory that is behind, and what will be stored there."""
    if all(block.name != PENDING for block in layout.blocks):
        return None
    scratch, memory = layout.region("scratchpad").start, layout.region("memory")
    position = layout.number_at(card, f"{PENDING}.position", scratch)
    value = layout.number_at(card, "value", scratch)
    if layout.number_at(card, f"{PENDING}.space", scratch):
        return (layout.region("registers").start + position, value) if position < SETTLED else None
    first = layout.number_at(card, "address.position", memory.start)
    column = memory.start + (position - first) % (1 << layout.place("address.position").size)
    return column, value


def settle(layout: Layout, card: Card) -> None:
    """Store what is pending, and let nothing be pending."""
    found = pending_word(layout, card)
    if found is None:
        return
    scratch = layout.region("scratchpad").start
    layout.put_number_at(card, "memory", *found)
    layout.put_number_at(card, f"{PENDING}.position", scratch, SETTLED)
    layout.put_number_at(card, f"{PENDING}.space", scratch, 1)
