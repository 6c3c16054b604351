"""How far disguises may go before a machine computes something else: the figures of docs/ground-truth.md.

    python benchmarks/ground_truth.py            rotations, idle rows and heads
    python benchmarks/ground_truth.py --noise    the largest noise, by the bits of a word
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

import punchcard
from punchcard.errors import DisguiseError
from punchcard.export.disguise import Disguise, Disguised
from punchcard.export.disguise_options import Rotation

MACHINES: list[tuple[str, dict[str, Any], int]] = [
    ("multiply.subleq", {"design": "paper"}, 100), ("multiply.subleq", {"design": "two-layer"}, 100),
    ("multiply.subleq", {"design": "one-layer"}, 100), ("newton.fleq", {"design": "compact"}, 40),
    ("newton.fleq", {"design": "paper"}, 40), ("von_neumann/factorial.asq", {"memory": 512}, 40),
    ("riscv/fibonacci.s", {"memory": 128, "design": "three-layer"}, 10),
    ("riscv/fibonacci.s", {"memory": 128, "design": "two-layer"}, 10),
]
KINDS: tuple[Rotation, ...] = ("permuted", "exact", "random")
SEEDS = 3


def tried(machine: Any, program: Any, disguise: Disguise, loops: int) -> str:
    """Loops that agreed with the interpreter, and the drift; or why it broke."""
    try:
        found = Disguised(machine, disguise).check([program], loops)
    except DisguiseError as error:
        return "wrong " + " ".join(str(error).partition(": ")[2].split()[:3])
    return f"{found.loops} loops, {found.drift:.0e}" if found.drift else f"{found.loops} loops, 0"


def rotations() -> None:
    print("| machine | " + " | ".join(KINDS) + " | exact, with 16 idle rows and 2 idle heads |")
    print("|---|" + "---|" * (len(KINDS) + 1))
    for file, options, loops in MACHINES:
        program = punchcard.load(f"examples/{file}")
        machine = punchcard.build(program, **options)
        cells = [tried(machine, program, Disguise(kind), loops) for kind in KINDS]
        cells.append(tried(machine, program, Disguise("exact", 16, 2), loops))
        print(f"| {machine.kind.name}, {machine.design.name} | {' | '.join(cells)} |", flush=True)


def noises() -> None:
    print("| word bits | two-layer | one-layer |\n|---|---|---|")
    for bits in (5, 8, 12, 16):
        found = []
        for design in ("two-layer", "one-layer"):
            program = punchcard.load("examples/multiply.subleq").with_values({"a": 2, "b": 6})
            machine = punchcard.build(program, design=design, word_bits=bits)
            exponent = 3
            while not all(holds(machine, program, 10.0**-exponent, seed) for seed in range(SEEDS)):
                exponent += 1
            found.append(f"1e-{exponent}")
        print(f"| {bits} | {' | '.join(found)} |", flush=True)


def holds(machine: Any, program: Any, noise: float, seed: int) -> bool:
    try:
        Disguised(machine, Disguise(noise=noise, seed=seed)).check([program], 40)
    except DisguiseError:
        return False
    return True


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--noise", action="store_true")
    if parser.parse_args().noise:
        noises()
    else:
        rotations()
