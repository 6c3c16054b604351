"""The states of the machines of a batch, 64 bits for each, as kernels keep them between launches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.computer import Computer

StateWords = npt.NDArray[np.uint64]


class States:
    """Those that are words, then those that are numbers, entry by entry."""

    def __init__(self, computer: Computer) -> None:
        places, number = computer.places, np.dtype(computer.number)
        self._computer, self._buffer = computer, np.zeros(places.size, dtype=np.uint8)
        self._words = [self._buffer[at : at + 8].view(np.uint64) for at in places.words.values()]
        self._words += [self._buffer[at : at + number.itemsize].view(f"u{number.itemsize}")
                        for slot, first in places.slots.items()
                        for at in range(first, first + slot.width * number.itemsize, number.itemsize)]

    def begin(self, cards: Sequence[PackedCard]) -> StateWords:
        """From cards: states x machines."""
        found = np.zeros((len(self._words), len(cards)), dtype=np.uint64)
        for i, card in enumerate(cards):
            self._computer.begin(self._buffer, card)
            found[:, i] = [word[0] for word in self._words]
        return found

    def finish(self, states: StateWords, card: PackedCard) -> None:
        """To a card."""
        for word, state in zip(self._words, states, strict=True):
            word[0] = state
        self._computer.finish(self._buffer, card)
