"""A card on its way through the generated code: the buffer, the patterns to stop at, and what the code reported."""

from __future__ import annotations

import time
from mmap import mmap
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.analysis.buffer_layout import LINE
from punchcard.engines.lowered.analysis.plan import Lookup
from punchcard.engines.lowered.analysis.tables import CLOSED
from punchcard.engines.lowered.codegen.emit import MOST_CODES, REPORT_CODES
from punchcard.engines.lowered.compiled_model import CASES, Buffer, CompiledModel, Pointers
from punchcard.engines.lowered.pattern_table import NOTHING
from punchcard.engines.lowered.tracing.tier import TraceTier
from punchcard.errors import PunchcardError

if TYPE_CHECKING:
    from torch import Tensor

CHECK_SHARE = 20
"""After a port, checking the whole card may take one part in so many of the time."""
DONE, FAILED, MATCHED, UNKNOWN_CASE = range(4)
Snapshot: TypeAlias = tuple[Buffer, AnyArray, bool, bool, Card | None]
"""All that a loop changes of a card state."""


def hardly_touched(cards: int, size: int, kind: type[np.generic]) -> AnyArray:
    """Zeros for each card, most of which are never read: on small pages, so that the others take neither memory nor time."""
    if cards == 1:
        return np.zeros((1, size), dtype=kind)
    return np.frombuffer(mmap(-1, cards * size * np.dtype(kind).itemsize), dtype=kind).reshape(cards, size)


