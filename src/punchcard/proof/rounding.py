"""That no sum of bits is rounded, beside real numbers: for every sum of a layer from which bits come.

No partial sum is larger than the positive terms together, or the negative ones: these are the totals of `summation`. Beside
real numbers three more things happen:

    gates      a unit with a gate of 2^60: where the gate is 0 the rest is a sum as above; where it is not, the unit is below
               0 by more than all roundings of the sum, so that its ReLU is exactly 0
    clearing   x - relu(x) + relu(-x), or relu(x) - relu(x), with nothing beside it is exactly 0
    flags      an integer but for an error is a multiple of a grid once it is read, and so is all that is made of it
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from punchcard.card.formats import NumberFormat
from punchcard.proof.column import Column
from punchcard.proof.forms import Form, settings, unit, weighted
from punchcard.proof.loop import SymbolicLoop
from punchcard.proof.relus import FEW
from punchcard.proof.solver import Failed
from punchcard.transformer.expression import Array
from punchcard.transformer.grids import Flags, are_powers_of_two, grid_of_number, grids_of
from punchcard.transformer.summation import Totals, bits_for, rounding_error
from punchcard.transformer.sums import Bounds, LayerSums, Sums
from punchcard.transformer.weights import LayerArrays

GATE = 2.0**32
"""Weights from this on are gates: rows that close a formula."""
MARGIN = 1 / 64
"""So much more than its gap must a head's winner lead: the part of it by which roundings may move a score."""


