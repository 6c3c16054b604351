"""SUBLEQ in plain Python, as fast as CPython goes: what the engines' speed is measured against.

A tight loop over tuples, with local names only. `oracle` is the interpreter to read; a test compares
the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from punchcard.machines.subleq.isa import Program, State, Subleq


def decode(program: Program) -> list[tuple[int, ...]]:
    """The instructions as tuples (a, b, c); a halt is an empty one."""
    return [(i.a, i.b, i.c) if isinstance(i, Subleq) else () for i in program.instructions]


def run(code: Sequence[tuple[int, ...]], memory: list[int], bits: int, steps: int, counter: int = 0) -> int:
    """Execute up to `steps` instructions on `memory` from instruction `counter`; the number of the next one.

    A word wraps at most once in a difference, and whether it does is asked only on the side where it can.
    """
    words = 1 << bits
    least, greatest = -words // 2, words // 2 - 1
    try:
        for _ in repeat(None, steps):
            a, b, c = code[counter]
            memory[b] = value = memory[b] - memory[a]
            if value > 0:
                counter += 1
                if value > greatest:
                    memory[b] = value - words
                    counter = c
            elif value < least:
                memory[b] = value + words
                counter += 1
            else:
                counter = c
    except ValueError:  # an empty tuple: asking for a halt in every step would cost time in every step
        if code[counter]:
            raise
    return counter


class FastSubleq:
    """The loop above as something that runs and has a state."""

    def __init__(self, program: Program, word_bits: int, memory: int) -> None:
        self._code, self._bits, self._counter = decode(program), word_bits, 0
        self._memory = [*program.memory, *[0] * (memory - len(program.memory))]

    @property
    def state(self) -> State:
        return State(tuple(self._memory), self._counter)

    def run(self, steps: int) -> None:
        """Make so many steps; a halt stays where it is."""
        self._counter = run(self._code, self._memory, self._bits, steps, self._counter)
