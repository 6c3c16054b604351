"""Random SUBLEQ programs for comparing machines with the interpreter."""

from __future__ import annotations

import random

from punchcard.machines.subleq.isa import Halt, Instruction, Program, Subleq

HALTS = 0.01  # few, so that programs run on


def random_program(rng: random.Random, word_bits: int, cells: int, instructions: int) -> Program:
    """A program with data over the full range, near zero and at both extremes."""
    least, greatest = -(1 << (word_bits - 1)), (1 << (word_bits - 1)) - 1
    kinds = (
        lambda: rng.randint(least, greatest),
        lambda: rng.randint(-2, min(2, greatest)),
        lambda: rng.choice((least, least + 1, greatest, greatest - 1)),
    )
    memory = [rng.choice(kinds)() for _ in range(cells)]
    code: list[Instruction] = [
        Halt() if rng.random() < HALTS
        else Subleq(rng.randrange(cells), rng.randrange(cells), rng.randrange(instructions - 1))
        for _ in range(instructions - 1)
    ]
    return Program.create([*code, Halt()], memory)
