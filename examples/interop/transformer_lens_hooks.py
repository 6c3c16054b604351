"""TransformerLens opens a machine with all its hooks: who takes from whom, head by head, while a program runs.

    pip install 'punchcard[transformer-lens]'
    python examples/interop/transformer_lens_hooks.py
"""

from __future__ import annotations

from pathlib import Path

import torch

import punchcard

program = punchcard.load(Path(__file__).parent.parent / "multiply.subleq")
machine = punchcard.build(program, design="two-layer")
bridge = punchcard.export.transformer_lens.bridge(machine, program)

stream = machine.punch(program).T[None]  # batch, position, dimension: columns are positions, rows are dimensions
for loop in range(4):
    stream, cache = bridge.run_with_cache(stream)
    for layer, heads in enumerate(bridge.machine["layers"]):
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"][0]
        for number, head in enumerate(heads["heads"]):
            taken = bridge.machine["columns"][int(pattern[number, 0].argmax())]
            print(f"loop {loop + 1}, {head['name']}: the scratchpad takes from {taken:<15} ({head['formula']})")

card = machine.punch(program)
for _ in range(4):
    card = machine.model(card)
assert torch.equal(stream[0].T, card)
print("after four loops the card is the machine's, bit by bit")
