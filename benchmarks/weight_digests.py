"""A digest of the weights of many machines, a line of JSON each: two versions with equal digests build equal machines.

    python benchmarks/weight_digests.py

`benchmarks/compare_trees.py` runs it with two versions of the package.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from punchcard import FleqMachine, SubleqMachine, VonNeumannMachine
from punchcard.machines.riscv.machine import RiscvMachine

FUNCTIONS = ("add", "sub", "mul", "transpose", "hadamard", "inverse", "sqrt", "sigmoid", "tanh", "maximum", "relu",
             "incr_pointer")


def machines() -> Iterator[Any]:
    """Every machine and design, in some sizes and number formats."""
    for design in ("paper", "two-layer", "one-layer"):
        for bits, memory, instructions in ((4, 2, 2), (8, 6, 8), (14, 40, 20)):
            for dtype in ("float32", "float64"):
                yield SubleqMachine(word_bits=bits, memory=memory, instructions=instructions, design=design, precision=dtype)
    for dialect in ("standard", "adds", "subtracts", "sic1"):
        yield VonNeumannMachine(word_bits=8, memory=256, dialect=dialect)
    yield VonNeumannMachine(word_bits=16, memory=1024)
    for design in ("three-layer", "two-layer"):
        yield RiscvMachine(memory=64, design=design)
    yield RiscvMachine(memory=1024, multiply=True)
    for design in ("compact", "three-layer", "paper"):
        for size, heads in ((2, 1), (3, 2)):
            yield FleqMachine(functions=FUNCTIONS, size=size, memory=8, instructions=6, heads=heads, design=design)


def digest(machine: Any) -> str:
    """Of all parameters: names, shapes, number formats and every bit."""
    found = hashlib.sha256()
    for name, tensor in machine.model.state_dict().items():
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode() + tensor.contiguous().numpy().tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    for number, machine in enumerate(machines()):
        print(json.dumps([f"{number}: {machine!r}", digest(machine)]))
