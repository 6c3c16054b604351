"""Bits of a word as rows of a graph, and what is made of them: every function that is found is compared for all settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.bits.builder import WordBuilder
from punchcard.engines.lowered.bits.functions import Above, BitFunctions
from punchcard.engines.lowered.bits.table import ONE, BitTable, bit_table
from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import BIT, Array, Linear, Node
from punchcard.engines.lowered.graph.rules import value_of
from punchcard.words.word import parts_of
from tests.word_values import Leaves, all_values, table_value


def sum_of(*terms: tuple[float, Linear], constant: float = 0.0) -> Linear:
    total = Linear({}, np.array([constant]))
    for c, linear in terms:
        total.add(linear, c)
    return total


def number(bits: Sequence[Linear]) -> Linear:
    """Of bits, 0 or 1, the lowest first."""
    return sum_of(*((2.0**i, bit) for i, bit in enumerate(bits)))


class BitRows:
    """`rows` are -1 or 1, `bits` the same rows as 0 or 1."""

    def __init__(self, count: int) -> None:
        self.graph, self.words = Graph(), WordBuilder()
        self.word = self.words.leaf("rows", count)
        self.rows = [self.graph.node(op.LOAD, (), row, ends=(-1.0, 1.0), domain=BIT) for row in range(count)]
        self.bits = [Linear({row: 0.5}, np.array([0.5])) for row in self.rows]
        self.functions = BitFunctions(self.words, lambda node: bit_table(self.words.bit(self.word, node.data), -ONE, ONE))
        self.checks: list[Node] = []

    @cached_property
    def every(self) -> Leaves:
        return all_values([self.word])

    @cached_property
    def values(self) -> dict[Node, Array]:
        """Of nodes, for all settings."""
        numbers = self.every[self.word]
        return {row: (2.0 * (numbers >> i & 1) - 1).astype(np.float64) for i, row in enumerate(self.rows)}

    def value(self, linear: Linear) -> Array:
        return np.broadcast_to(linear.constant + sum(c * value_of(node, self.values) for node, c in linear.terms.items()),
                               len(self.every[self.word]))

    @property
    def fails(self) -> npt.NDArray[np.bool_]:
        """Whether a check of a loop does not hold."""
        found = np.zeros(len(self.every[self.word]), dtype=bool)
        for node in self.checks:
            found |= np.abs(self.value(Linear({node: 1.0}))) != 1
        return found

    def table(self, linear: Linear) -> BitTable | None:
        """A form as a function of bits, if it was found: it has the value of the form wherever the checks of a loop hold."""
        table = self.functions.table_of(linear)
        if table is not None:
            assert np.all((table_value(table, self.leaves) == self.value(linear).astype(object) * ONE) | self.fails)
        return table

    @property
    def leaves(self) -> Leaves:
        """All words from elsewhere: what is compared as a number, too."""
        found = dict(self.every)
        for part in {part for word in self.functions.words._numbers for part in parts_of(word)}:
            if isinstance(part.data, Above):
                found[part] = (value_of(part.data.node, self.values) > part.data.middle).astype(object)
        return found

    def form(self, weights: Sequence[float], constant: float = 0.0) -> Linear:
        return Linear({row: w for row, w in zip(self.rows, weights, strict=False) if w}, np.array([constant]))

    def step(self, form: Linear) -> Linear:
        """[F >= 0] of an integer."""
        return sum_of((1.0, self.graph.relu(sum_of((1.0, form), constant=1.0))), (-1.0, self.graph.relu(form)))

    def bit_of(self, total: Linear, place: int, multiples: int) -> Linear:
        """A bit of a sum, 0 or 1, by steps at so many multiples of its power of two."""
        return sum_of(*((1.0 if k % 2 else -1.0, self.step(sum_of((1.0, total), constant=-float(k << place))))
                        for k in range(1, multiples + 1)))

    def checked(self, *bits: Linear) -> list[Linear]:
        """Bits, 0 or 1, as the rows of one block, each checked to be ±1."""
        found, name = dict[int, Node](), len(self.checks)
        for place, bit in enumerate(bits):
            row = self.graph.as_node(self.graph.narrowed(self.graph.tidy(sum_of((2.0, bit), constant=-1.0))))
            found[place] = self.graph.node(op.BITS, (row,), (name, place))
            self.values[found[place]] = value_of(row, self.values)
        self.functions.families = {**self.functions.families, name: found}
        self.checks += found.values()
        return [Linear({node: 0.5}, np.array([0.5])) for node in found.values()]
