"""A memory of many cells compared after every loop: all of it, and at little cost.

The interpreter's cells are kept as an array, in which after an instruction only its destination is written anew. So a
comparison is one pass over the words of a card.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from punchcard.card.encoding import Numbers
from punchcard.card.layout import Card, Layout
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.von_neumann.isa import ImageState
from punchcard.machines.von_neumann.oracle import ImageInterpreter

Differences = Callable[[Card, Interpreter[ImageState]], list[str]]


class CellsComparer:
    """Compares cards with an interpreter that goes on by one instruction at a time; `differences` says what is wrong."""

    def __init__(self, layout: Layout, word_bits: int, differences: Differences) -> None:
        self._layout, self._bits, self._differences = layout, word_bits, differences
        self._expected: Numbers | None = None
        self._steps, self._destination = 0, 0

    def __call__(self, card: Card, oracle: Interpreter[ImageState]) -> list[str]:
        assert isinstance(oracle, ImageInterpreter)
        expected = self._followed(oracle)
        counter = self._layout.number_at(card, "counter", self._layout.region("scratchpad").start)
        if counter == (oracle.program_counter + 3) % (1 << self._bits) and np.array_equal(
                self._layout.numbers(card, "memory", "memory"), expected):
            return []
        return self._differences(card, oracle)

    def _followed(self, oracle: ImageInterpreter) -> Numbers:
        """The interpreter's cells; the last instruction changed no cell but its destination."""
        if self._expected is None or oracle.steps not in (self._steps, self._steps + 1):
            self._expected = np.array(oracle.cells)
        elif oracle.steps > self._steps and self._destination < len(oracle.cells):
            self._expected[self._destination] = oracle.cells[self._destination]
        self._steps = oracle.steps
        self._destination = oracle.operands()[1] if oracle.stop is None else 0
        return self._expected
