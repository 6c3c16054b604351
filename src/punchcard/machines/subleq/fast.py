"""SUBLEQ in plain Python, as fast as CPython goes, and in C: what the engines' speed is measured against.

Both work on words without signs. In Python it is a tight loop over tuples, with local names only. `oracle` is the
interpreter to read; tests compare them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat
from typing import TypeAlias

from punchcard.machines.in_c import CFunction
from punchcard.machines.subleq.isa import Program, State, Subleq
from punchcard.machines.subleq.semantics import text_of
from punchcard.words.text import c_text, python_text

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


SOURCE = """
#include <stdint.h>

struct instruction {{ int64_t a, b, c; }};

/* Executes up to `steps` instructions; the number of the next one. A halt has a negative operand. */
int64_t run(const struct instruction *code, uint64_t *memory, int64_t steps, int64_t counter)
{{
    for (; steps > 0; steps--) {{
        const struct instruction *now = code + counter;  /* a copy of it would take three times as long */
        if (now->a < 0)
            break;
        const uint64_t word = {difference};
        memory[now->b] = word;
        counter = {jumps} ? now->c : counter + 1;
    }}
    return counter;
}}
"""
HALT = (-1, 0, 0)


class SubleqInC:
    """A program that the function above runs, and its state. The memory holds words without signs."""

    def __init__(self, program: Program, word_bits: int, memory: int) -> None:
        text = text_of(c_text, word_bits, "memory[now->a]", "memory[now->b]", "word")
        self._run = CFunction(SOURCE.format(**text))
        self._code = array("q", [word for instruction in decode(program) for word in instruction or HALT])
        self._words, self._counter = 1 << word_bits, 0
        self._memory = array("Q", [word % self._words for word in program.memory] + [0] * (memory - len(program.memory)))

    @property
    def state(self) -> State:
        half = self._words // 2
        return State(tuple((word + half) % self._words - half for word in self._memory), self._counter)

    def run(self, steps: int) -> None:
        """Make so many steps; a halt stays where it is."""
        self._counter = self._run(self._code, self._memory, steps, self._counter)
