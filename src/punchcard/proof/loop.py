"""Layers of equation (TF) over columns of unknown bits and real numbers: what a column holds after them, for every card.

    attention      which columns win, by how much, and what they give: see `attention`
    feed-forward   sums of ReLUs of linear forms over bits and real numbers: see `relus`

Weights are exact fractions, and so are sums (see `forms`). Rows are worked out when they are first asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import overload

import numpy as np

from punchcard.proof.attention import Attention, LayerHead
from punchcard.proof.column import Column
from punchcard.proof.columns import Columns
from punchcard.proof.forms import Form, Term, signed, weighted
from punchcard.proof.relus import Relus
from punchcard.proof.steps import equal
from punchcard.transformer.expression import Array
from punchcard.transformer.softmax import Scores, hard_lead
from punchcard.transformer.sums import HeadMatrices, LayerSums
from punchcard.transformer.weights import LayerArrays

Row = list[tuple[int, Fraction]]


def _least_lead(dtype: str, head: HeadMatrices, sizes: Array) -> Fraction | None:
    """By how much a score of entries up to these sizes must lead so that nothing is left of another.

    None: no lead is enough. That scores are exact is a separate claim.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lead = hard_lead(dtype, head.temperature, Scores(head.largest_score(sizes)))
    return Fraction(lead) if math.isfinite(lead) else None


@dataclass(frozen=True)
class HeadWeights:
    """K, Q and V, and by how much a winner must win so that nothing is left of the others; None: others are always left."""

    key: list[Row]
    query: list[Row]
    value: list[Row]
    gap: Fraction | None


class Layer:
    """The weights of a layer as exact fractions."""

    def __init__(self, arrays: LayerArrays, dtype: str, sizes: Array) -> None:
        sums = LayerSums(arrays)
        self.heads = [
            HeadWeights(head.key.by_row(Fraction), head.query.by_row(Fraction), head.value.by_row(Fraction),
                        _least_lead(dtype, head, sizes))
            for head in sums.heads
        ]
        self.w1, self.w2 = sums.w1.by_row(Fraction), sums.w2.by_row(Fraction)
        self.b1, self.b2 = (list(map(Fraction, bias.tolist())) for bias in (sums.b1, sums.b2))


class LazyRows(Sequence[Form]):
    """The rows of a column, each worked out when it is first asked for."""

    def __init__(self, make: Callable[[int], Form], size: int) -> None:
        self._make, self._found = make, list[Form | None]([None] * size)

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> Form: ...

    @overload
    def __getitem__(self, place: slice) -> list[Form]: ...

    def __getitem__(self, place: int | slice) -> Form | list[Form]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        found = self._found[place]
        if found is None:
            found = self._found[place] = self._make(place)
        return found


@dataclass(frozen=True)
class PromisedInteger:
    """A number that is an integer by promise, up to a tolerance and within a limit; it is read with a `shift` added to it.

    That rounds it to a multiple of `grid`.
    """

    tolerance: Fraction
    limit: Fraction
    shift: Fraction
    grid: Fraction


