"""The cards of a batch in one piece of memory, a row for each: filled and read with arrays.

A card has a `CardState` of its own only when something is to be done with it alone: a port is called, or a loop failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.card.packed import PackedCard
from punchcard.card.packed_stack import StackedCards, cards_of
from punchcard.engines.lowered.analysis.buffer_layout import Field
from punchcard.engines.lowered.card_state import CardMemory, CardState
from punchcard.engines.lowered.compiled_model import CompiledModel


class CardRows:
    """Cards for which the code was made, and their memory."""

    def __init__(self, compiled_model: CompiledModel, cards: Sequence[PackedCard]) -> None:
        self._model, self._like, self.memory = compiled_model, cards[0], CardMemory(compiled_model, len(cards))
        self._states: dict[int, CardState] = {}
        self._shared: dict[str, AnyArray] = {}
        """Fields that no loop changes, and that are the same for all cards."""
        self._views = {name: whole for name, (whole, _) in self.memory.views(cards[0]).items()}
        if compiled_model.places.slots or compiled_model.passive.settles:  # numbers on their way: each card by itself
            self._states = {row: CardState(compiled_model, card, self.memory, row) for row, card in enumerate(cards)}
            return
        for name, view in self._views.items():
            self._fill(name, view, [card.fields[name] for card in cards])
        for field, columns, word in compiled_model.apart:
            self._state_words(compiled_model.places.words[word])[:] = self._words(field)[:, columns[0]]

    def _fill(self, name: str, view: AnyArray, fields: Sequence[AnyArray]) -> None:
        layout, first = self._model.layout, fields[0]
        block = layout.place(name).block
        is_one = all(field is first for field in fields)
        for region in block.holds:
            columns = layout.region(region)
            view[:, columns] = first[columns] if is_one else np.stack([field[columns] for field in fields])
        view[:, -1] = view[:, self._model.columns.passive[-1]]  # where stores without a place go
        if is_one and not block.changes:
            first.flags.writeable = False  # who writes to it gets a field of the card's own
            self._shared[name] = first

    def _words(self, field: Field) -> AnyArray:
        view = self._views[field.block]
        return view if view.ndim == 2 else view[:, :, field.offset // 8]

    def _state_words(self, at: int) -> AnyArray:
        """The states of all cards at a place behind the arrays."""
        words: AnyArray = self.memory.buffers[:, at : at + 8].view(np.uint64)[:, 0]
        return words

    def state(self, row: int) -> CardState:
        """A card to do something with."""
        if row not in self._states:
            self._states[row] = CardState(self._model, self._like, self.memory, row, is_there=True)
        return self._states[row]

    @cached_property
    def stacked(self) -> StackedCards | None:
        """All cards, to read and to write; None where a card is more than its words, or may be broken by a change."""
        model = self._model
        if model.apart or model.places.slots or model.passive.settles or model.requirements.breakable:
            return None
        return StackedCards(self._like, {name: shown for name, (_, shown) in self.memory.views(self._like).items()})

    def is_complete(self, row: int) -> bool:
        """Whether the memory has all of a card, and loops are made on it."""
        return row not in self._states or self._states[row].is_complete

    def fits(self, row: int) -> bool:
        """Whether the code applies to a card."""
        return row not in self._states or self._states[row].fits

    def cards(self, rows: Sequence[int], *, copies: bool = True) -> list[PackedCard | None]:
        """Cards as they are now, in this memory or as copies; None for one that has to be asked for by itself.

        What ports have changed is checked for the last time.
        """
        for state in [self._states[row] for row in rows if row in self._states]:
            state.check_last()
            state.show()
        together = [row for row in rows if self.is_complete(row)]
        known = dict(zip(together, self._together(together, copies=copies), strict=True)) if together else {}
        return [known.get(row) for row in rows]

    def _together(self, rows: Sequence[int], *, copies: bool) -> Sequence[PackedCard]:
        chosen = np.array(rows)
        for field, columns, word in self._model.apart:
            mask, words = self._model.places.masks[word], self._words(field)
            state = self._state_words(self._model.places.words[word])[chosen] & np.uint64(mask)
            for column in columns:
                words[chosen, column] = words[chosen, column] & ~words.dtype.type(mask) | state.astype(words.dtype)
        own = {name: shown for name, (_, shown) in self.memory.views(self._like).items() if name not in self._shared}
        found: dict[str, Iterable[AnyArray]] = {
            name: self._copied(name, shown, chosen) if copies else map(shown.__getitem__, rows)
            for name, shown in own.items()}
        return cards_of(self._like, len(rows), found, self._shared)

    def _copied(self, name: str, view: AnyArray, rows: AnyArray) -> AnyArray:
        """Where a block holds nothing, no page is touched."""
        copy = np.zeros((len(rows), *view.shape[1:]), view.dtype)
        for region in self._model.layout.place(name).block.holds:
            columns = self._model.layout.region(region)
            copy[:, columns] = view[rows, columns]
        return copy
