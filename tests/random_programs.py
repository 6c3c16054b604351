"""Random SUBLEQ programs, images that change their own code, and Turing machines, to compare with the interpreter."""

from __future__ import annotations

import random

from punchcard.machines.subleq.isa import Halt, Instruction, Program, Subleq
from punchcard.machines.von_neumann.isa import Image

HALTS = 0.01  # few, so that programs run on
SMALL = 2  # an operand that changes by so little mostly stays an address
STORES_AHEAD = 0.4
WILD = 0.04


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


def random_image(rng: random.Random, word_bits: int, memory: int) -> Image:
    """Instructions, then data. Many stores go to a word of the following instruction, and a few words are anything."""
    size = 1 << word_bits
    instructions = max(1, min(memory // 3 - 1, (size // 2) // 3))
    data = range(3 * instructions, memory)
    targets = [3 * i for i in range(instructions)]
    words: list[int] = []
    for start in targets:
        following = range(start + 3, min(start + 6, memory))
        source = rng.choice(data) if data and rng.random() < 0.8 else rng.randrange(memory)
        ahead = following and rng.random() < STORES_AHEAD
        destination = rng.choice(following) if ahead else rng.randrange(memory)
        jump = start + 3 if rng.random() < 0.6 and start + 3 in targets else rng.choice(targets)
        words += [rng.randrange(size) if rng.random() < WILD else word for word in (source, destination, jump)]
    words += [rng.randint(-SMALL, SMALL) if rng.random() < 0.8 else rng.randrange(size) for _ in data]
    return Image(tuple(word % size for word in words))


def random_turing_text(rng: random.Random, states: int, symbols: int, squares: int) -> str:
    """A program of the Turing machine in `examples/turing/`. Most pairs have a rule, so that runs are long."""
    letters = "_abcdefgh"[:symbols]
    tape = [rng.choice(letters) for _ in range(rng.randrange(1, squares + 1))]
    head = rng.randrange(len(tape))
    tape[head] = f"[{tape[head]}]"
    rules = [f"q{q} {s} -> {rng.choice(letters)} {rng.choice('LLSRR')} q{rng.randrange(states)}\n"
             for q in range(states) for s in letters if rng.random() < 0.9]
    return "".join([f"tape {''.join(tape)}\n", *(rules or ["q0 _ -> _ R q0\n"])])