class SymbolicLoop:
    """Layers of a loop, on columns of unknown bits, evaluated on demand.

    It was proven before that columns of the regions `still` stay as they are.
    """

    def __init__(self, layers: Sequence[Layer], columns: Columns, still: Collection[str] = ()) -> None:
        self.layers, self.columns, self._still = layers, columns, still
        self.bits, self.solver, self.layout = columns.bits, columns.solver, columns.layout
        self.relus = Relus(self.bits, self.solver)
        self.heads = Attention(self)
        self.lemmas: dict[tuple[int, str, int, int], Term] = {}
        """By layer, region and rows, from and to: the word that should be there once so many layers are done."""
        self.sums: dict[tuple[int, str, int], tuple[Form, Form]] = {}
        """By layer, region and row: the number that should be there, and the same number as a sum of other bits."""
        self.differences: dict[tuple[int, str, int, int], tuple[Term, Term]] = {}
        """The same of two words, whose difference bit by bit should be there between attention and feed-forward."""
        self.integers: dict[tuple[int, int, str], PromisedInteger] = {}
        """By layer, row and region: where heads bring an integer, by promise."""

    @property
    def has_reals(self) -> bool:
        """Whether there are real numbers on the card."""
        return any(block.real for block in self.layout.blocks)

    def after(self, column: Column, layer: int) -> Sequence[Form]:
        """The rows of a column after so many layers."""
        if layer == 0 or column.region in self._still:
            return column.rows
        while len(column.later) < layer:
            number = len(column.later)
            column.later.append(LazyRows(partial(self._after_units, number, column), self.layout.width))
        return column.later[layer - 1]

    def attended(self, column: Column, number: int) -> Sequence[Form]:
        """The rows of a column between the attention of a layer, counted from 0, and its feed-forward."""
        while len(column.attended) <= number:
            layer = len(column.attended)
            column.attended.append(LazyRows(partial(self._after_heads, layer, column), self.layout.width))
        return column.attended[number]

    def taken(self, number: int, head: int, column: Column) -> list[Form]:
        """What a head gives to a column."""
        key = number, head
        if key not in column.taken:
            column.taken[key] = self.heads.take(LayerHead(number, head, self.layers[number].heads[head]), column)
        return column.taken[key]

    def _after_heads(self, number: int, column: Column, place: int) -> Form:
        """A row after the attention of a layer."""
        total = self.after(column, number)[place]
        for head, weights in enumerate(self.layers[number].heads):
            if weights.value[place]:
                total = total + self.taken(number, head, column)[place]
        return self._by_difference(number + 1, column, place, total)

    def read(self, column: Column, number: int) -> Sequence[Form]:
        """The rows as the ReLUs of a layer read them: integers by promise are what was promised."""
        rows = self.attended(column, number)
        promised = {place: each for (layer, place, region), each in self.integers.items()
                    if layer == number and region == column.region}
        if not promised:
            return rows
        if number not in column.read:
            column.read[number] = LazyRows(
                lambda place: self._as_promised(rows[place], promised.get(place)), self.layout.width)
        return column.read[number]

    def _as_promised(self, form: Form, promised: PromisedInteger | None) -> Form:
        if promised is None or not self.relus.is_real(form):
            return form
        return self.relus.as_integer(form, promised.tolerance, promised.limit, promised.shift)

    def _after_units(self, number: int, column: Column, place: int) -> Form:
        """A row after the feed-forward of a layer."""
        layer, rows = self.layers[number], self.read(column, number)
        if not layer.w2[place]:
            return rows[place] + Form(layer.b2[place])
        units = column.units.setdefault(number, {})
        found = []
        for hidden, weight in layer.w2[place]:
            if hidden not in units:
                units[hidden] = weighted(layer.w1[hidden], rows) + Form(layer.b1[hidden])
            found.append((weight, units[hidden]))
        return self._by_lemma(number + 1, column, place, self.relus.summed(rows[place], layer.b2[place], found))

    # Hints

    def _by_lemma(self, layer: int, column: Column, place: int, found: Form) -> Form:
        """A row, with the bit of a lemma in place of what was computed, once the two are proven to be the same.

        A lemma that does not hold is not used: it is there to make later questions shorter, and nothing depends on it.
        """
        for (number, region, start, stop), word in self.lemmas.items():
            if number == layer and region == column.region and start <= place < stop:
                found = self._if_equal(found, signed(self.bits.of_word(word)[place - start]))
        if (layer, column.region, place) in self.sums:
            wanted, expanded = self.sums[layer, column.region, place]
            return wanted if found.key == expanded.key else self._if_equal(found, wanted)
        return found

    def _by_difference(self, layer: int, column: Column, place: int, found: Form) -> Form:
        """The same of a row behind the attention, with the difference of two bits."""
        for (number, region, start, stop), words in self.differences.items():
            if number == layer and region == column.region and start <= place < stop:
                more, less = (signed(self.bits.of_word(word)[place - start]) for word in words)
                found = self._if_equal(found, more - less)
        return found

    def _if_equal(self, found: Form, wanted: Form) -> Form:
        """Another form for what was found, once the two are proven to be the same."""
        same = found.key == wanted.key or self.solver.holds(equal(found - wanted, self.bits))
        return wanted if same else found
