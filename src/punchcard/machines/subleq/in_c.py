"""SUBLEQ in plain C: what a program costs where no transformer is in between."""

from __future__ import annotations

import ctypes
from array import array

from punchcard.machines.in_c import compiled
from punchcard.machines.subleq.fast import decode
from punchcard.machines.subleq.isa import Program, State

SOURCE = """
#include <stdint.h>

struct instruction { int64_t a, b, c; };

/* Executes up to `steps` instructions; the number of the next one. A halt has a negative operand. */
int64_t run(const struct instruction *code, int64_t *memory, int64_t bits, int64_t steps, int64_t counter)
{
    const int beyond = 64 - (int)bits;

    for (; steps > 0; steps--) {
        const struct instruction *now = code + counter;  /* a copy of it would take three times as long */
        if (now->a < 0)
            break;
        const int64_t word = (int64_t)((uint64_t)(memory[now->b] - memory[now->a]) << beyond) >> beyond;
        memory[now->b] = word;
        counter = word > 0 ? counter + 1 : now->c;
    }
    return counter;
}
"""
HALT = (-1, 0, 0)


class SubleqInC:
    """A program that the function above runs, and its state."""

    def __init__(self, program: Program, word_bits: int, memory: int) -> None:
        self._run = compiled(SOURCE).run
        self._run.restype = ctypes.c_int64
        self._code = array("q", [word for instruction in decode(program) for word in instruction or HALT])
        self._memory = array("q", [*program.memory, *[0] * (memory - len(program.memory))])
        self._bits, self._counter = word_bits, 0

    @property
    def state(self) -> State:
        return State(tuple(self._memory), self._counter)

    def run(self, steps: int) -> None:
        """Make so many steps; a halt stays where it is."""
        code, memory = (ctypes.c_void_p(words.buffer_info()[0]) for words in (self._code, self._memory))
        self._counter = self._run(code, memory, *map(ctypes.c_int64, (self._bits, steps, self._counter)))
