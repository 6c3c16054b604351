"""The patterns at which the generated code stops, as it looks for them: words with masks, and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import or_

import numpy as np

from punchcard.card.layout import Pattern
from punchcard.engines.controls import InputBuffer, OutputBuffer, Port
from punchcard.engines.lowered.analysis.buffer_layout import CHUNK, BufferLayout, Field, StateWord
from punchcard.engines.lowered.analysis.columns import StateSlot
from punchcard.engines.lowered.codegen.trace import PatternPart
from punchcard.engines.lowered.compiled_model import CompiledModel, Pointers
from punchcard.engines.lowered.input_table import InputTable, table_of, word_place

NOTHING = np.zeros(4, dtype=np.int64)
"""The table of no patterns."""
NO_BUFFER = (0, 0, 0)
MOST_NOTES = 1 << 13


class OutputLog:
    """Numbers that the code wrote to output buffers; and `inputs`, which it takes numbers from.

    The log has how many there are, how many there is room for, then pairs. A pair is the number of the pattern, and the word
    with the bits that were taken.
    """

    def __init__(self) -> None:
        self._log = np.zeros(2 + 2 * MOST_NOTES, dtype=np.int64)
        self._log[1] = MOST_NOTES
        self._buffers: dict[int, tuple[OutputBuffer, int]] = {}
        self.inputs = InputTable()

    @property
    def address(self) -> int:
        return int(self._log.ctypes.data)

    def serve(self, compiled_model: CompiledModel, first: int,
              ports: Mapping[Pattern, Port]) -> dict[int, tuple[int, int, int]]:
        """The entries of those ports that the code can serve: buffers that come before all other ports."""
        self._buffers, found = {}, {}
        self.inputs.clear()
        for number, port in enumerate(ports.values(), start=first):
            if isinstance(port, InputBuffer) and self.inputs.add(compiled_model, number, port, last=_is_last(port, ports)):
                continue
            place = buffer_place(compiled_model, port) if isinstance(port, OutputBuffer) else NO_BUFFER
            if not isinstance(port, OutputBuffer) or place == NO_BUFFER:
                break
            found[number], lowest = place, place[1] & -place[1]
            self._buffers[number] = port, lowest.bit_length() - 1
        self.inputs.fill()
        return found

    def flush(self) -> bool:
        """Give the numbers to their buffers, and say what was taken of inputs; whether the code has written to the card."""
        taken = self.inputs.flush()
        count: int = self._log.item(0) if self._buffers else 0
        if count:
            self._log[0] = 0
            pairs = self._log[2 : 2 + 2 * count].reshape(-1, 2).tolist()
            for number, some in groupby(pairs, lambda pair: pair[0]):
                buffer, shift = self._buffers[number]
                buffer.take([(word % (1 << 64)) >> shift for _, word in some])
        return taken or count > 0


def _is_last(buffer: InputBuffer, ports: Mapping[Pattern, Port]) -> bool:
    """Whether no port is to be asked once an input buffer has served."""
    own = list(ports.values()).index(buffer)
    return all(pattern in buffer.instead or isinstance(port, InputBuffer) for pattern, port in list(ports.items())[own:])


def buffer_place(compiled_model: CompiledModel, buffer: OutputBuffer) -> tuple[int, int, int]:
    """Where the code finds an output buffer's number, the mask of its bits, and what it puts there; mask 0 if it cannot.

    It can where the number is in one word of a passive column, and where such a column needs no loop of its own after it was
    stored to.
    """
    passive = buffer.column in compiled_model.columns.passive and not compiled_model.passive.settles
    found = word_place(compiled_model, buffer.rows, buffer.column) if passive else None
    if found is None:
        return NO_BUFFER
    at, mask, shift = found
    return at, mask << shift, (buffer.then & mask) << shift


@dataclass(frozen=True)
class PatternTerm:
    """One thing that a pattern looks at: bits of a state or of a field in a column, or a number there and its sign.

    Without any of these it looks at what is always 0, and the pattern never matches.
    """

    state: StateWord | None = None
    slot: tuple[StateSlot, int] | None = None
    field: Field | None = None
    column: int = 0
    row: int = 0
    mask: int = 0
    wanted: int = 0

    def offset(self, places: BufferLayout) -> int:
        """Where it is in the buffer of a card, in bytes."""
        if self.state is not None:
            return places.words[self.state]
        if self.slot is not None:
            return places.slots[self.slot[0]] + self.slot[1] * places.real
        if self.field is None:
            return 0  # the room in front of the first array, which holds 0
        first = places.arrays[self.field.block] + self.column * self.field.stride
        return first + (self.field.offset if self.field.bits else self.row * self.field.item)


def pattern_terms(compiled_model: CompiledModel, pattern: Pattern) -> list[PatternTerm]:
    """All that a pattern looks at: words first, then numbers."""
    layout, places = compiled_model.layout, compiled_model.places
    first, column = layout.rows(pattern.rows).start, layout.pattern_column(pattern)
    words: dict[PatternTerm, tuple[int, int]] = {}
    numbers: list[PatternTerm] = []
    for row, bit in ((first + i, bit) for i, bit in enumerate(pattern.bits) if bit):
        if row not in places.of_row or pattern.region not in layout.place(pattern.rows).block.holds:
            return [PatternTerm(wanted=1)]
        slot = next((s for s in compiled_model.columns.slots
                     if s.row == row and column in compiled_model.columns.of_group(s.group)), None)
        field, i = places.of_row[row]
        word = None if slot is None else places.word_of(slot)
        if slot is not None and word is None:
            numbers.append(PatternTerm(slot=(slot, compiled_model.columns.of_group(slot.group).index(column)), wanted=bit))
        elif word is None and not field.bits:
            numbers.append(PatternTerm(field=field, column=column, row=i, wanted=bit))
        else:
            at = PatternTerm(field=field, column=column) if word is None else PatternTerm(state=word[0])
            mask, wanted = words.get(at, (0, 0))
            words[at] = mask | 1 << i, wanted | (bit > 0) << i
    return [*(replace(at, mask=mask, wanted=wanted) for at, (mask, wanted) in words.items()), *numbers]


def pattern_table(
    compiled_model: CompiledModel, patterns: Iterable[Pattern], log: int = 0,
    buffers: Mapping[int, tuple[int, int, int]] | None = None, inputs: InputTable | None = None,
) -> Pointers:
    """What the driver reads: patterns, known by their numbers, some of them with an output buffer or an input buffer."""
    places, table = compiled_model.places, list[int]()
    addresses = {} if inputs is None else inputs.addresses
    terms = _all_terms(compiled_model, patterns, inputs)
    for number, own in enumerate(terms):
        words, numbers = [term for term in own if term.mask], [term for term in own if not term.mask]
        table += [len(words), len(numbers), *(buffers or {}).get(number, NO_BUFFER), addresses.get(number, 0)]
        table += [part for term in words for part in (term.offset(places), term.mask, term.wanted)]
        table += [part for term in numbers for part in (term.offset(places), term.wanted)]
    return table_of([len(terms), log, *_common(places, terms), *table])


def _all_terms(compiled_model: CompiledModel, patterns: Iterable[Pattern],
               inputs: InputTable | None) -> list[list[PatternTerm]]:
    """What patterns look at, each with those that must be on the card too."""
    also = {} if inputs is None else inputs.also
    return [[term for one in (pattern, *also.get(number, ())) for term in pattern_terms(compiled_model, one)]
            for number, pattern in enumerate(patterns)]


def pattern_parts(compiled_model: CompiledModel, patterns: Iterable[Pattern],
                  inputs: InputTable) -> tuple[tuple[PatternPart, ...], ...]:
    """The same patterns for code that is made for them."""
    places = compiled_model.places
    terms = _all_terms(compiled_model, patterns, inputs)
    return tuple(tuple(PatternPart(term.offset(places), term.mask, term.wanted) for term in own) for own in terms)


def _common(places: BufferLayout, patterns: list[list[PatternTerm]]) -> tuple[int, int]:
    """A byte in which every pattern wants a 1, and those bits of it: while all of them are 0, no pattern matches."""
    wanted = [{term.offset(places) + byte: bits for term in terms if term.mask
               for byte, bits in enumerate(term.wanted.to_bytes(CHUNK // 8, "little")) if bits} for terms in patterns]
    common = set.intersection(*map(set, wanted)) if wanted else set()
    if not common:
        return 0, 0
    at = min(common)
    return at, reduce(or_, (bits[at] for bits in wanted))
