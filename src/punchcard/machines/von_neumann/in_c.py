"""SUBLEQ with one memory in plain C. Instructions with a port among their operands are left to the Python interpreter."""

from __future__ import annotations

import ctypes
from array import array

from punchcard.machines.in_c import compiled
from punchcard.machines.von_neumann.isa import STANDARD, Dialect, Image
from punchcard.machines.von_neumann.oracle import ImageInterpreter

SOURCE = """
#include <stdint.h>

/* Executes up to `steps` instructions whose operands are all cells, from `*place` on; how many it has executed. */
int64_t run(int64_t *cells, int64_t *place, int64_t steps, int64_t data_end, int64_t code_end, int64_t bits, int64_t source)
{
    const int64_t mask = ((int64_t)1 << bits) - 1, half = (int64_t)1 << (bits - 1);
    int64_t counter = *place, left = steps;

    for (; left > 0 && counter < code_end; left--) {
        const int64_t a = cells[counter + source], b = cells[counter + 1 - source], c = cells[counter + 2];
        if (a >= data_end || b >= data_end)
            break;
        const int64_t word = (cells[b] - cells[a]) & mask;
        cells[b] = word;
        counter = 0 < word && word < half ? counter + 3 : c;
    }
    *place = counter;
    return steps - left;
}
"""
MANY = 1 << 62


class ImageInC(ImageInterpreter):
    """The interpreter with its inner loop in C."""

    def __init__(self, image: Image, word_bits: int, memory: int, *, dialect: Dialect = STANDARD) -> None:
        super().__init__(image, word_bits, memory, dialect=dialect)
        self._words = array("q", self.cells)
        self.cells = self._words
        self._run = compiled(SOURCE).run
        self._run.restype = ctypes.c_int64

    def _run_cells(self, limit: int) -> None:
        place = ctypes.c_int64(self.program_counter)
        steps = MANY if limit < 0 else limit - self.steps
        numbers = (steps, self._data_end, self._code_end, self._bits, int(self._dialect.destination_first))
        self.steps += self._run(ctypes.c_void_p(self._words.buffer_info()[0]), ctypes.byref(place),
                                *map(ctypes.c_int64, numbers))
        self.program_counter = place.value
        self._examine()
