"""Input buffers as the generated code serves them: numbers that can be had without waiting, and where they are put."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from punchcard.card.layout import Pattern
from punchcard.engines.controls import InputBuffer, NumbersAhead
from punchcard.engines.lowered.codegen.input_places import StreamPlace
from punchcard.engines.lowered.compiled_model import CompiledModel, Pointers

MOST_AHEAD = 1 << 14
"""Numbers that are put ready at a time."""


class InputStream:
    """The numbers of one input, as far as they are ready."""

    def __init__(self, numbers: NumbersAhead, at_end: int) -> None:
        self.numbers, self._begun = numbers, numbers.position
        self._array: Pointers = np.zeros(StreamPlace.NUMBERS + MOST_AHEAD, dtype=np.int64)
        self._array[StreamPlace.AT_END] = at_end

    @property
    def address(self) -> int:
        return int(self._array.ctypes.data)

    def flush(self) -> bool:
        """Tell the input what the code has taken; whether that is anything."""
        ends = int(self._array[StreamPlace.ENDS])
        taken = self._begun + int(self._array[StreamPlace.NEXT]) - self.numbers.position
        if taken or ends:
            self._array[StreamPlace.ENDS] = 0
            self.numbers.take(taken, ends)
        return bool(taken or ends)

    def fill(self) -> None:
        """Get numbers ready, if there are none; another thread may have taken some."""
        array, done = self._array, self.numbers.position - self._begun
        array[StreamPlace.NEXT] = done
        if done < array[StreamPlace.COUNT] or (done == array[StreamPlace.COUNT] and array[StreamPlace.HAS_END]):
            return
        found, ends = self.numbers.ahead(MOST_AHEAD) or ((), False)
        array[StreamPlace.NUMBERS : StreamPlace.NUMBERS + len(found)] = (
            np.frombuffer(found, dtype=np.uint8) if isinstance(found, bytes) else found)
        array[StreamPlace.NEXT], array[StreamPlace.COUNT], array[StreamPlace.HAS_END] = 0, len(found), ends
        self._begun = self.numbers.position


class InputTable:
    """The input buffers of a run that the code can serve, by the numbers of their patterns."""

    def __init__(self) -> None:
        self._streams: dict[int, InputStream] = {}
        self._buffers: dict[int, Pointers] = {}
        self._also: dict[int, tuple[Pattern, ...]] = {}

    def clear(self) -> None:
        self._streams, self._buffers, self._also = {}, {}, {}

    def add(self, model: CompiledModel, number: int, buffer: InputBuffer, *, last: bool) -> bool:
        """Note a buffer; whether the code can serve it: all that it puts must be words of the card, where loops find them.

        `last`: no other port is asked once it has served.
        """
        self._also[number] = buffer.also
        if not last or model.apart or model.places.slots or model.passive.settles or buffer.numbers.ahead(0) is None:
            return False
        puts = [word_place(model, *buffer.place), *(word_place(model, rows, column) for rows, column, _ in buffer.others)]
        if any(put is None for put in puts):
            return False
        (at, mask, shift), *others = [put for put in puts if put is not None]
        stream = self._streams.setdefault(id(buffer.numbers), InputStream(buffer.numbers, buffer.at_end))
        table = [stream.address, buffer.sign, at, mask << shift, shift, len(others)]
        for (at, mask, shift), (_, _, value) in zip(others, buffer.others, strict=True):
            table += [at, mask << shift, (value & mask) << shift]
        self._buffers[number] = table_of(table)
        return True

    @property
    def addresses(self) -> Mapping[int, int]:
        """Where the code finds each buffer."""
        return {number: int(table.ctypes.data) for number, table in self._buffers.items()}

    @property
    def also(self) -> Mapping[int, tuple[Pattern, ...]]:
        """More patterns that must be on the card for a buffer."""
        return self._also

    def flush(self) -> bool:
        """Whether anything was taken."""
        taken = [stream.flush() for stream in self._streams.values()]
        return any(taken)

    def fill(self) -> None:
        for stream in self._streams.values():
            stream.fill()


def table_of(words: Sequence[int]) -> Pointers:
    """Numbers as the generated code reads them: 64 bits each, whether they are masks or numbers with a sign."""
    return np.array([word % (1 << 64) for word in words], dtype=np.uint64).view(np.int64)


def word_place(model: CompiledModel, rows: str, column: int) -> tuple[int, int, int] | None:
    """Offset, mask and shift of rows in a column of the card; None where they are not in one word that holds bits."""
    place, places = model.layout.place(rows), model.places
    parts = [places.of_row.get(row) for row in range(place.rows.start, place.rows.stop)]
    first = parts[0]
    if first is None or not first[0].bits or any(part is None or part[0] != first[0] for part in parts):
        return None
    if any(start <= column < stop for start, stop in (*place.empty, *place.ones)):
        return None
    field, shift = first
    return places.arrays[field.block] + column * field.stride + field.offset, (1 << len(parts)) - 1, shift
