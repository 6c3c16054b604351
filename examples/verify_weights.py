"""A certificate for weights that somebody changed, verified against their file.

    python examples/verify_weights.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

import punchcard


def main() -> None:
    machine = punchcard.SubleqMachine(word_bits=3, memory=3, instructions=4, design="two-layer")
    w1, b1, w2 = (machine.model.layers[0].get_parameter(name) for name in ("w1", "b1", "w2"))
    with torch.no_grad():  # the same function from other weights: a hidden unit twice as large counts half
        w1[0] *= 2
        b1[0] *= 2
        w2[:, 0] /= 2
    with tempfile.TemporaryDirectory() as name:
        weights, proof = Path(name) / "machine.safetensors", Path(name) / "proof.json"
        machine.save(weights)
        machine.prove().save(proof)
        # who gets the two files asks: punchcard prove --verify proof.json --weights machine.safetensors
        print("the changed weights:", punchcard.verify(machine, proof, weights=weights))
        fresh = punchcard.SubleqMachine(word_bits=3, memory=3, instructions=4, design="two-layer")
        print("the usual weights:", fresh.verify(proof))


if __name__ == "__main__":
    main()