class CardMemory:
    """Memory for the cards of one compiled model, in three arrays: what the code works on, where it stored, what it reports.

    Card i has row i of each. The buffers are one flat piece of memory, card i at i times `places.size`.
    """

    def __init__(self, compiled_model: CompiledModel, cards: int = 1) -> None:
        size = compiled_model.places.size
        whole = np.zeros(cards * size + LINE, dtype=np.uint8)
        first = -whole.ctypes.data % LINE
        self.buffers: Buffer = whole[first : first + cards * size].reshape(cards, size)
        self._model = compiled_model
        self.visits = hardly_touched(cards, len(compiled_model.columns.passive) + 1 + MOST_CODES, np.int32)
        self.reports = hardly_touched(cards, REPORT_CODES + 1 + 2 * MOST_CODES, np.int64)
        self._views: dict[str, tuple[AnyArray, AnyArray]] = {}

    def views(self, like: PackedCard) -> dict[str, tuple[AnyArray, AnyArray]]:
        """The fields of all cards, which are like this one: cards x columns, with one more column behind the last.

        And the same as a card shows them, without that column; what no loop changes cannot be written to.
        """
        places = self._model.places
        for name, field in () if self._views else like.fields.items():
            stride = places.strides[name]
            whole = self.buffers[:, places.arrays[name] : places.arrays[name] + stride * (len(field) + 1)]
            whole = whole.reshape(len(whole), len(field) + 1, stride)[..., : field.nbytes // len(field)].view(field.dtype)
            whole = whole if field.ndim > 1 else whole[..., 0]
            shown = whole[:, :-1]
            shown.flags.writeable = bool(self._model.layout.place(name).block.changes)
            self._views[name] = whole, shown
        return self._views


class CardState:
    """One card being run: the buffer that the code works on, and what it reported; a row of its memory.

    `card` is the packed card whose fields lie in the buffer. Rows that active columns carry may have places of their own:
    then its active columns are what they were when it was last shown. Fields that no loop changes cannot be written to: who
    writes to one all the same, by a call of the card or the layout, gets a field of the card's own, and that is seen here.
    `unpacked` is a card that cannot be packed, on which no loop is made. `patterns` is the table of those at which `advance`
    stops, and `tier` the traces for them. `is_there`: a card like this one is in the memory already, and was checked.
    """

    def __init__(self, compiled_model: CompiledModel, card: PackedCard, memory: CardMemory | None = None,
                 row: int = 0, *, is_there: bool = False) -> None:
        self.compiled_model, self.seconds = compiled_model, 0.0
        places, memory = compiled_model.places, memory or CardMemory(compiled_model)
        self.buffer, self.visits, self.report = memory.buffers[row], memory.visits[row], memory.reports[row]
        self._status = memoryview(self.report)
        views = memory.views(card)
        self._arrays = {name: whole[row] for name, (whole, _) in views.items()}
        self._shown = {name: shown[row] for name, (_, shown) in views.items()}
        self._never_written = [name for name, field in self._shown.items() if not field.flags.writeable]
        self.card = PackedCard(compiled_model.layout, card.dtype, dict(self._shown))
        self.checked_at = self.check_seconds = 0.0
        self.unpacked: Card | None = None
        self.patterns = NOTHING
        self.tier: TraceTier | None = None
        self._in_place = not (compiled_model.apart or places.slots or compiled_model.passive.settles)
        """Whether the card itself has all that loops work on."""
        self._arguments: Pointers = np.zeros(9, dtype=np.int64)
        self._arguments_at, self._pointed = self._arguments.ctypes.data, (NOTHING, NOTHING)
        if is_there:
            self.fits, self.unseen = True, False
        else:
            self.take(card)

    @property
    def is_complete(self) -> bool:
        """Whether the memory has all of the card, and loops are made on it."""
        fields = self.card.fields
        return self.unpacked is None and self.fits and all(
            fields[name] is self._shown[name] for name in self._never_written)

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
        fields = {name: array[:-1] for name, array in self._arrays.items()}
        card.copy(into=PackedCard(self.card.layout, self.card.dtype, fields))
        for name, field in fields.items():
            self._arrays[name][-1] = field[self.compiled_model.columns.passive[-1]]  # where stores without a place go
            self.card.fields[name] = self._shown[name]

    def tensor(self) -> Tensor:
        """The card as it is now."""
        return self.show().tensor() if self.unpacked is None else as_tensor(self.unpacked)

    def resume(self, changed: Card | None) -> None:
        """Continue after a port, which may have changed the card, in place or as another one.

        Where a change in place can break a requirement, active columns are checked every time, and the whole card now and
        then. At the end it is checked in any case.
        """
        fields = self.card.fields
        for name in self._never_written:
            if fields[name] is not self._shown[name]:
                changed = self.card
        if changed is not None:
            self._hold(changed)
            if self.unpacked is not None:
                return
        requirements = self.compiled_model.requirements
        if not self.fits or (requirements.breakable
                             and time.perf_counter() - self.checked_at > CHECK_SHARE * self.check_seconds):
            self._check()
        else:
            self.unseen = True
            self.fits = not requirements.breakable or requirements.hold(self.card, everywhere=False)
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
        if self._in_place:
            return
        self.compiled_model.begin(self.buffer, self.card)
        if self.compiled_model.passive.settles:
            passive = self.compiled_model.columns.passive
            self.visits[0], self.visits[1 : len(passive) + 1] = len(passive), passive

    def snapshot(self) -> Snapshot:
        """All that a loop changes, to come back to."""
        return self.buffer.copy(), self.visits.copy(), self.fits, self.unseen, self.unpacked

    def restore(self, kept: Snapshot) -> None:
        self.buffer[:], self.visits[:], self.fits, self.unseen, self.unpacked = kept

    def show(self) -> PackedCard:
        """The card as it is now; the next loop changes it."""
        if self.fits and not self._in_place:  # else no loop was made, and columns that should hold the same may differ
            self.compiled_model.finish(self.buffer, self.card)
        return self.card

    def alone(self) -> Card:
        """A copy of the card, where it is not read together with others."""
        return self.show().copy() if self.unpacked is None else self.unpacked

    def advance(self, loops: int, *, stop: bool = True) -> tuple[int, int | None]:
        """Make up to `loops` loops; how many were made, and the number of the pattern that is then on the card."""
        if not self.fits:
            return 0, None
        with self.compiled_model.lock:
            return self._advance(loops, stop)

    def _advance(self, loops: int, stop: bool) -> tuple[int, int | None]:
        self._point(self.patterns if stop else NOTHING)
        made, tier = 0, self.tier if stop else None
        while made < loops:
            made += (self.compiled_model.call(self._arguments_at, loops - made) if tier is None
                     else tier.call(self._arguments_at, loops - made, self.buffer))
            if self._status[0] == MATCHED:
                return made, self._status[1]
            if not self.recover():
                return made, None
            self._point(self.patterns if stop else NOTHING)
        return made, None

    def _point(self, patterns: Pointers) -> None:
        """Say where all is that the code is called with. Tables are others once more was compiled."""
        model = self.compiled_model
        if patterns is not self._pointed[0] or model.driver_pointers is not self._pointed[1]:
            self._pointed = patterns, model.driver_pointers
            self._arguments[:] = [*(array.ctypes.data for array in (
                self.buffer, model.driver_pointers, self.visits, self.report, patterns, model.cases)), CASES,
                model.driver.address("run"), 0 if self.tier is None else self.tier.memory.ctypes.data]

    def recover(self) -> bool:
        """Whether the code continues after its last call, once there is more of it, or nothing was in its way."""
        status, before = int(self.report[0]), self.compiled_model.compile_seconds
        if status not in (FAILED, UNKNOWN_CASE):
            return True
        goes_on = (self.compiled_model.look_up(*self._asked()) if status == FAILED
                   else self.compiled_model.add_case(int(self.report[1]), self.buffer))
        self.seconds += self.compiled_model.compile_seconds - before
        return goes_on

    def why(self) -> str:
        """Why the last loop was not made, by the report."""
        if not self.fits:
            return "the card has entries that its layout does not declare, or a constant has changed"
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
