"""SUBLEQ with one memory in plain C. Instructions with a port among their operands are left to the Python interpreter."""

from __future__ import annotations

from array import array

from punchcard.machines.in_c import CFunction
from punchcard.machines.subleq.semantics import text_of
from punchcard.machines.von_neumann.isa import STANDARD, Dialect, Image
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from punchcard.words.text import c_text

SOURCE = """
#include <stdint.h>

/* Executes up to `steps` instructions whose operands are all cells, from `*place` on; how many it has executed. */
int64_t run(uint64_t *cells, uint64_t *place, int64_t steps, uint64_t data_end, uint64_t code_end, uint64_t source)
{{
    uint64_t counter = *place;
    int64_t left = steps;

    for (; left > 0 && counter < code_end; left--) {{
        const uint64_t a = cells[counter + source], b = cells[counter + 1 - source], c = cells[counter + 2];
        if (a >= data_end || b >= data_end)
            break;
        const uint64_t word = {difference};
        cells[b] = word;
        counter = {jumps} ? c : counter + 3;
    }}
    *place = counter;
    return steps - left;
}}
"""
MANY = 1 << 62


class ImageInC(ImageInterpreter):
    """The interpreter with its inner loop in C."""

    def __init__(self, image: Image, word_bits: int, memory: int, *, dialect: Dialect = STANDARD) -> None:
        super().__init__(image, word_bits, memory, dialect=dialect)
        self._words = array("Q", self.cells)
        self.cells = self._words
        self._run = CFunction(SOURCE.format(**text_of(c_text, word_bits, "cells[a]", "cells[b]", "word")))

    def _run_cells(self, limit: int) -> None:
        place = array("Q", [self.program_counter])
        steps = MANY if limit < 0 else limit - self.steps
        self.steps += self._run(self._words, place, steps, self._data_end, self._code_end,
                                int(self._dialect.destination_first))
        self.program_counter = place[0]
        self._examine()
