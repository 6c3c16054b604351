"""SIC-1 by its manual, as plainly as it can be written, and random programs for it. It shares no code with the package.

256 bytes, signed. `subleq A B C`: mem[A] -= mem[B]; at 0 or less goto C. Address 253 is @IN, 254 @OUT, 255 @HALT. The
manual's errata: an instruction takes one input if A or B is @IN, and both read that one; a store to @IN is lost; a jump to
anything beyond 252 halts; the instruction at 251 or 252 finds zeros beyond 252. The manual says that the program
terminates when @HALT is accessed. (Its emulator lets such an instruction pass; see docs/von-neumann.md.)
"""

from __future__ import annotations

import random
from dataclasses import dataclass

IN, OUT, HALT = 253, 254, 255


@dataclass(frozen=True)
class Sic1Run:
    """Where a run ended: the user's memory, the next instruction, steps, output, and how many inputs it took."""

    memory: tuple[int, ...]
    counter: int
    steps: int
    output: bytes
    taken: int


def run_sic1(program: tuple[int, ...], given: bytes, max_steps: int) -> Sic1Run:
    """Run a program of at most 253 bytes; after its end an input is -1."""
    memory = [byte % 256 for byte in program] + [0] * (256 - len(program))
    counter = steps = taken = 0
    output = bytearray()
    while counter <= 252 and steps < max_steps:
        a, b, c = memory[counter : counter + 3]
        if HALT in (a, b):
            break
        value = 0
        if IN in (a, b):
            value = given[taken] if taken < len(given) else -1
            taken += 1
        left = value if a == IN else memory[a]
        right = value if b == IN else memory[b]
        result = (left - right) % 256
        if a == OUT:
            output.append(result)
        elif a != IN:
            memory[a] = result
        counter = c if result == 0 or result > 127 else counter + 3
        steps += 1
    return Sic1Run(tuple(memory[:253]), counter, steps, bytes(output), min(taken, len(given)))


def random_sic1(rng: random.Random, *, input_as_destination: bool) -> tuple[int, ...]:
    """Up to twelve instructions, one that halts, and some data; many operands are ports."""
    count = rng.randint(2, 12)
    data = range(3 * count + 3, 3 * count + 11)
    destinations = [OUT, OUT, *([IN] * 5 if input_as_destination else []), *data]
    words: list[int] = []
    for _ in range(count):
        source = rng.choice([IN] * 4 + [OUT, *data, *data])
        words += [rng.choice(destinations), source, rng.choice([*range(0, 3 * count, 3), HALT])]
    values = [rng.randint(-9, 9) if rng.random() < 0.7 else rng.randrange(256) for _ in data]
    return (*words, data[0], data[0], HALT, *values)
