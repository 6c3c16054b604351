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
from punchcard.proof.layers import FEW, HeadWeights, Layer, Loop, at_least, equal
from punchcard.proof.real_columns import RealColumns
from punchcard.proof.solver import Solver
from punchcard.transformer.weights import Weights

Span = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Group:
    """Columns with one score: they share what a head gives. `when` the number that names them is that of a column."""

    columns: tuple[Column, ...]
    when: Term
    score: Form


class RealLoop(Loop):
    """One loop of a model with real numbers on its card."""

    columns: RealColumns

    def __init__(self, weights: Weights, layout: Layout, solver: Solver) -> None:
        self.bits, self.solver, self.layout = Bits(), solver, layout
        self.columns = RealColumns(layout, self.bits, solver)
        self.layers = [Layer(arrays, weights.dtype) for arrays in weights.layers]
        self.shares = [[1] * len(layer.heads) for layer in self.layers]
        self.finds: dict[tuple[int, int], dict[str, list[str]]] = {}
        self.soft: dict[tuple[int, int], set[str]] = {}
        """For each layer and head: the regions whose columns may take a mean that is not known exactly."""
        self.whole: dict[tuple[int, str], tuple[Fraction, Fraction]] = {}
        """Rows that hold an integer in a region when a layer's heads are done, by promise: its tolerance and its limit."""
        self.at_most_zero: dict[object, Term] = {}
        """Whether such a number is 0 or less, by its form."""
        self.others: dict[str, Column] = {}
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
        own = "" if self.columns.is_listed(column.region) else column.name
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
        hull = [each for group in merged for each in group.columns] + [self.others[region] for region in far]
        taken = [NOTHING] * self.layout.width
        for place, row in enumerate(weights.value):
            if row:
                total = NOTHING
                for group, condition in wins:
                    total += gated(condition, self._mean(number, row, group), self.bits)
                if unsure:
                    total += self._between(number, place, row, hull, rest)
                taken[place] = total
        return taken

    def _merged(self, groups: list[Group]) -> list[Group]:
        """Groups with the same score are one."""
        found: dict[object, Group] = {}
        for group in groups:
            key = (group.score.key, group.when.get_id() if not z3.is_true(group.when) else 0)
            if not z3.is_true(group.when) and key in found:
                key = (*key, len(found))
            before = found.get(key)
            found[key] = group if before is None else Group((*before.columns, *group.columns), group.when, group.score)
        return list(found.values())

    def _mean(self, number: int, row: list[tuple[int, Fraction]], group: Group) -> Form:
        total = NOTHING
        for column in group.columns:
            total += weighted(row, self.after(column, number))
        return total * Fraction(1, len(group.columns))

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
        for region in self.layout.regions:
            if self.columns.is_listed(region.name):
                for each in self.columns.pool(region.name):
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
        found = self._keys.get((number, head, column.name))
        if found is None:
            rows = self.after(column, number)
            forms = ((place, weighted(row, rows)) for place, row in enumerate(weights.key) if row)
            found = {place: form for place, form in forms if form.terms or form.constant}
            self._keys[number, head, column.name] = found
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

    def feed(self, number: int, rows: list[Form], region: str) -> list[Form]:
        """The rows after the ReLUs of a layer, from those before."""
        kept = [self._as_whole(form, *self.whole[place, region]) if (place, region) in self.whole and self.is_real(form)
                else form for place, form in enumerate(rows)]
        return self._feed_forward(number, kept)

    def after(self, column: Column, layer: int) -> list[Form]:
        if layer == 0:
            return column.rows
        while len(column.later) < layer:
            number = len(column.later)
            column.later.append(self.feed(number, self.attended(column, number), column.region))
        return column.later[layer - 1]

    def _as_whole(self, form: Form, tolerance: Fraction, limit: Fraction) -> Form:
        """A number that is an integer by promise: at most 0, or at least 1, up to the tolerance."""
        if form.key not in self._wholes:
            bits, reals = self.parts(form)
            condition = z3.Bool(f"number {len(self._wholes)} is at most 0")
            stands = z3.Or(*(self.bits.terms[atom] for atom in reals.terms))
            self.solver.suppose(z3.Or(stands, condition == at_least(-bits, ZERO, self.bits)))
            self.at_most_zero[form.key] = condition
            below = Real("an integer of at most 0", -limit, tolerance, cases=True)
            above = Real("an integer of at least 1", 1 - tolerance, limit, cases=True)
            self._wholes[form.key] = self.bits.real(below, condition) + self.bits.real(above, z3.Not(condition))
        return self._wholes[form.key]

    def _summed(self, old: Form, bias: Fraction, units: list[tuple[Fraction, Form]]) -> Form:
        key = old.key, bias, tuple((weight, form.key) for weight, form in units)
        if key not in self._sums:
            bits, reals = self.parts(old)
            plain = [(weight, form) for weight, form in units if not self.is_real(form)]
            total = super()._summed(bits, bias, plain) + reals
            for weight, form in units:
                if self.is_real(form):
                    total += self._opened(form) * weight
            self._sums[key] = total
        return self._sums[key]

    def _opened(self, form: Form) -> Form:
        """relu(form), of a form with real numbers: case by case of the bits that decide whether it is open."""
        low, high = self.span(form)
        if high <= 0:
            return NOTHING
        if low >= 0:
            return form
        reals = self.bits.reals
        cases = {atom: self.bits.form(self.bits.terms[atom]) for atom in form.terms if atom in reals and reals[atom].cases}
        switches = sorted({atom for atom in form.terms if atom not in reals} | {bit for gate in cases.values() for bit in gate.terms})
        if not switches:
            return self._positive(form)
        if len(switches) > FEW:
            return self.bits.real(Real("what a ReLU makes of many bits", ZERO, high))
        opened = []
        for setting in settings(switches):
            value, kept = form.constant, dict[int, Fraction]()
            for atom, factor in form.terms.items():
                if atom not in reals:
                    value += factor * setting[atom]
                elif atom not in cases or cases[atom].value(setting) == 1:
                    kept[atom] = factor
            opened.append((setting, self._decided(Form(value, kept), set(cases))))
        if all(part.key == opened[0][1].key for _, part in opened[1:]):
            return opened[0][1]
        total = NOTHING
        for setting, part in opened:
            if part.terms or part.constant:
                total += gated(self._setting(setting), part, self.bits)
        return total

    def _decided(self, form: Form, active: set[int]) -> Form:
        """relu(form) where its bits are known, and the numbers that go by cases stand there."""
        low = high = form.constant
        for atom, factor in form.terms.items():
            if atom in active:
                real = self.bits.reals[atom]
                span = factor * real.low, factor * real.high
            else:
                span = self.span(Form(ZERO, {atom: factor}))
            low, high = low + min(span), high + max(span)
        if high <= 0:
            return NOTHING
        return form if low >= 0 else self._positive(form, (low, high))

    def _positive(self, form: Form, span: Span | None = None) -> Form:
        """relu(form) of real numbers, as a new one; relu(f) = relu(-f) + f, so that a form and its negative have one."""
        turned = -form
        if turned.key in self._parts:
            return form + self._parts[turned.key]
        if form.key not in self._parts:
            low, high = span or self.span(form)
            if -low < high:
                self._parts[turned.key] = self.bits.real(Real("a positive part", ZERO, -low))
                return form + self._parts[turned.key]
            self._parts[form.key] = self.bits.real(Real("a positive part", ZERO, high))
        return self._parts[form.key]
