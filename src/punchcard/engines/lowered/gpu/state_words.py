"""The states of the machines of a batch, 64 bits for each, as kernels keep them between launches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.compiled_model import CompiledModel

StateArray = npt.NDArray[np.uint64]


class StateWords:
    """Those that are words, then those that are numbers, entry by entry."""

    def __init__(self, compiled_model: CompiledModel) -> None:
        places, number = compiled_model.places, np.dtype(compiled_model.number)
        self._compiled_model, self._buffer = compiled_model, np.zeros(places.size, dtype=np.uint8)
        self._words = [self._buffer[at : at + 8].view(np.uint64) for at in places.words.values()]
        self._words += [self._buffer[at : at + number.itemsize].view(f"u{number.itemsize}")
                        for slot, first in places.slots.items()
                        for at in range(first, first + slot.width * number.itemsize, number.itemsize)]

    def begin(self, cards: Sequence[PackedCard]) -> StateArray:
        """From cards: states x machines."""
        found = np.zeros((len(self._words), len(cards)), dtype=np.uint64)
        for i, card in enumerate(cards):
            self._compiled_model.begin(self._buffer, card)
            found[:, i] = [word[0] for word in self._words]
        return found

    def finish(self, states: StateArray, card: PackedCard) -> None:
        """To a card."""
        for word, state in zip(self._words, states, strict=True):
            word[0] = state
        self._compiled_model.finish(self._buffer, card)
