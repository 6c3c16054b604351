"""SUBLEQ in plain Python, as fast as CPython goes: what the engines' speed is measured against.

A tight loop over tuples, with local names only, on words without signs. `oracle` is the interpreter to read; a test compares
the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat
from typing import TypeAlias

from punchcard.machines.subleq.isa import Program, State, Subleq
from punchcard.machines.subleq.semantics import text_of
from punchcard.words.text import python_text

Loop: TypeAlias = Callable[[Sequence[tuple[int, ...]], list[int], int, int], int]
LOOP = """
def loop(code, memory, steps, counter):
    try:
        for _ in repeat(None, steps):
            a, b, c = code[counter]
            memory[b] = word = {difference}
            counter = c if {jumps} else counter + 1
    except ValueError:  # an empty tuple: asking for a halt in every step would cost time in every step
        if code[counter]:
            raise
    return counter
"""


@cache
def loop_of(bits: int) -> Loop:
    """The loop for words of so many bits."""
    names: dict[str, Loop] = {}
    exec(LOOP.format(**text_of(python_text, bits, "memory[a]", "memory[b]", "word")), {"repeat": repeat}, names)
    return names["loop"]


def decode(program: Program) -> list[tuple[int, ...]]:
    """The instructions as tuples (a, b, c); a halt is an empty one."""
    return [(i.a, i.b, i.c) if isinstance(i, Subleq) else () for i in program.instructions]


def run(code: Sequence[tuple[int, ...]], memory: list[int], bits: int, steps: int, counter: int = 0) -> int:
    """Execute up to `steps` instructions on `memory` from instruction `counter`; the number of the next one."""
    words, half = 1 << bits, 1 << bits - 1
    memory[:] = [word % words for word in memory]
    try:
        return loop_of(bits)(code, memory, steps, counter)
    finally:
        memory[:] = [(word + half) % words - half for word in memory]


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
