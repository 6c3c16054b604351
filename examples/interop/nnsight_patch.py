"""nnsight opens the equation as it is: see what a head of the two-layer machine does, then patch it.

    pip install nnsight
    python examples/interop/nnsight_patch.py

Head 1 of the first layer brings what an instruction subtracts into the scratchpad. We run the first instruction of a
program, `subleq a, minus_a`, with what that head brought taken from another program, in which a is 5 and not 7. Nothing
else is changed. If the head does what its formula says, minus_a becomes 0 - 5 where it would have become 0 - 7.
"""

from __future__ import annotations

from pathlib import Path

from nnsight import NNsight
from torch import Tensor

import punchcard

program = punchcard.load(Path(__file__).parent.parent / "multiply.subleq")
other = program.with_values({"a": 5})
machine = punchcard.build(program, design="two-layer")
wrapped = NNsight(machine.model)


layer = machine.model.layers[0]
HEAD = 0


def first_instruction(of: object) -> Tensor:
    """The card of a program after its warm-up loop: its first instruction, `subleq a, minus_a`, is next."""
    after: Tensor = machine.model(machine.punch(of))
    return after


def brought(card: Tensor) -> Tensor:
    """What the head adds to a card."""
    added: Tensor = layer.value[HEAD] @ card @ layer.attention(card, HEAD)
    return added


def minus_a(card: Tensor) -> int:
    """The value of the cell that the instruction changes."""
    return int(machine.values(program, machine.read_own(program, card))["minus_a"])


card, donor = first_instruction(program), first_instruction(other)
with wrapped.trace(card):
    now = wrapped.layers[0].input
    wrapped.layers[0].output = layer.feed_forward(layer.attend(now) - brought(now) + brought(donor))
    after = wrapped.output.save()

patched, expected, untouched = minus_a(after), minus_a(machine.model(donor)), minus_a(machine.model(card))
print(f"minus_a is {untouched}; with what head {HEAD + 1} brought from the other program it is {patched}")