class BitSums:
    """The sums of a loop, case by case of what was proven of its columns."""

    def __init__(self, loop: SymbolicLoop, layers: Sequence[LayerArrays], sums: Sequence[LayerSums], limits: NumberFormat,
                 name: str) -> None:
        self.loop, self.layers, self.sums, self.limits, self.name = loop, layers, sums, limits, name
        self.needed = 1
        """The bits that the largest sum needs."""
        self._kept: dict[tuple[Column, int, bool], Bounds] = {}
        self._scored: set[tuple[int, int]] = set()

    def check(self) -> None:
        """Raise `Failed` at the first sum of bits that may be rounded."""
        for columns in self.loop.columns.found.values():
            for column in columns:
                for number, layer in enumerate(self.layers):
                    if number == 0 or len(column.later) >= number:
                        self._heads(number, layer, column)
                    if len(column.later) > number:
                        self._feed_forward(number, layer, column)

    def all(self) -> Iterator[Sums]:
        """All sums, of bits and of real numbers, layer by layer."""
        eps = self.limits.eps
        for number, layer in enumerate(self.sums):
            columns = [column for found in self.loop.columns.found.values() for column in found]
            before = [self.entries(each, number) for each in columns if number == 0 or len(each.later) >= number]
            yield from layer.attention(Bounds.together(before, eps))
            yield from layer.feed_forward(Bounds.together(
                [self.entries(each, number, heads=True) for each in columns if len(each.later) > number], eps))

    def _fail(self, where: str) -> None:
        raise Failed(f"{self.name}: bits: {where} is exact, with {self.limits.significand} significand bits", None)

    def _exact(self, totals: Array, grids: Array, where: str, of: Flags) -> None:
        """Prove that sums with these absolute totals are exact."""
        used = of & (totals > 0)
        self.needed = max(self.needed, bits_for(totals[used], grids[used]))
        if self.needed > self.limits.significand:
            self._fail(where)

    # What is in the rows

    def entries(self, column: Column, layer: int, *, heads: bool = False) -> Bounds:
        """The rows of a column after so many layers; with `heads`, and after the heads of the next."""
        key = column, layer, heads
        if key not in self._kept:
            self._kept[key] = self._entries(column, layer, heads)
        return self._kept[key]

    def _entries(self, column: Column, layer: int, heads: bool) -> Bounds:
        forms = self.loop.attended(column, layer) if heads else self.loop.after(column, layer)
        count = len(forms)
        found = Bounds(np.zeros(count), np.zeros(count), np.full(count, np.inf), np.zeros(count, dtype=np.bool_))
        for row in range(len(forms)):
            form = forms[row]
            low, high = self.loop.relus.span(form)
            found.low[row], found.high[row] = _as_float(low), _as_float(high)
            if not self.loop.relus.is_real(form):
                found.grid[row] = _grid(form)
                continue
            place = layer, row, column.region
            if heads and place in self.loop.integers:
                # what the layer takes for this row: an integer, up to its error, read with a shift
                read = self.loop.integers[place]
                is_rounded = self._step_at(read.shift - read.limit) >= read.grid > 0
                found.grid[row] = float(read.grid) if is_rounded else np.nan
                found.low[row], found.high[row] = float(read.shift - read.limit), float(read.shift + read.limit)
            elif all(self.loop.bits.reals[atom].noise for atom in form.terms if atom in self.loop.bits.reals):
                found.grid[row] = self._carried(column, layer, row, heads)
            else:
                found.grid[row] = np.nan
            found.real[row] = np.isnan(found.grid[row])
        return found

    def _step_at(self, value: Fraction) -> Fraction:
        """What all numbers of the format from a value on are multiples of; 0 where they may be as small as one likes."""
        return Fraction(2) ** (math.frexp(value)[1] - self.limits.significand) if value > 0 else Fraction(0)

    def _carried(self, column: Column, layer: int, row: int, heads: bool) -> float:
        """The grid of an error beside bits, from what it was made of; none where a head brings it."""
        if heads:
            written = any(weights.value[row] for weights in self.loop.layers[layer].heads)
            return float("nan") if written else float(self.entries(column, layer).grid[row])
        if layer == 0:
            return float("nan")
        return float(self._outputs(layer - 1, self.layers[layer - 1], column)[1][row])

    # Sums

    def _heads(self, number: int, layer: LayerArrays, column: Column) -> None:
        """Values of bits are moved exactly; keys and queries are as exact as the margin of a lead asks for."""
        rows, forms = self.entries(column, number), self.loop.after(column, number)
        for head, weights in enumerate(self.loop.layers[number].heads):
            totals, grids, real = _summed(np.asarray(layer.value[head], dtype=np.float64), rows)
            where = f"a value of head {head + 1} in layer {number + 1}"
            if any(not self.loop.relus.is_real(weighted(weights.value[row], forms)) for row in np.flatnonzero(real)):
                self._fail(f"{where}, in which real numbers cancel,")
            self._exact(totals, grids, where, ~real)
            self._scores(number, layer, head)
        if len(column.attended) > number:
            self._brought(number, column)

    def _brought(self, number: int, column: Column) -> None:
        """What all heads bring is added up exactly, where bits are left."""
        rows, after = self.entries(column, number), self.entries(column, number, heads=True)
        totals, grids, real = rows.size, rows.grid.copy(), rows.real.copy()
        heads = [self.loop.taken(number, head, column) for head in range(len(self.loop.layers[number].heads))]
        for row in range(len(totals)):
            for form in (taken[row] for taken in heads):
                totals[row] += float(max(map(abs, self.loop.relus.span(form))))
                real[row] |= self.loop.relus.is_real(form)
                grids[row] = np.fmin(grids[row], _grid(form))
        read = [row for row in range(len(totals)) if (number, row, column.region) in self.loop.integers]
        bits = ~after.real
        bits[read] = False
        where = f"what the heads of layer {number + 1} bring to {column.region}"
        if (bits & real).any():
            self._fail(f"{where}, in which real numbers cancel,")
        self._exact(totals, grids, where, bits)

    def _scores(self, number: int, layer: LayerArrays, head: int) -> None:
        """A score may be moved by roundings, but by no more than the margin of its lead; where columns share, by nothing."""
        if (number, head) in self._scored:
            return
        self._scored.add((number, head))
        found = [self.entries(column, number) for columns in self.loop.columns.found.values()
                 for column in columns if number == 0 or len(column.later) >= number]
        if self.loop.heads.shares[number][head] > 1:
            self._tie(number, layer, head, found)
        sizes = np.max([rows.size for rows in found], axis=0)
        matrices = self.sums[number].heads[head]
        # for two scores: the rule has room for twice the error, but for the squares of eps
        moved = rounding_error(matrices.largest_score(sizes), matrices.roundings + 4, self.limits.eps)
        gap = self.loop.layers[number].heads[head].gap
        if gap is not None and moved > MARGIN / (1 + MARGIN) * float(gap):  # else no column wins by a lead
            self._fail(f"a lead in head {head + 1} of layer {number + 1}, but for its margin,")

    def _tie(self, number: int, layer: LayerArrays, head: int, columns: Sequence[Bounds]) -> None:
        """Columns share by equal scores, which must be equal as they are computed: keys, queries and scores are exact."""
        where = f"a score that columns share in head {head + 1} of layer {number + 1}"
        largest, finest = [], []
        for matrix in (layer.key[head], layer.query[head]):
            summed = [_summed(np.asarray(matrix, dtype=np.float64), rows) for rows in columns]
            if any((real & (totals > 0)).any() for totals, _, real in summed):
                self._fail(f"{where}, which has real numbers in it,")
            for totals, grids, _ in summed:
                self._exact(totals, grids, where, np.ones(len(totals), dtype=np.bool_))
            largest.append(np.max([totals for totals, _, _ in summed], axis=0))
            finest.append(min(float(grids[totals > 0].min(initial=np.inf)) for totals, grids, _ in summed))
        self._exact(np.array([largest[0] @ largest[1]]), np.array([finest[0] * finest[1]]), where,
                    np.ones(1, dtype=np.bool_))

    def _feed_forward(self, number: int, layer: LayerArrays, column: Column) -> None:
        totals, grids, real, cleared = self._outputs(number, layer, column)
        after = self.entries(column, number + 1)
        bits = ~after.real & ~cleared
        if (bits & real).any():
            block = next(block.name for block in self.loop.layout.blocks
                         if (bits & real)[self.loop.layout.rows(block.name)].any())
            self._fail(f"what layer {number + 1} makes of bits beside a real number in {block} of {column.region}")
        self._exact(totals, grids, f"a sum of bits in layer {number + 1}", bits)

    def _outputs(self, number: int, layer: LayerArrays, column: Column) -> tuple[Array, Array, Flags, Flags]:
        """Of each row: its largest partial sum and its grid, whether a real number is in it, whether it is only cleared."""
        rows = self.entries(column, number, heads=True)
        w1, w2 = (np.asarray(matrix, dtype=np.float64) for matrix in (layer.w1, layer.w2))
        b1, b2 = (np.asarray(bias, dtype=np.float64).ravel() for bias in (layer.b1, layer.b2))
        reach, grid, real = self._units(w1, b1, rows, column, number)
        # a unit that is closed adds 0
        open_ = reach > 0
        weights = np.where(open_, w2, 0.0)
        above = np.maximum(rows.high, 0) + np.maximum(weights, 0) @ reach + np.maximum(b2, 0)
        below = np.maximum(-rows.low, 0) + np.maximum(-weights, 0) @ reach + np.maximum(-b2, 0)
        grids = np.minimum(rows.grid, grids_of(b2))
        with np.errstate(invalid="ignore"):
            steps = np.where(weights != 0, grids_of(weights) * np.where(open_ & ~real, grid, np.inf), np.inf)
        grids = np.fmin(grids, steps.min(axis=1, initial=np.inf))
        has_real = ((weights != 0) @ real) | rows.real
        return np.maximum(above, below), grids, has_real, self._cleared(weights, w1, b1, b2, rows, real)

    def reach(self, layer: LayerArrays, rows: Bounds, column: Column, number: int) -> Array:
        """How large each unit may get in a column, with the weights of some layer; 0 where it is always closed."""
        w1, b1 = (np.asarray(each, dtype=np.float64) for each in (layer.w1, layer.b1))
        return self._units(w1, b1.ravel(), rows, column, number)[0]

    def _cleared(self, weights: Array, w1: Array, b1: Array, b2: Array, rows: Bounds, real: Flags) -> Flags:
        """Rows whose sum is 0 by terms that are the same number: x - relu(x) + relu(-x), or relu(x) - relu(x)."""
        found: Flags = np.zeros(len(weights), dtype=np.bool_)
        for row in np.flatnonzero((((weights != 0) @ real) | rows.real) & (b2 == 0)):
            found[row] = self._cancels(int(row), weights[row], w1, b1, rows)
        return found

    def _cancels(self, row: int, weights: Array, w1: Array, b1: Array, rows: Bounds) -> bool:
        """Whether all terms of a sum are w relu(x) and w relu(-x), of one x, and come in pairs: two at most, of one size.

        Then every partial sum is w x or 2 w x. A sum of two terms is rounded once, so it is one x at any place. All
        weights are powers of two: by others a product is rounded, but not where a library adds to it in one operation.
        """
        terms: dict[object, dict[bool, list[float]]] = {}
        if rows.used[row]:
            terms[((int(row), 1.0),), 0.0] = {True: [1.0], False: [-1.0]}
        for each in np.flatnonzero(weights):
            places = np.flatnonzero((w1[each] != 0) & rows.used)
            if not len(places) or len(places) + (b1[each] != 0) > 2:
                return False
            first = float(w1[each, places[0]])
            scaled = tuple((int(place), float(w1[each, place]) / first) for place in places), float(b1[each]) / first
            if not are_powers_of_two(np.array([*w1[each, places], weights[each]])).all():
                return False
            if (rows.real[places] & (np.abs(w1[each, places]) < 1)).any():  # a small real number may underflow
                return False
            terms.setdefault(scaled, {True: [], False: []})[first > 0].append(float(weights[each]) * abs(first))
        for signs in terms.values():
            ends = {True: True, False: True} if len(terms) > 1 or not rows.used[row] else {
                True: rows.high[row] > 0, False: rows.low[row] < 0}
            for sign, factors in signs.items():
                if ends[sign] and (sum(factors) or len({abs(factor) for factor in factors}) > 1 or len(factors) > 4):
                    return False
        return len(terms) == 1

    def _units(self, w1: Array, b1: Array, rows: Bounds, column: Column, number: int) -> tuple[Array, Array, Flags]:
        """Of each unit: how large it may get where it is open, its grid, and whether a real number is in it."""
        high = np.maximum(w1, 0) @ rows.high + np.minimum(w1, 0) @ rows.low + b1
        reach = np.maximum(high, 0.0)
        totals, grids, real = _summed(w1, rows)
        totals, grids = totals + np.abs(b1), np.minimum(grids, grids_of(b1))
        gated = ((np.abs(w1) >= GATE) & rows.used).any(axis=1)
        # none of its terms is above 0, or it is below 0 by more than all roundings of the sum
        error = self._rounding(totals, (w1 != 0).sum(axis=1, dtype=np.float64))
        below = (_parts(w1, rows)[0] + np.maximum(b1, 0) <= 0) | (high + error < 0)
        # a sum with a real number in it may be rounded to more than it is
        reach[real] = np.maximum(reach, error)[real]
        reach[below] = 0.0
        plain = ~gated & ~below
        self._exact(totals, grids, f"a unit of layer {number + 1}", plain & ~real)
        for each in np.flatnonzero(gated & ~below):
            reach[each], grids[each], real[each] = self._gated(w1[each], b1[each], rows, column, number)
        return reach, grids, real

    def _rounding(self, totals: Totals, terms: Totals | float) -> Totals:
        """More than units with so many terms, beside the bias, may be off."""
        return 2 * rounding_error(totals, terms + 2, self.limits.eps)

    def _gated(self, weights: Array, bias: float, rows: Bounds, column: Column, number: int) -> tuple[float, float, bool]:
        """A unit with gates: where all are 0 it is the sum of the rest; where one is not, it is closed."""
        forms = self.loop.attended(column, number)
        gates = np.flatnonzero((np.abs(weights) >= GATE) & rows.used)
        bits = sorted({atom for row in gates for atom in forms[int(row)].terms})
        if len(bits) > FEW or any(rows.real[row] for row in gates):
            return float(np.abs(weights) @ rows.size), float("nan"), True
        rest = weights.copy()
        rest[gates] = 0.0
        high = float(np.maximum(rest, 0) @ rows.high + np.minimum(rest, 0) @ rows.low) + bias
        total = float(np.abs(weights) @ rows.size) + abs(bias)
        rounding = self._rounding(total, int(np.count_nonzero(weights)))
        for setting in settings(bits):
            values = [float(weights[row]) * float(forms[int(row)].value(setting)) for row in gates]
            if any(values) and sum(values) + high + rounding >= 0 and (
                    self.loop.solver.possible(self.loop.bits.setting(setting))):
                return total, float("nan"), True
        totals, grids, real = _summed(rest[None, :], rows)
        grid = float(np.minimum(grids, grids_of(np.array([bias])))[0])
        if not real[0]:
            self._exact(totals + abs(bias), np.array([grid]), f"a unit of layer {number + 1} whose gate is open",
                        np.ones(1, dtype=np.bool_))
        # open, its gates are 0: what is left may be rounded to more than it is, and the gates not
        opened = self._rounding(float(np.abs(rest) @ rows.size) + abs(bias), int(np.count_nonzero(rest)))
        return max(high, opened if real[0] else 0.0), grid, bool(real[0])


def _as_float(value: Fraction) -> float:
    """The nearest float64, infinite where it is beyond all."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _parts(matrix: Array, rows: Bounds) -> tuple[Array, Array]:
    """How large the positive terms of `matrix @ x` may be together, and the negative ones."""
    up, down = np.maximum(matrix, 0), np.minimum(matrix, 0)
    most, least = np.maximum(rows.high, 0), np.minimum(rows.low, 0)
    return up @ most + down @ least, -(up @ least + down @ most)


def _summed(matrix: Array, rows: Bounds) -> tuple[Array, Array, Flags]:
    """The largest partial sums of `matrix @ x`, the grid of each entry, and in which a real number takes part."""
    used = (matrix != 0) & rows.used
    grids = np.where(used & ~rows.real, grids_of(matrix) * np.where(rows.real, np.inf, rows.grid), np.inf)
    return np.maximum(*_parts(matrix, rows)), grids.min(axis=1, initial=np.inf), (used & rows.real).any(axis=1)


def _grid(form: Form) -> float:
    """The largest power of two that all values of a form are multiples of."""
    return grid_of_number(unit([form])) if form.terms or form.constant else math.inf
