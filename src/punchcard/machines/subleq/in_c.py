"""SUBLEQ in plain C: what a program costs where no transformer is in between."""

from __future__ import annotations

from array import array

from punchcard.machines.in_c import CFunction
from punchcard.machines.subleq.fast import decode
from punchcard.machines.subleq.isa import Program, State
from punchcard.machines.subleq.semantics import text_of
from punchcard.words.text import c_text

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
