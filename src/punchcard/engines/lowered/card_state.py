"""A card on its way through the generated code: the buffer, the patterns to stop at, and what the code reported."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card, Place, as_tensor
from punchcard.card.packed import CHUNK, PackedCard
from punchcard.engines.lowered.analysis.buffer_layout import LINE
from punchcard.engines.lowered.analysis.plan import Lookup
from punchcard.engines.lowered.analysis.tables import CLOSED
from punchcard.engines.lowered.codegen.emit import MOST_CODES, REPORT_CODES
from punchcard.engines.lowered.compiled_model import CASES, Buffer, CompiledModel
from punchcard.engines.lowered.pattern_table import NOTHING
from punchcard.errors import PunchcardError

if TYPE_CHECKING:
    from torch import Tensor

CHECK_SHARE = 20
"""After a port, checking the whole card may take one part in so many of the time."""
DONE, FAILED, MATCHED, UNKNOWN_CASE = range(4)
Snapshot: TypeAlias = tuple[Buffer, AnyArray, bool, bool, Card | None]
"""All that a loop changes of a card state."""


class CardMemory:
    """Memory for the cards of one compiled model, in three arrays: what the code works on, where it stored, what it reports.

    Card i has row i of each. The buffers are one flat piece of memory, card i at i times `places.size`.
    """

    def __init__(self, compiled_model: CompiledModel, cards: int = 1) -> None:
        size = compiled_model.places.size
        whole = np.zeros(cards * size + LINE, dtype=np.uint8)
        first = -whole.ctypes.data % LINE
        self.buffers: Buffer = whole[first : first + cards * size].reshape(cards, size)
        self.visits = np.zeros((cards, len(compiled_model.columns.passive) + 1 + MOST_CODES), dtype=np.int32)
        self.reports = np.zeros((cards, REPORT_CODES + 1 + 2 * MOST_CODES), dtype=np.int64)


class WorkingCard(PackedCard):
    """The packed card of a state, as ports see it. While it `is_open`, words of the active column are those of the code.

    So a port that reads and writes some words costs no more than these words. Who asks for a whole field closes the card:
    then all fields are as they should be, and the code must take its states from them again.
    """

    def __init__(self, compiled_model: CompiledModel, dtype: str, buffer: Buffer) -> None:
        self.is_open = False
        self._compiled_model, self._buffer, self._states = compiled_model, buffer, buffer.view(np.uint64)
        active = compiled_model.requirements.active
        self._column = int(active[0]) if len(active) == 1 else None
        self._found: dict[str, tuple[int, int, int] | None] = {}
        super().__init__(compiled_model.layout, dtype, {})

    @property
    def fields(self) -> dict[str, AnyArray]:
        self._close()
        return self._fields

    @fields.setter
    def fields(self, fields: dict[str, AnyArray]) -> None:
        self._fields = fields

    def _close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._compiled_model.finish(self._buffer, self)

    def open(self) -> None:
        """Begin to show the words of the code, where there is one active column."""
        self.is_open = self._column is not None

    def word(self, place: Place, column: int) -> int:
        if not self.is_open:
            return super().word(place, column)
        if column == self._column:
            spot = self._found[place.name] if place.name in self._found else self._spot(place)
            if spot is not None:
                return self._states.item(spot[0]) >> spot[1] & spot[2]
            self._close()
            return super().word(place, column)
        return self._word_of(self._fields.get(place.block.name), place, column)  # a passive column is in the fields

    def put_word(self, place: Place, column: int, word: int) -> None:
        if not self.is_open:
            super().put_word(place, column, word)
            return
        if column == self._column:
            spot = self._found[place.name] if place.name in self._found else self._spot(place)
            if spot is not None:
                at, shift, mask = spot
                self._states[at] = self._states.item(at) & ~(mask << shift) | word << shift
                return
            self._close()
            super().put_word(place, column, word)
            return
        self.is_open = False
        try:
            super().put_word(place, column, word)
        finally:
            self.is_open = True

    def _spot(self, place: Place) -> tuple[int, int, int] | None:
        """Where the code has a number of the active column: the word, its first bit and a mask, if all bits are in one."""
        chunk, shift = divmod(place.first, CHUNK)
        start = place.rows.start - place.first + chunk * CHUNK
        self._found[place.name] = next((
            (at, shift, place.mask) for field, columns, at, mask in self._compiled_model.state_words
            if (field.block, field.start) == (place.block.name, start) and columns == [self._column]
            and mask >> shift & place.mask == place.mask), None)
        return self._found[place.name]


class CardState:
    """One card being run: the buffer that the code works on, and what it reported; a row of its memory.

    `card` is the packed card whose fields lie in the buffer; its active columns are what they were when it was last shown.
    `unpacked` is a card that cannot be packed, on which no loop is made. `patterns` is the table of those at which `advance`
    stops.
    """

    def __init__(self, compiled_model: CompiledModel, card: PackedCard, memory: CardMemory | None = None,
                 row: int = 0) -> None:
        self.compiled_model, self.seconds = compiled_model, 0.0
        places, memory = compiled_model.places, memory or CardMemory(compiled_model)
        self.buffer, self.visits, self.report = memory.buffers[row], memory.visits[row], memory.reports[row]
        self._addresses = [array.ctypes.data for array in (self.buffer, self.visits, self.report)]
        self.card = WorkingCard(compiled_model, card.dtype, self.buffer)
        self._arrays: dict[str, AnyArray] = {}
        for name, field in card.fields.items():
            at = places.arrays[name]
            more = self.buffer[at : at + field.nbytes + field.nbytes // len(field)].view(field.dtype)
            self._arrays[name] = more.reshape(len(field) + 1, *field.shape[1:])
            self.card.fields[name] = self._arrays[name][: len(field)]
        self._known: dict[str, tuple[AnyArray, int]] = {}
        self.checked_at = self.check_seconds = 0.0
        self.unpacked: Card | None = None
        self.patterns = NOTHING
        self.take(card)

    def take(self, card: Card) -> None:
        """Begin with this card. One that does not keep the facts, or is not what its layout declares, is not run."""
        self._hold(card)
        if self.unpacked is None:
            self._check()
            self._begin()

    def _hold(self, card: Card) -> None:
        self.unpacked, self.fits, self.unseen = None, False, False
        if not isinstance(card, PackedCard):
            self.unpacked = card
            return
        self.card.take(card)
        for name, field in card.fields.items():
            self._arrays[name][-1] = field[self.compiled_model.columns.passive[-1]]  # where stores without a place go

    def tensor(self) -> Tensor:
        """The card as it is now."""
        return self.show().tensor() if self.unpacked is None else as_tensor(self.unpacked)

    def resume(self, changed: Card | None) -> None:
        """Go on after a port, which may have changed the card, in place or as another one.

        Its active columns are checked every time, the whole card now and then and at the end. A card that is still open
        has words of the code alone that may have changed, and those are bits.
        """
        if self.card.is_open:
            self.card.is_open, self.unseen = False, True
            return
        if changed is not None:
            self._hold(changed)
            if self.unpacked is not None:
                return
        if time.perf_counter() - self.checked_at > CHECK_SHARE * self.check_seconds:
            self._check()
        else:
            self.unseen = True
            self.fits = self.compiled_model.requirements.hold(self.card, everywhere=False)
        self._begin()

    def check_last(self) -> None:
        """The last check of a card that ports have changed, and from which loops were made."""
        if self.unseen and self.fits:
            self.show()
            self._check()
            if not self.fits:
                raise PunchcardError("a port left something on the card that its layout does not declare: "
                                     "what came after is not what the model computes")

    def _check(self) -> None:
        started = time.perf_counter()
        self.fits, self.unseen = self.compiled_model.requirements.hold(self.card), False
        self.checked_at = time.perf_counter()
        self.check_seconds = self.checked_at - started

    def _begin(self) -> None:
        self.compiled_model.begin(self.buffer, self.card)
        if self.compiled_model.passive.settles:
            passive = self.compiled_model.columns.passive
            self.visits[0], self.visits[1 : len(passive) + 1] = len(passive), passive

    def snapshot(self) -> Snapshot:
        """All that a loop changes, to come back to."""
        return self.buffer.copy(), self.visits.copy(), self.fits, self.unseen, self.unpacked

    def restore(self, kept: Snapshot) -> None:
        self.buffer[:], self.visits[:], self.fits, self.unseen, self.unpacked = kept

    def open(self) -> PackedCard:
        """The card as it is now, for ports: `resume` comes next."""
        if not self.fits or self.compiled_model.passive.settles:
            return self.show()
        self.card.open()
        return self.card if self.card.is_open else self.show()

    def show(self) -> PackedCard:
        """The card as it is now; the next loop changes it."""
        if self.fits:  # else no loop was made, and columns that should hold the same may differ
            self.compiled_model.finish(self.buffer, self.card)
        return self.card

    def advance(self, loops: int, *, stop: bool = True) -> tuple[int, int | None]:
        """Make up to `loops` loops; how many were made, and the number of the pattern that is then on the card."""
        compiled_model, made = self.compiled_model, 0
        if not self.fits:
            return 0, None
        patterns, (buffer, visits, report) = self.patterns if stop else NOTHING, self._addresses
        while made < loops:
            made += compiled_model.call(buffer, self._address("driver", compiled_model.driver_pointers), visits, report,
                                        loops - made, self._address("patterns", patterns),
                                        self._address("cases", compiled_model.cases), CASES)
            if self.report.item(0) == MATCHED:
                return made, self.report.item(1)
            if not self.recover():
                return made, None
        return made, None

    def _address(self, name: str, array: AnyArray) -> int:
        """Where an array is, which NumPy takes longer to say than a loop takes."""
        known, address = self._known.get(name, (None, 0))
        if known is not array:
            address = int(array.ctypes.data)
            self._known[name] = array, address
        return address

    def recover(self) -> bool:
        """Whether the code goes on after its last call, once there is more of it, or nothing was in its way."""
        status, before = int(self.report[0]), self.compiled_model.compile_seconds
        if status not in (FAILED, UNKNOWN_CASE):
            return True
        goes_on = (self.compiled_model.look_up(*self._asked()) if status == FAILED
                   else self.compiled_model.add_case(int(self.report[1]), self.buffer))
        self.seconds += self.compiled_model.compile_seconds - before
        return goes_on

    def why(self) -> str:
        """Why the last loop was not made, as far as the report tells."""
        if not self.fits:
            return "the card held something that its layout does not declare, or what never changes had changed"
        if self.report[0] == UNKNOWN_CASE:
            return self.compiled_model.refused[int(self.report[1])]
        asked, pairs = self._asked()
        for number, code in pairs:
            table = asked[number]
            if table.kind == "find" and self.compiled_model.entry(table, code) < 0:
                return f"a pointer matched no column (layer {table.layer + 1}, head {table.head + 1})"
            if table.kind == "store" and self.compiled_model.entry(table, code) == CLOSED:
                return f"a pointer led to a column that should not change (layer {table.layer + 1}, head {table.head + 1})"
        return "a bit was not ±1, a number was beyond its limit, or two columns stored to one"

    def _asked(self) -> tuple[list[Lookup], list[tuple[int, int]]]:
        """The tables of the loop that failed, and which of them was asked for which code."""
        asked = self.compiled_model.driver_tables
        if self.compiled_model.selectors and not self.report[2]:
            asked = self.compiled_model.known[int(self.report[1])][1]
        count = int(self.report[REPORT_CODES])
        pairs = self.report[REPORT_CODES + 1 : REPORT_CODES + 1 + 2 * count].reshape(-1, 2)
        return asked, [(int(table), int(code)) for table, code in pairs]
