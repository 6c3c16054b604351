"""Numbers that several columns take from others. Those that are next to each other in a column are loaded together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from llvmlite import ir

from punchcard.engines.lowered.graph.nodes import Node
from punchcard.engines.lowered.graph.operations import FMA, GATHER

if TYPE_CHECKING:
    from punchcard.engines.lowered.analysis.buffer_layout import Field
    from punchcard.engines.lowered.codegen.emit import LoopEmitter

Rows = tuple[int, ...]
"""One row, or two whose sum is taken."""
Source = tuple[Node, Rows]
"""The index of the columns that are taken from, and what is taken there."""


class Gathers:
    """What the columns of a group take, as vectors with an entry for each of them."""

    def __init__(self, emitter: LoopEmitter) -> None:
        self._emitter = emitter
        self._wanted: dict[Node, set[Rows]] = {}
        self._values: dict[Source, ir.Value] = {}

    def source(self, node: Node) -> Source | None:
        """Where a number comes from that several columns take, or the sum of two such numbers; None of any other node."""
        parts = node.args if node.op is FMA and node.data == 1.0 and len(node.args) == 2 else (node,)
        index = parts[0].args[0] if parts[0].op is GATHER else None
        if index is None or index.width == 1 or any(part.op is not GATHER or part.args[0] is not index for part in parts):
            return None
        rows = tuple(part.data for part in parts)
        return None if any(field.bits for field in self._fields(rows)) else (index, rows)

    def want(self, node: Node) -> None:
        """Say that a node may be needed. It is then loaded with its neighbours."""
        source = self.source(node)
        if source is not None:
            self._wanted.setdefault(source[0], set()).add(source[1])

    def value(self, source: Source) -> ir.Value:
        """The numbers of a source. Others that are next to them in the columns are worked out with them."""
        if source not in self._values:
            index, rows = source
            fields = self._fields(rows)
            alike = {rows, *(other for other in self._wanted.get(index, ()) if self._fields(other) == fields)}
            for first, count in _runs(sorted(alike), self._emitter.memory.together):
                for i, value in enumerate(self._block(index, first, count)):
                    self._values[index, tuple(row + i for row in first)] = value
        return self._values[source]

    def _fields(self, rows: Rows) -> list[Field]:
        return [self._emitter.places.of_row[row][0] for row in rows]

    def _block(self, index: Node, rows: Rows, count: int) -> list[ir.Value]:
        """Rows and those below them, a power of two: added up column by column, then turned into a vector for each row."""
        emitter, floats = self._emitter, self._emitter.floats
        kind = emitter.real if count == 1 else ir.VectorType(emitter.real, count)
        places = [emitter.places.of_row[row] for row in rows]
        columns = emitter.column_of(index)
        found = [reduce(emitter.b.fadd, [floats.load(emitter.memory.entry(emitter.b, field, column, i, kind))
                                         for field, i in places]) for column in columns]
        if count == 1:
            return [floats.packed(found)]
        found += [ir.Constant(kind, ir.Undefined)] * (-len(found) % count)
        squares = [floats.transposed(found[i : i + count]) for i in range(0, len(found), count)]
        return [floats.joined([square[i] for square in squares], len(columns)) for i in range(count)]


def _runs(rows: Sequence[Rows], most: int) -> Iterator[tuple[Rows, int]]:
    """Rows as runs of neighbours, each a power of two of them and no more than `most`: the first, and how many."""
    at = 0
    while at < len(rows):
        count = most
        while at + count > len(rows) or any(last - first != count - 1
                                            for first, last in zip(rows[at], rows[at + count - 1], strict=True)):
            count //= 2
        yield rows[at], count
        at += count
