"""Where generated code finds the active columns' states and the fields of passive columns."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, Field, StateWord
from punchcard.engines.lowered.analysis.columns import StateSlot
from punchcard.engines.lowered.codegen.floats import I64, i64, resized
from punchcard.engines.lowered.graph.nodes import Node
from punchcard.words.word import Word


class Memory(Protocol):
    """What an emitter asks for. Columns are numbers of 64 bits. A column that does not exist may be asked for: the loop
    is refused before anything is stored.

    `together`: how many numbers of a column may be loaded at once, a power of two.
    """

    together: int

    def state(self, b: ir.IRBuilder, word: StateWord) -> ir.Value:
        """A state that is a word, as 64 bits."""

    def put_state(self, b: ir.IRBuilder, word: StateWord, value: ir.Value) -> None:
        """Its new value."""

    def numbers(self, b: ir.IRBuilder, slot: StateSlot, kind: ir.Type) -> ir.Value:
        """A pointer to a state that is a number, or several."""

    def entry(self, b: ir.IRBuilder, field: Field, column: ir.Value, row: int, kind: ir.Type) -> ir.Value:
        """A pointer to a field of a column, or to one of its numbers."""


class Flat:
    """One buffer for a card: the arrays of its fields, each with one more column that is never read, where stores without a
    place go, and then the states.
    """

    together = 8  # in a register of 512 bits; smaller ones take several

    def __init__(self, buffer: ir.Value, places: BufferLayout) -> None:
        self._buffer, self._places = buffer, places
        self._numbers: dict[tuple[ir.Block, ir.Value, Field, ir.Type], ir.Value] = {}
        """Where the numbers of a column begin, as a block of code has worked it out: each is one instruction from there."""

    def state(self, b: ir.IRBuilder, word: StateWord) -> ir.Value:
        return resized(b, b.load(self._state(b, word)), I64)

    def put_state(self, b: ir.IRBuilder, word: StateWord, value: ir.Value) -> None:
        pointer = self._state(b, word)
        b.store(resized(b, value, pointer.type.pointee), pointer)

    def _state(self, b: ir.IRBuilder, word: StateWord) -> ir.Value:
        places = self._places.words if word in self._places.words else self._places.passing
        return self._at(b, i64(places[word]), ir.IntType(8 * self._places.item(word)))

    def numbers(self, b: ir.IRBuilder, slot: StateSlot, kind: ir.Type) -> ir.Value:
        return self._at(b, i64(self._places.slots[slot]), kind)

    def entry(self, b: ir.IRBuilder, field: Field, column: ir.Value, row: int, kind: ir.Type) -> ir.Value:
        if field.bits:
            return self._at(b, self.offset(b, field, column), kind)
        number = kind.element if isinstance(kind, ir.VectorType) else kind
        name = b.block, column, field, number
        if name not in self._numbers:
            self._numbers[name] = self._at(b, self.offset(b, field, column), number)
        place = b.gep(self._numbers[name], [i64(row)])
        return place if number is kind else b.bitcast(place, kind.as_pointer())

    def offset(self, b: ir.IRBuilder, field: Field, column: ir.Value) -> ir.Value:
        """Where a field of a column is, in bytes."""
        return b.add(b.mul(column, i64(field.stride)), i64(self._places.arrays[field.block] + field.offset))

    def _at(self, b: ir.IRBuilder, offset: ir.Value, kind: ir.Type) -> ir.Value:
        return b.bitcast(b.gep(self._buffer, [offset]), kind.as_pointer())


@dataclass(frozen=True)
class StateBits:
    """A state that is a word."""

    state: StateWord


@dataclass(frozen=True)
class FieldBits:
    """A field of the column at an index; without an index, of the current column."""

    index: Node | None
    field: Field


@dataclass(frozen=True)
class FieldPresence:
    """Whether that column holds something in the field."""

    index: Node | None
    field: Field


@dataclass(frozen=True)
class Agreement:
    """Whether two codes agree, by the flag that says so: one that may be known beforehand."""

    flag: Word


@dataclass(frozen=True)
class FormSign:
    """Whether a linear form, known by its key, is positive."""

    key: Hashable
