"""A memory of many cells compared after every loop: all of it, and at little cost.

The bits that the interpreter's cells would have on a card are kept, and after an instruction only those of its destination
are written anew. So a comparison is one pass over the card's bits, without a number being decoded.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from punchcard.card.encoding import encode_unsigned
from punchcard.card.layout import Layout
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.von_neumann.isa import ImageState
from punchcard.machines.von_neumann.oracle import ImageInterpreter

Differences = Callable[[Tensor, Interpreter[ImageState]], list[str]]


class CellsComparer:
    """Compares cards with an interpreter that goes on by one instruction at a time; `differences` says what is wrong."""

    def __init__(self, layout: Layout, word_bits: int, differences: Differences) -> None:
        self._layout, self._bits, self._differences = layout, word_bits, differences
        self._expected: Tensor | None = None
        self._steps, self._destination = 0, 0

    def __call__(self, card: Tensor, oracle: Interpreter[ImageState]) -> list[str]:
        assert isinstance(oracle, ImageInterpreter)
        expected = self._followed(oracle, card.dtype)
        cells = self._layout.get(card, "memory", "memory")
        counter = self._layout.numbers(card, "counter", "scratchpad")[..., 0]
        if int(counter) == (oracle.program_counter + 3) % (1 << self._bits) and bool((cells == expected).all()):
            return []
        return self._differences(card, oracle)

    def _followed(self, oracle: ImageInterpreter, dtype: torch.dtype) -> Tensor:
        """The bits of the interpreter's cells; the last instruction changed no cell but its destination."""
        if self._expected is None or oracle.steps not in (self._steps, self._steps + 1):
            bits = encode_unsigned(torch.tensor(oracle.cells), self._bits, dtype)
            self._expected = bits.T.contiguous().T  # a column's bits side by side, as a fast engine has them
        elif oracle.steps > self._steps and self._destination < len(oracle.cells):
            word = oracle.cells[self._destination]
            self._expected[:, self._destination] = encode_unsigned(word, self._bits, dtype)[:, 0]
        self._steps = oracle.steps
        self._destination = oracle.operands()[1] if oracle.stop is None else 0
        return self._expected
