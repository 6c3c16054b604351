"""A layer of equation (TF) over columns of unknown bits: what a column holds after it, for every card at once.

    attention      which columns win, by how much, and what they give: `found`
    feed-forward   sums of ReLUs of linear forms over bits: `summed`

Sums are exact (see `forms`). A head's losers have the weight exactly 0 once they lose by ln(2 / eta) / temperature, so what
is shown of a head is that all columns but the winners lose by that much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import overload

import numpy as np
import z3

from punchcard.card.formats import FORMATS
from punchcard.card.layout import Layout
from punchcard.errors import ProofError
from punchcard.machines.stages import Case
from punchcard.proof.columns import Code, Column, Columns
from punchcard.proof.forms import (
    NOTHING,
    ONE,
    ZERO,
    Bits,
    Form,
    Term,
    choose,
    gated,
    settings,
    signed,
    times,
    unit,
    vector,
    weighted,
    width,
)
from punchcard.proof.solver import Solver
from punchcard.proof.steps import Step, above, at_least, equal, jumps_of, steps_of, summed
from punchcard.transformer.expression import Array
from punchcard.transformer.precision import hard_product
from punchcard.transformer.weights import NAMES, LayerArrays

FEW = 6
"""Functions of so many bits are tried on all their settings; others are words for the solver."""

Row = list[tuple[int, Fraction]]


@dataclass(frozen=True)
class Candidate:
    """A column that a head may find: `when` its number is that of a column, with its score."""

    column: Column
    when: Term
    score: Form


def sparse(matrix: Array) -> list[Row]:
    """The entries of each row that are not 0, exactly."""
    return [[(int(i), Fraction(float(row[i]))) for i in row.nonzero()[0]] for row in matrix]


NEVER = Fraction(1 << 64)
"""A lead that no score has."""


def least_lead(dtype: str, temperature: float, largest: float) -> Fraction:
    """By how much a score must lead so that nothing is left of another, where scores are at most `largest` in size.

    A temperature that is a power of two makes no rounding; by another, two products are rounded. Without a temperature, or
    where a product is too large for the number format, no lead is enough.
    """
    number_format = FORMATS[dtype]
    if not temperature > 0 or not temperature * max(largest, 1.0) <= number_format.max:
        return NEVER
    exact = math.frexp(temperature)[0] == 0.5
    rounding = Fraction(0) if exact else 2 * Fraction(number_format.eps) * Fraction(temperature) * Fraction(largest)
    return (Fraction(hard_product(dtype)) + rounding) / Fraction(temperature)


class Rows(Sequence[Form]):
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


def _largest(key: Array, query: Array, sizes: Array) -> float:
    """The largest score of entries up to these sizes."""
    return float((np.abs(key.astype(np.float64)) @ sizes) @ (np.abs(query.astype(np.float64)) @ sizes))


class Layer:
    """The weights of a layer as exact fractions."""

    def __init__(self, arrays: LayerArrays, dtype: str, sizes: Array) -> None:
        for name in NAMES:
            if not np.isfinite(getattr(arrays, name)).all():
                raise ProofError(f"the weights {name!r} have an entry that is not finite: there is nothing to prove")
        self.heads = [
            HeadWeights(sparse(key), sparse(query), sparse(value),
                        least_lead(dtype, float(temperature), _largest(key, query, sizes)))
            for key, query, value, temperature in zip(arrays.key, arrays.query, arrays.value, arrays.temperature,
                                                      strict=True)
        ]
        self.w1, self.w2 = sparse(arrays.w1), sparse(arrays.w2)
        self.b1 = [Fraction(float(b)) for b in arrays.b1.ravel()]
        self.b2 = [Fraction(float(b)) for b in arrays.b2.ravel()]


@dataclass(frozen=True)
class HeadWeights:
    """K, Q and V, and by how much a winner must win so that nothing is left of the others."""

    key: list[Row]
    query: list[Row]
    value: list[Row]
    gap: Fraction


class Loop:
    """Layers of a loop, on columns of unknown bits, followed as far as anybody asks.

    It was shown before that columns of the regions `still` stay as they are.
    """

    def __init__(
        self, layers: Sequence[Layer], layout: Layout, solver: Solver, case: Case | None = None,
        still: Collection[str] = (),
    ) -> None:
        self.bits, self.solver, self.layout = Bits(), solver, layout
        self.columns = Columns(layout, self.bits, solver, case)
        self.layers, self._still = layers, still
        self.others = {region.name: self.columns.fresh(region.name, f"other {region.name}") for region in layout.regions}
        """Any column of each region, as one that a head might find."""
        self.shares = [[1] * len(layer.heads) for layer in self.layers]
        """How many columns may share a head's best score."""
        self.lemmas: dict[tuple[int, str, int, int], Term] = {}
        """By layer, region and rows, from and to: the word that should stand there once so many layers are done."""
        self.wholes: dict[tuple[int, str, int], tuple[Form, Form]] = {}
        """By layer, region and row: the number that should stand there, and the same number as a sum of other bits."""
        self.finds: dict[tuple[int, int], dict[str, list[str]]] = {}
        """For each layer and head: what a column of each region finds."""

    def after(self, column: Column, layer: int) -> Sequence[Form]:
        """The rows of a column after so many layers."""
        if layer == 0 or column.region in self._still:
            return column.rows
        while len(column.later) < layer:
            number = len(column.later)
            column.later.append(Rows(partial(self._after_units, number, column), self.layout.width))
        return column.later[layer - 1]

    def _by_lemma(self, layer: int, column: Column, place: int, found: Form) -> Form:
        """A row, with the bit of a lemma in place of what was computed, once the two are shown to be the same.

        A lemma that does not hold is not used: it is there to make later questions shorter, and nothing depends on it.
        """
        for (number, region, start, stop), word in self.lemmas.items():
            if number == layer and region == column.region and start <= place < stop:
                wanted = signed(self.bits.of_word(word)[place - start])
                if found.key == wanted.key or self.solver.holds(equal(found - wanted, self.bits)):
                    return wanted
        if (layer, column.region, place) in self.wholes:
            wanted, expanded = self.wholes[layer, column.region, place]
            if found.key in (wanted.key, expanded.key) or self.solver.holds(equal(found - wanted, self.bits)):
                return wanted
        return found

    def is_integer(self, form: Form) -> Term:
        """Whether the form is an integer."""
        if form.is_whole:
            return z3.BoolVal(True)
        scale = unit([form, Form(ONE)])
        word = vector(form, scale, width(form.low, form.high, scale), self.bits)
        return z3.SRem(word, z3.BitVecVal(int(1 / scale), word.size())) == 0

    def between(self, form: Form, low: Fraction, high: Fraction) -> Term:
        """low <= form <= high."""
        return z3.And(at_least(form, low, self.bits), at_least(-form, -high, self.bits))

    # Attention

    def attended(self, column: Column, number: int) -> Sequence[Form]:
        """The rows of a column between the attention of a layer, counted from 0, and its feed-forward."""
        while len(column.attended) <= number:
            layer = len(column.attended)
            column.attended.append(Rows(partial(self._after_heads, layer, column), self.layout.width))
        return column.attended[number]

    def _after_heads(self, number: int, column: Column, place: int) -> Form:
        """A row after the attention of a layer."""
        total = self.after(column, number)[place]
        for head, weights in enumerate(self.layers[number].heads):
            if weights.value[place]:
                total = total + self.taken(number, head, column)[place]
        return total

    def taken(self, number: int, head: int, column: Column) -> list[Form]:
        """What a head gives to a column."""
        key = number, head
        if key not in column.taken:
            column.taken[key] = self._take(number, head, self.layers[number].heads[head], column)
        return column.taken[key]

    def _take(self, number: int, head: int, weights: HeadWeights, column: Column) -> list[Form]:
        """What a head gives to a column: the value of the one that it finds, or the mean of two."""
        query = [weighted(row, self.after(column, number)) for row in weights.query]
        candidates = self._hopeful(self._candidates(number, weights, column, query), weights.gap)
        self._others_lose(number, head, weights, column, query, candidates)
        wins = self._wins(number, head, weights, column, candidates)
        self.shares[number][head] = max(self.shares[number][head], *(len(shares) for shares, _ in wins))
        self.finds.setdefault((number, head), {}).setdefault(column.region, [
            " and ".join(_told(candidates[share].column, column) for share in shares) for shares, _ in wins])
        taken = [NOTHING] * self.layout.width
        used = [place for place, row in enumerate(weights.value) if row]
        for place in used:
            values = [weighted(weights.value[place], self.after(each.column, number)) for each in candidates]
            total: Form | None = None
            for shares, condition in wins:
                form = NOTHING
                for share in shares:
                    form += values[share] * Fraction(1, len(shares))
                total = form if total is None else choose(condition, form, total, self.bits)
            assert total is not None
            taken[place] = total
        return taken

    def _candidates(self, number: int, weights: HeadWeights, column: Column, query: Sequence[Form]) -> list[Candidate]:
        """Columns that might win: those of a region of one column, the column itself, and those that the query names.

        A query names a column where its entries are the bits of a code, and a region's keys are the codes of its columns.
        """
        found: list[Candidate] = []

        def add(region: str, place: Term) -> None:
            place = z3.simplify(place)
            if any(each.column.region == region and each.column.place.eq(place) for each in found):
                return
            when = z3.simplify(self.columns.within(place, region))
            if not z3.is_true(when):
                if not self.solver.possible(when):
                    return
                if self.solver.holds(when):
                    when = z3.BoolVal(True)
            same = [z3.And(each.when, place == each.column.place) for each in found if each.column.region == region]
            if same and not self.solver.holds(z3.Not(z3.Or(*same))):
                when = z3.And(when, z3.Not(z3.Or(*same)))
                if not self.solver.possible(when):
                    return
            target = self.columns.at(region, place)
            found.append(Candidate(target, when, self._score(number, weights, target, query)))

        add(column.region, column.place)
        for region in self.layout.regions:
            if not self.columns.codes(self.others[region.name]):
                for place in range(*self.layout.region(region.name).indices(self.layout.columns)):
                    add(region.name, self.columns.constant(place))
            else:
                for place in self._named(number, weights, region.name, query):
                    add(region.name, place)
        return found

    def _hopeful(self, candidates: list[Candidate], gap: Fraction) -> list[Candidate]:
        """The candidates without those that always lose to another by the gap."""
        left = list(candidates)
        for each in candidates:
            rivals = [other for other in left if other is not each]
            near = [z3.Not(z3.And(other.when, at_least(other.score - each.score, gap, self.bits))) for other in rivals]
            if rivals and self.solver.refutes(each.when, *near) is None:
                left = rivals
        return left

    def _score(self, number: int, weights: HeadWeights, target: Column, query: Sequence[Form]) -> Form:
        rows, score = self.after(target, number), NOTHING
        for row, entry in zip(weights.key, query, strict=True):
            if row and (entry.terms or entry.constant):
                score += times(weighted(row, rows), entry, self.bits)
        return score

    def _named(self, number: int, weights: HeadWeights, region: str, query: Sequence[Form]) -> list[Term]:
        """The numbers of columns that a query names in a region."""
        other = self.others[region]
        keys = [weighted(row, self.after(other, number)) for row in weights.key]
        return [place for code in self.columns.codes(other) for place in self._decoded(other, code, keys, query)]

    def _decoded(self, other: Column, code: Code, keys: Sequence[Form], query: Sequence[Form]) -> list[Term]:
        """The columns whose code stands in the query, where the keys are such codes."""
        runs: list[dict[int, int]] = []
        for place, key in enumerate(keys):
            if len(key.terms) == 1:
                bit = code.places.get(next(iter(key.terms)))
                if bit is not None:
                    for run in runs:
                        if bit not in run:
                            run[bit] = place
                            break
                    else:
                        runs.append({bit: place})
        found = []
        for run in runs:
            entries = [query[run[bit]] if bit in run else None for bit in range(code.size)]
            if all(entry is not None and len(entry.terms) + bool(entry.constant) for entry in entries):
                signs = [self.bits.form(above(entry, ZERO, self.bits)) for entry in entries if entry is not None]
                found.append(code.place(self.bits.word(signs)))
        return found

    def _others_lose(
        self, number: int, head: int, weights: HeadWeights, column: Column, query: Sequence[Form],
        candidates: list[Candidate],
    ) -> None:
        """Every column that is not a candidate loses to one of them by the gap."""
        near = []
        for region in self.layout.regions:
            other = self.others[region.name]
            if region.size == 1:
                continue  # a candidate
            distinct = [z3.Not(z3.And(each.when, other.place == each.column.place)) for each in candidates
                        if each.column.region == region.name]
            score = self._score(number, weights, other, query)
            close = [z3.Not(z3.And(each.when, at_least(each.score - score, weights.gap, self.bits))) for each in candidates]
            near.append(z3.And(*distinct, *close))
        self.solver.never(f"layer {number + 1}, head {head + 1}: {column.name} finds one column, or shares two, and no "
                          "other comes near", z3.Or(*near))

    def _wins(
        self, number: int, head: int, weights: HeadWeights, column: Column, candidates: list[Candidate],
    ) -> list[tuple[tuple[int, ...], Term]]:
        """Who wins when: the shares, and the condition; the first is taken where none of the later conditions holds."""
        if len(candidates) == 1:
            return [((0,), z3.BoolVal(True))]
        beats = {(i, j): z3.Or(z3.Not(b.when), above(a.score - b.score, ZERO, self.bits))
                 for i, a in enumerate(candidates) for j, b in enumerate(candidates) if i != j}
        for best in candidates:
            leads = [z3.Or(z3.Not(each.when), at_least(best.score - each.score, ZERO, self.bits))
                     for each in candidates if each is not best]
            for each in candidates:
                if each is not best:
                    lead = best.score - each.score
                    near = z3.And(each.when, above(lead, ZERO, self.bits), z3.Not(at_least(lead, weights.gap, self.bits)))
                    self.solver.never(f"layer {number + 1}, head {head + 1}: {column.name} finds {best.column.name}, and "
                                      f"{each.column.name} loses by enough", best.when, *leads, near)
        wins: list[tuple[tuple[int, ...], Term]] = []
        matches = [self._match(each) for each in candidates]
        for i, best in enumerate(candidates):
            condition = z3.simplify(z3.And(best.when, *(beats[i, j] for j in range(len(candidates)) if i != j)))
            self._case(wins, (i,), condition, [
                matches[i], z3.And(best.when, *(z3.Not(match) for j, match in enumerate(matches) if j != i))])
        for i, one in enumerate(candidates):
            for j in range(i):
                other = candidates[j]
                tie = z3.And(one.when, other.when, equal(one.score - other.score, self.bits),
                             *(beats[i, k] for k in range(len(candidates)) if k not in (i, j)))
                self._case(wins, (j, i), z3.simplify(tie), [matches[i], matches[j], z3.And(matches[i], matches[j])])
        self.solver.never(f"layer {number + 1}, head {head + 1}: {column.name} finds one column, or shares two",
                          *(z3.Not(condition) for _, condition in wins))
        return wins

    def _match(self, candidate: Candidate) -> Term:
        """Whether a candidate's score is as high as its bits allow: where they are two codes, whether these are one."""
        agree = [self.bits.terms[bit] if weight > 0 else z3.Not(self.bits.terms[bit])
                 for bit, weight in candidate.score.terms.items()]
        return z3.simplify(z3.And(candidate.when, *agree))

    def _case(
        self, wins: list[tuple[tuple[int, ...], Term]], shares: tuple[int, ...], condition: Term, simpler: list[Term],
    ) -> None:
        """Keep a case that can occur, by the simplest condition that says when."""
        if z3.is_false(condition) or not self.solver.possible(condition):
            return
        for term in simpler:
            if self.solver.holds(condition == term):
                condition = z3.simplify(term)
                break
        form = self._named_bit(condition)
        if form.is_constant:
            wins.append((shares, z3.BoolVal(bool(form.constant))))
        else:
            (bit, sign), = form.terms.items()
            wins.append((shares, self.bits.terms[bit] if sign > 0 else z3.Not(self.bits.terms[bit])))

    # Feed-forward

    def _after_units(self, number: int, column: Column, place: int) -> Form:
        """A row after the feed-forward of a layer."""
        layer, rows = self.layers[number], self.attended(column, number)
        if not layer.w2[place]:
            return rows[place] + Form(layer.b2[place])
        units = column.units.setdefault(number, {})
        found = []
        for hidden, weight in layer.w2[place]:
            if hidden not in units:
                units[hidden] = weighted(layer.w1[hidden], rows) + Form(layer.b1[hidden])
            found.append((weight, units[hidden]))
        return self._by_lemma(number + 1, column, place, self._summed(rows[place], layer.b2[place], found))

    def _summed(self, old: Form, bias: Fraction, units: list[tuple[Fraction, Form]]) -> Form:
        """old + bias + sum of weight * relu(form), as a form."""
        total, open_units = old + Form(bias), dict[object, tuple[Fraction, Form]]()
        for weight, form in units:
            if form.high <= 0:
                continue
            if form.low >= 0:
                total += form * weight
                continue
            # relu(f) = relu(-f) + f: of a form and its negative, one is enough.
            turned = -form
            if turned.key in open_units:
                total += form * weight
                form = turned
            before = open_units.get(form.key, (ZERO, form))[0]
            open_units[form.key] = before + weight, form
        start, steps, left = self._steps([(weight, form) for weight, form in open_units.values() if weight])
        total += Form(start)
        conditions = summed(steps, self.bits)
        for weight, condition in conditions:
            total += (self._named_bit(condition) if len(conditions) == 1 else self.bits.form(condition)) * weight
        if left:
            return self._closed(total, left)
        return self._settled(total) if conditions and len(total.terms) > 1 else total

    def _steps(self, units: list[tuple[Fraction, Form]]) -> tuple[Fraction, list[Step], list[tuple[Fraction, Form]]]:
        """ReLUs of one form with different biases that together are flat but for steps: a start, the steps; and others."""
        groups: dict[object, list[tuple[Fraction, Fraction, Fraction, Form]]] = {}
        for weight, form in units:
            first = min(form.terms)
            slope = abs(form.terms[first])
            base = Form(ZERO, form.terms) * (1 / slope)
            sign = ONE
            if (-base).key in groups:
                base, sign = -base, -ONE
            groups.setdefault(base.key, []).append((weight, slope * sign, form.constant, base))
        total, found, left = ZERO, list[Step](), []
        for group in groups.values():
            base = group[0][3]
            steps = jumps_of(base, [(weight, slope, bias) for weight, slope, bias, _ in group])
            if steps is None or len(base.terms) == 1:
                left += [(weight, base * slope + Form(bias)) for weight, slope, bias, _ in group]
            else:
                total += steps[0]
                found += steps_of(base, steps[1], self.bits) if steps[1] else []
        return total, found, left

    def _settled(self, total: Form) -> Form:
        """A sum of comparisons as one bit, where it has two values only."""
        used = sorted(total.terms)
        if len(used) > FEW:
            return self._values(*self._as_word(total))
        values = dict[Fraction, list[dict[int, int]]]()
        for each in settings(used):
            values.setdefault(total.value(each), []).append(each)
        linear = len(used) == 1
        if linear:
            return total
        terms = {value: z3.Or(*(self._setting(each) for each in some)) for value, some in values.items()}
        possible = [value for value in sorted(values) if self.solver.possible(terms[value])]
        found = Form(possible[0])
        for low, high in pairwise(possible):
            reached = z3.Or(*(terms[value] for value in possible if value >= high))
            found += self._named_bit(reached) * (high - low)
        return found

    def _setting(self, setting: dict[int, int]) -> Term:
        return z3.And(*(self.bits.terms[bit] if value else z3.Not(self.bits.terms[bit]) for bit, value in setting.items()))

    def _named_bit(self, term: Term) -> Form:
        """A bit by a name of its own, so that what it stands for is worked out once."""
        term = z3.simplify(term)
        form = self.bits.form(term)
        if form.is_constant or z3.is_const(term):
            return form
        name = z3.FreshBool("bit")
        self.solver.suppose(name == term)
        return self.bits.form(name)

    def _as_word(self, total: Form) -> tuple[Term, Fraction, int]:
        scale = unit([total, Form(ONE)])
        size = width(total.low, total.high, scale)
        return vector(total, scale, size, self.bits), scale, size

    def _closed(self, total: Form, units: list[tuple[Fraction, Form]]) -> Form:
        """A sum with ReLUs as a form: by its values on all settings of few bits, else as a word."""
        used = sorted({bit for _, form in units for bit in form.terms})
        if len(used) <= FEW:
            # What is linear stays so; only what the ReLUs' bits decide is looked at.
            own = Form(total.constant, {bit: c for bit, c in total.terms.items() if bit in used})
            rest = Form(ZERO, {bit: c for bit, c in total.terms.items() if bit not in used})
            values = [own.value(each) + sum((w * max(f.value(each), ZERO) for w, f in units), ZERO)
                      for each in settings(used)]
            return rest + self._table(used, values)
        total, units = self._behind_gates(total, units)
        return self._word(total, units) if units else total

    def _behind_gates(
        self, total: Form, units: list[tuple[Fraction, Form]],
    ) -> tuple[Form, list[tuple[Fraction, Form]]]:
        """Take ReLUs of a number behind a gate into the sum: the number where some bits are as they must be, else 0.

        Without such a bit the form is 0 at most, and with all of them 0 at least. Steps of bits are left to others.
        """
        left = []
        for weight, form in units:
            literals = {bit: int(c > 0) for bit, c in form.terms.items() if form.high - abs(c) <= 0}
            inside = Form(form.constant + sum((form.terms[bit] for bit, held in literals.items() if held), ZERO),
                          {bit: c for bit, c in form.terms.items() if bit not in literals})
            if literals and inside.low >= 0 and inside.high > 1:
                total += gated(self._setting(literals), inside, self.bits) * weight
            else:
                left.append((weight, form))
        return total, left

    def _table(self, used: list[int], values: list[Fraction]) -> Form:
        """A function of few bits, by its values."""
        linear = self._linear(used, values)
        if linear is not None:
            return linear
        steps = sorted(set(values))
        found = Form(steps[0])
        for low, high in pairwise(steps):
            terms = [self._setting(each)
                     for each, reached in zip(settings(used), values, strict=True) if reached >= high]
            found += self.bits.form(z3.Or(*terms)) * (high - low)
        return found

    def _linear(self, used: list[int], values: list[Fraction]) -> Form | None:
        """A function of few bits that is linear."""
        size = len(used)
        slopes = {bit: values[1 << (size - 1 - place)] - values[0] for place, bit in enumerate(used)}
        form = Form(values[0], {bit: slope for bit, slope in slopes.items() if slope})
        return form if all(form.value(each) == value for each, value in zip(settings(used), values, strict=True)) else None

    def _word(self, total: Form, units: list[tuple[Fraction, Form]]) -> Form:
        """A sum with ReLUs of many bits, as a word for the solver; it is one of two numbers, or any."""
        scale = unit([total, Form(ONE), *(Form(unit([form]) * weight) for weight, form in units)])
        low = total.low + sum((min(w * f.high, ZERO) for w, f in units), ZERO)
        high = total.high + sum((max(w * f.high, ZERO) for w, f in units), ZERO)
        size = max(width(low, high, scale), *(width(f.low, f.high, unit([f])) for _, f in units))
        word = vector(total, scale, size, self.bits)
        for weight, form in units:
            own_scale = unit([form])
            own_size = width(form.low, form.high, own_scale)
            own = vector(form, own_scale, own_size, self.bits)
            opened = z3.If(own < 0, z3.BitVecVal(0, own_size), own)
            factor = weight * own_scale / scale
            assert factor.denominator == 1
            wide = z3.SignExt(size - own_size, opened) if size > own_size else opened
            word = word + (wide if factor == 1 else wide * z3.BitVecVal(factor.numerator, size))
        return self._values(z3.simplify(word), scale, size)

    def _values(self, word: Term, scale: Fraction, size: int) -> Form:
        """A word as a form: as few bits as its values need."""
        def is_one_of(*values: int) -> Term:
            return z3.Or(*(word == z3.BitVecVal(int(Fraction(value) / scale), size) for value in values))

        for low, high in ((-1, 1), (0, 1), (-1, 0)):
            if self.solver.holds(is_one_of(low, high)):
                return Form(Fraction(low)) + self._named_bit(is_one_of(high)) * Fraction(high - low)
        if self.solver.holds(is_one_of(-1, 0, 1)):
            return self._named_bit(is_one_of(1)) - self._named_bit(is_one_of(-1))
        found = NOTHING
        for place, bit in enumerate(self.bits.of_word(word)):
            found += bit * (scale * (1 << place) * (-1 if place == size - 1 else 1))
        return found


def _told(found: Column, by: Column) -> str:
    """A column that was found, as it is told."""
    return "itself" if found is by else found.region
