"""A layer of equation (TF) over columns of unknown bits and real numbers.

Bits are followed as in `layers`, exactly. A real number is followed exactly as long as it is moved, gated, added and
multiplied by weights. What a soft head or a ReLU makes of real numbers is a new number, of which an interval is known. So a
claim about bits fails wherever it would depend on such a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from punchcard.card.layout import Layout
from punchcard.proof.columns import Column
from punchcard.proof.forms import NOTHING, ONE, ZERO, Bits, Form, Real, Term, gated, settings, times, weighted
from punchcard.proof.layer_weights import HeadWeights, Layer
from punchcard.proof.layers import Loop
from punchcard.proof.real_columns import RealColumns
from punchcard.proof.relus import FEW
from punchcard.proof.solver import Solver
from punchcard.proof.steps import at_least, equal

Span = tuple[Fraction, Fraction]
ROUNDED = Fraction(1, 1 << 8)
"""More than roundings make of a mean, in any number format."""
MANY = 8
"""Sums with noise are looked at on all settings of so many bits."""


@dataclass(frozen=True)
class Group:
    """Columns with one score: they share what a head gives. `when` the number that names them is that of a column."""

    columns: tuple[Column, ...]
    when: Term
    score: Form


class RealLoop(Loop):
    """One loop of a model with real numbers on its card."""

    columns: RealColumns

    def __init__(self, layers: Sequence[Layer], layout: Layout, solver: Solver) -> None:
        super().__init__(layers, RealColumns(layout, Bits(), solver))
        self.soft: dict[tuple[int, int], set[str]] = {}
        """For each layer and head: the regions whose columns may take a mean that is not known exactly."""
        self.whole: dict[tuple[int, int, str], tuple[Fraction, Fraction, Fraction]] = {}
        """By layer, row and region: where heads bring an integer, by promise; tolerance, limit, and what is added to it."""
        self.grids: dict[tuple[int, int, str], Fraction] = {}
        """What such a number is a multiple of, once it is read."""
        self.at_most_zero: dict[object, Term] = {}
        """Whether such a number is 0 or less, by its form."""
        self._wholes: dict[object, Form] = {}
        self._sums: dict[object, Form] = {}
        self._parts: dict[object, Form] = {}
        self._products: dict[object, Form] = {}
        self._taken: dict[object, list[Form]] = {}
        self._keys: dict[object, dict[int, Form]] = {}

    def begin(self) -> None:
        """Columns that a head might find, once it is known which case is looked at."""
        for region in self.layout.regions:
            if not self.columns.is_listed(region.name):
                self.others[region.name] = self.columns.fresh(region.name, f"other {region.name}")

    # Intervals

    def is_real(self, form: Form) -> bool:
        """Whether a form is about more than bits."""
        return any(atom in self.bits.reals for atom in form.terms)

    def parts(self, form: Form) -> tuple[Form, Form]:
        """The bits of a form with its constant, and its real numbers."""
        reals = self.bits.reals
        return (Form(form.constant, {a: c for a, c in form.terms.items() if a not in reals}),
                Form(ZERO, {a: c for a, c in form.terms.items() if a in reals}))

    def span(self, form: Form) -> Span:
        """The least and the greatest value, were all bits and all real numbers free."""
        low = high = form.constant
        for atom, factor in form.terms.items():
            real = self.bits.reals.get(atom)
            if real is None:
                least, most = ZERO, ONE
            elif z3.is_true(self.bits.terms[atom]):
                least, most = real.low, real.high
            else:
                least, most = min(real.low, ZERO), max(real.high, ZERO)
            low, high = low + min(factor * least, factor * most), high + max(factor * least, factor * most)
        return low, high

    def can_be(self, setting: dict[int, int]) -> bool:
        """Whether bits can have these values."""
        return self.solver.possible(self._setting(setting))

    def surely(self, form: Form, limit: Fraction) -> Term:
        """form >= limit, whatever its real numbers are."""
        bits, reals = self.parts(form)
        return at_least(bits, limit - self.span(reals)[0], self.bits)

    def same(self, found: Form, wanted: Form) -> list[Term]:
        """Two forms are equal, whatever the real numbers are: what must hold of the bits."""
        bits, reals = self.parts(found - wanted)
        gates: dict[Real, Form] = {}
        for atom, factor in reals.terms.items():
            real = self.bits.reals[atom]
            gates[real] = gates.get(real, NOTHING) + self.bits.form(self.bits.terms[atom]) * factor
        return [equal(form, self.bits) for form in (bits, *gates.values()) if form.terms or form.constant]

    # Attention

    def _take(self, number: int, head: int, weights: HeadWeights, column: Column) -> list[Form]:
        query = [weighted(row, self.after(column, number)) for row in weights.query]
        own = None if self.columns.is_listed(column.region) else column
        key = number, head, column.region, own, tuple(entry.key for entry in query)
        if key not in self._taken:
            self._taken[key] = self._look(number, head, weights, column, query)
        return self._taken[key]

    def _look(self, number: int, head: int, weights: HeadWeights, column: Column, query: Sequence[Form]) -> list[Form]:
        """What a column with this query takes: of the groups that surely win, their mean; else something between all."""
        groups = self._groups(number, head, weights, column, query)
        far = {region: self._scored(number, head, weights, other, query) for region, other in self.others.items()}
        best = max((self.span(group.score)[0] for group in groups if z3.is_true(group.when)), default=None)
        if best is not None:
            groups = [group for group in groups if self.span(group.score)[1] > best - weights.gap]
            far = {region: score for region, score in far.items() if self.span(score)[1] > best - weights.gap}
        merged = self._merged(groups)
        if not far and len(merged) == 1:
            wins = [(merged[0], z3.BoolVal(True))]
        elif any(self.is_real(group.score) for group in groups) or any(self.is_real(score) for score in far.values()):
            wins = []
        else:
            wins = self._sure(weights, merged, far)
        rest = z3.simplify(z3.Not(z3.Or(*(condition for _, condition in wins))))
        unsure = not z3.is_false(rest) and (not wins or self.solver.possible(rest))
        self._tell(number, head, column, [group for group, _ in wins], unsure)
        # where none is left over, the first is taken unless another wins
        first = wins.pop(0)[0] if wins and not unsure else None
        wins = [(group, self._by_name(condition)) for group, condition in wins]
        rest = self._by_name(rest) if unsure else rest
        hull = [each for group in merged for each in group.columns] + [self.others[region] for region in far]
        taken = [NOTHING] * self.layout.width
        for place, row in enumerate(weights.value):
            if row:
                total = base = self._mean(number, row, first) if first is not None else NOTHING
                given: dict[object, tuple[Form, list[Term]]] = {}
                for group, condition in wins:
                    more = self._mean(number, row, group) - base
                    given.setdefault(more.key, (more, []))[1].append(condition)
                for more, conditions in given.values():
                    # no two of them win at once
                    total += gated(conditions[0] if len(conditions) == 1 else z3.Or(*conditions), more, self.bits)
                if unsure:
                    total += self._between(number, place, row, hull, rest)
                taken[place] = total
        return taken

    def _by_name(self, condition: Term) -> Term:
        """A condition by a name of its own, so that what it stands for is worked out once."""
        form = self._named_bit(condition)
        if form.is_constant:
            return z3.BoolVal(form.constant == 1)
        (bit, factor), = form.terms.items()
        return self.bits.terms[bit] if factor > 0 else z3.Not(self.bits.terms[bit])

    def _merged(self, groups: list[Group]) -> list[Group]:
        """Groups with the same score are one."""
        found: dict[object, Group] = {}
        for group in groups:
            key = group.score.key, 0 if z3.is_true(group.when) else len(found) + 1
            before = found.get(key)
            found[key] = group if before is None else Group((*before.columns, *group.columns), group.when, group.score)
        return list(found.values())

    def _mean(self, number: int, row: list[tuple[int, Fraction]], group: Group) -> Form:
        values = [weighted(row, self.after(column, number)) for column in group.columns]
        total, count = sum(values, start=NOTHING), len(group.columns)
        cancels = not self.is_real(total) and any(self.is_real(value) for value in values)
        if cancels or (count & count - 1 and (total.terms or total.constant)):
            # a third, say, is rounded, and so is a sum of real numbers: the mean is what the columns give, up to that
            low, high = self.span(total * Fraction(1, count))
            more = max(abs(end) for value in values for end in self.span(value)) * ROUNDED
            return self.bits.real(Real(f"a mean of {count} in layer {number + 1}", low - more, high + more))
        return total * Fraction(1, count)

    def _between(self, number: int, place: int, row: list[tuple[int, Fraction]], columns: list[Column], where: Term) -> Form:
        """A number between the least and the greatest that these columns give; the number itself if all give the same."""
        values = [weighted(row, self.after(column, number)) for column in columns]
        if all(value.key == values[0].key for value in values[1:]) and not self.is_real(values[0]):
            return gated(where, values[0], self.bits)
        spans = [self.span(value) for value in values]
        low, high = min(span[0] for span in spans), max(span[1] for span in spans)
        if low == high:
            return gated(where, Form(low), self.bits)
        return self.bits.real(Real(f"row {place} of a mean in layer {number + 1}", low, high), where)

    def _groups(
        self, number: int, head: int, weights: HeadWeights, column: Column, query: Sequence[Form],
    ) -> list[Group]:
        """Columns that might win: listed ones by their keys, the column itself, and those that the query names."""
        found: list[Group] = []
        by_key: dict[object, list[Column]] = {}
        for span in self.layout.regions:
            if self.columns.is_listed(span.name):
                for each in self.columns.pool(span.name):
                    keys = self._key(number, head, weights, each)
                    by_key.setdefault(tuple((place, form.key) for place, form in keys.items()), []).append(each)
        for columns in by_key.values():
            found.append(Group(tuple(columns), z3.BoolVal(True), self._scored(number, head, weights, columns[0], query)))
        own = [] if self.columns.is_listed(column.region) else [(column.region, column.place)]
        named = [(region, place) for region in self.others for place in self._named(number, weights, region, query)]
        places: list[tuple[str, Term]] = []
        for region, place in (*own, *named):
            place = z3.simplify(place)
            if any(region == other and place.eq(there) for other, there in places):
                continue
            when = z3.simplify(self.columns.within(place, region))
            if not z3.is_true(when):
                if not self.solver.possible(when):
                    continue
                when = z3.BoolVal(True) if self.solver.holds(when) else when
            same = [z3.And(self.columns.within(there, region), place == there) for other, there in places if other == region]
            if same and not self.solver.holds(z3.Not(z3.Or(*same))):
                when = z3.simplify(z3.And(when, z3.Not(z3.Or(*same))))
                if not self.solver.possible(when):
                    continue
            places.append((region, place))
            target = self.columns.at(region, place)
            found.append(Group((target,), when, self._scored(number, head, weights, target, query)))
        return found

    def _key(self, number: int, head: int, weights: HeadWeights, column: Column) -> dict[int, Form]:
        found = self._keys.get((number, head, column))
        if found is None:
            rows = self.after(column, number)
            forms = ((place, weighted(row, rows)) for place, row in enumerate(weights.key) if row)
            found = {place: form for place, form in forms if form.terms or form.constant}
            self._keys[number, head, column] = found
        return found

    def _scored(self, number: int, head: int, weights: HeadWeights, target: Column, query: Sequence[Form]) -> Form:
        score = NOTHING
        for place, key in self._key(number, head, weights, target).items():
            if query[place].terms or query[place].constant:
                score += self._product(key, query[place])
        return score

    def _product(self, one: Form, other: Form) -> Form:
        if one.is_constant:
            return other * one.constant
        if other.is_constant:
            return one * other.constant
        if not self.is_real(one) and not self.is_real(other):
            return times(one, other, self.bits)
        key = frozenset((one.key, other.key))
        if key not in self._products:
            ends = [a * b for a in self.span(one) for b in self.span(other)]
            self._products[key] = self.bits.real(Real("a product", min(ends), max(ends)))
        return self._products[key]

    def _sure(self, weights: HeadWeights, groups: list[Group], far: dict[str, Form]) -> list[tuple[Group, Term]]:
        """Groups that surely win, and when: they lead all other groups and all columns that were not looked at."""
        wins = []
        for group in groups:
            leads = [z3.Or(z3.Not(other.when), self.surely(group.score - other.score, weights.gap))
                     for other in groups if other is not group]
            condition = z3.simplify(z3.And(group.when, *leads))
            if z3.is_false(condition) or not self.solver.possible(condition):
                continue
            beaten = all(self._beaten(weights, group, condition, groups, region, score) for region, score in far.items())
            if beaten:
                wins.append((group, condition))
        return wins

    def _beaten(
        self, weights: HeadWeights, group: Group, condition: Term, groups: list[Group], region: str, score: Form,
    ) -> bool:
        """Whether a group that leads all others leads any column of a region too."""
        other = self.others[region]
        distinct = [z3.Not(z3.And(each.when, other.place == column.place)) for each in groups for column in each.columns
                    if column.region == region]
        return self.solver.refutes(condition, *distinct, z3.Not(self.surely(group.score - score, weights.gap))) is None

    def _tell(self, number: int, head: int, column: Column, groups: list[Group], unsure: bool) -> None:
        told = self.finds.setdefault((number, head), {}).setdefault(column.region, [])
        for group in groups:
            regions = dict.fromkeys("itself" if each is column else each.region for each in group.columns)
            text = " and ".join(regions)
            if text not in told:
                told.append(text)
        if unsure:
            self.soft.setdefault((number, head), set()).add(column.region)

    # Feed-forward

    def after(self, column: Column, layer: int) -> Sequence[Form]:
        if layer == 0:
            return column.rows
        while len(column.later) < layer:
            number = len(column.later)
            column.later.append(self._feed_forward(number, self.attended(column, number), column.region))
        return column.later[layer - 1]

    def _feed_forward(self, number: int, rows: Sequence[Form], region: str) -> list[Form]:
        """The rows after the ReLUs of a layer, from those before."""
        kept = [self._as_whole(form, *self.whole[number, place, region])
                if (number, place, region) in self.whole and self.is_real(form) else form for place, form in enumerate(rows)]
        layer = self.layers[number]
        units = [weighted(row, kept) + Form(bias) for row, bias in zip(layer.w1, layer.b1, strict=True)]
        return [self._summed(old, bias, [(weight, units[unit]) for unit, weight in row])
                for old, bias, row in zip(kept, layer.b2, layer.w2, strict=True)]

    def _as_whole(self, shifted: Form, tolerance: Fraction, limit: Fraction, shift: Fraction) -> Form:
        """A number that is an integer by promise: at most 0, or at least 1, up to the tolerance; and what is added to it."""
        form = shifted - Form(shift)
        if form.key not in self._wholes:
            bits, reals = self.parts(form)
            condition = z3.FreshBool("at most 0")
            stands = z3.Or(*(self.bits.terms[atom] for atom in reals.terms))
            self.solver.suppose(z3.Or(stands, condition == at_least(-bits, ZERO, self.bits)))
            self.at_most_zero[form.key] = condition
            below = Real("an integer of at most 0", -limit, tolerance, noise=True)
            above = Real("an integer of at least 1", 1 - tolerance, limit, noise=True)
            self._wholes[form.key] = self.bits.real(below, condition) + self.bits.real(above, z3.Not(condition))
        return self._wholes[form.key] + Form(shift)

    def _summed(self, old: Form, bias: Fraction, units: list[tuple[Fraction, Form]]) -> Form:
        key = old.key, bias, tuple((weight, form.key) for weight, form in units)
        if key not in self._sums:
            total, left = old, dict[object, tuple[Fraction, Form]]()
            for weight, form in units:
                # relu(f) = relu(-f) + f: of a form and its negative, one is enough; so a row is cleared exactly
                if (-form).key in left:
                    total, form = total + form * weight, -form
                before = left.get(form.key, (ZERO, form))[0]
                left[form.key] = before + weight, form
            used = [(weight, form) for weight, form in left.values() if weight]
            bits, reals = self.parts(total)
            noisy = [unit for unit in used if self._is_noisy(unit[1])]
            noise = Form(ZERO, {atom: c for atom, c in reals.terms.items() if noisy and self.bits.reals[atom].noise})
            total = super()._summed(bits, bias, [unit for unit in used if not self.is_real(unit[1])]) + (reals - noise)
            for weight, form in used:
                if self.is_real(form) and not self._is_noisy(form):
                    total += self._opened(form) * weight
            self._sums[key] = total + self._steady(noise, noisy) if noisy else total
        return self._sums[key]

    def _is_noisy(self, form: Form) -> bool:
        reals = [self.bits.reals[atom] for atom in form.terms if atom in self.bits.reals]
        return bool(reals) and all(real.noise for real in reals)

    def _opened(self, form: Form) -> Form:
        """relu(form), of a form with real numbers: case by case of the bits that are larger than all the rest, the gates."""
        low, high = self.span(form)
        if high <= 0:
            return NOTHING
        if low >= 0:
            return form
        gates = self._gates(form)
        if len(gates) > FEW:
            return self.bits.real(Real("what a ReLU makes of many gates", ZERO, self.span(form)[1]))
        if not gates:
            return self._positive(form)
        total = NOTHING
        for setting in settings(gates):
            value = form.constant + sum((form.terms[atom] for atom in gates if setting[atom]), ZERO)
            part = Form(value, {atom: c for atom, c in form.terms.items() if atom not in setting})
            low, high = self.span(part)
            if high > 0:
                opened = part if low >= 0 else self._positive(part)
                total += gated(self._setting(setting), opened, self.bits)
        return total

    def _gates(self, form: Form) -> list[int]:
        """The bits of a form that are each as large as all the rest together."""
        bits = (atom for atom in form.terms if atom not in self.bits.reals)
        ordered = sorted(bits, key=lambda atom: -abs(form.terms[atom]))
        for count in range(1, len(ordered) + 1):
            gates = ordered[:count]
            low, high = self.span(Form(ZERO, {atom: c for atom, c in form.terms.items() if atom not in gates}))
            if abs(form.terms[gates[-1]]) >= max(abs(low), abs(high)):
                return gates
        return []

    def _steady(self, noise: Form, units: list[tuple[Fraction, Form]]) -> Form:
        """Noise, and ReLUs of bits and noise: a number for each setting of the bits, and what is left of the noise."""
        reals = self.bits.reals
        gates = {atom: self.bits.form(self.bits.terms[atom]) for form in (noise, *(form for _, form in units))
                 for atom in form.terms if atom in reals}
        switches = sorted({atom for _, form in units for atom in form.terms if atom not in reals}
                          | {bit for gate in gates.values() for bit in gate.terms})
        if len(switches) > MANY:
            spans = [self.span(noise), *(self.span(form * weight) for weight, form in units)]
            return self.bits.real(Real("noise", sum((min(low, ZERO) for low, _ in spans), ZERO),
                                       sum((max(high, ZERO) for _, high in spans), ZERO)))
        total, low, high = NOTHING, ZERO, ZERO
        for setting in settings(switches):
            if len(switches) > 1 and not self.solver.possible(self._setting(setting)):
                continue
            made = Form(ZERO, {atom: c for atom, c in noise.terms.items() if gates[atom].value(setting) == 1})
            for weight, form in units:
                value, kept = form.constant, dict[int, Fraction]()
                for atom, factor in form.terms.items():
                    if atom not in reals:
                        value += factor * setting[atom]
                    elif gates[atom].value(setting) == 1:
                        kept[atom] = factor
                made += self._decided(Form(value, kept)) * weight
            left = self._open_span(Form(ZERO, made.terms))
            low, high = min(low, left[0]), max(high, left[1])
            if made.constant:
                total += gated(self._setting(setting), Form(made.constant), self.bits)
        if len(total.terms) > 1:
            total = self._settled(total)
        return total + self.bits.real(Real("noise", low, high, noise=True)) if low < high else total

    def _open_span(self, form: Form) -> Span:
        """The least and the greatest value where all its real numbers stand."""
        low = high = form.constant
        for atom, factor in form.terms.items():
            real = self.bits.reals[atom]
            ends = factor * real.low, factor * real.high
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _decided(self, form: Form) -> Form:
        """relu(form) of noise, where its bits are known and the noise stands."""
        span = self._open_span(form)
        if span[1] <= 0:
            return NOTHING
        return form if span[0] >= 0 else self._positive(form, span, noise=True)

    def _positive(self, form: Form, span: Span | None = None, *, noise: bool = False) -> Form:
        """relu(form) of real numbers, as a new one; relu(f) = relu(-f) + f, so that a form and its negative have one."""
        turned = -form
        if turned.key in self._parts:
            return form + self._parts[turned.key]
        if form.key not in self._parts:
            low, high = span or self.span(form)
            if -low < high:
                self._parts[turned.key] = self.bits.real(Real("a positive part", ZERO, -low, noise))
                return form + self._parts[turned.key]
            self._parts[form.key] = self.bits.real(Real("a positive part", ZERO, high, noise))
        return self._parts[form.key]
