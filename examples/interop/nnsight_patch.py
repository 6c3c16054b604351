"""nnsight opens the equation as it is: see what a head of the two-layer machine does, then patch it.

    pip install nnsight
    python examples/interop/nnsight_patch.py

Head 1 of the first layer brings what `subleq a, b` subtracts into the scratchpad. We run one loop of a program, with what the
head brought taken from another program, in which a is 5 and not 7. Nothing else is changed, so the machine must compute
product - 5 where it would have computed product - 7.
"""

from __future__ import annotations

from pathlib import Path

import torch
from nnsight import NNsight

import punchcard

program = punchcard.load(Path(__file__).parent.parent / "multiply.subleq")
other = program.with_values({"a": 5})
machine = punchcard.build(program, design="two-layer")
wrapped = NNsight(machine.model)


def first_instruction(of: object) -> torch.Tensor:
    """The card of a program after its warm-up loop: its first instruction, `subleq a, minus_a`, is next."""
    return machine.model(machine.punch(of))


def brought(card: torch.Tensor, head: int) -> torch.Tensor:
    """What a head of the first layer adds to a card."""
    layer = machine.model.layers[0]
    return layer.value[head] @ card @ layer.attention(card, head)


card, donor = first_instruction(program), first_instruction(other)

# The first layer is attention and a ReLU layer on what attention left. We replace what head 1 brought, and let the ReLU layer of
# the same block compute with it.
HEAD = 0
attended = machine.model.layers[0].attend(card) - brought(card, HEAD) + brought(donor, HEAD)
changed = machine.model.layers[0].feed_forward(attended)
with wrapped.trace(card):
    wrapped.layers[0].output = changed
    after = wrapped.output.save()

patched = machine.read(after).memory[program.symbols["minus_a"]]
expected = machine.read(machine.model(donor)).memory[program.symbols["minus_a"]]
untouched = machine.read(machine.model(card)).memory[program.symbols["minus_a"]]
print(f"minus_a is {untouched}; with head {HEAD + 1} patched it is {patched}")
