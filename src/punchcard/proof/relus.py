"""Sums of ReLUs of linear forms over bits, as forms again.

Steps become conditions (see `steps`), functions of few bits become tables, and all else a word for the solver.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import z3

from punchcard.proof.forms import NOTHING, ONE, ZERO, Bits, Form, Term, gated, settings, unit, vector, width
from punchcard.proof.solver import Solver
from punchcard.proof.steps import GatedStep, at_least, gated_steps, jumps_of, merged_steps

FEW = 6
"""Functions of so many bits are tried on all their settings; others are words for the solver."""


class Relus:
    """Sums of ReLUs, over the bits of one proof."""

    def __init__(self, bits: Bits, solver: Solver) -> None:
        self.bits, self.solver = bits, solver

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

    def summed(self, old: Form, bias: Fraction, units: list[tuple[Fraction, Form]]) -> Form:
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
        conditions = merged_steps(steps, self.bits)
        for weight, condition in conditions:
            total += (self.named_bit(condition) if len(conditions) == 1 else self.bits.form(condition)) * weight
        if left:
            return self._closed(total, left)
        return self._settled(total) if conditions and len(total.terms) > 1 else total

    def _steps(self, units: list[tuple[Fraction, Form]]) -> tuple[Fraction, list[GatedStep], list[tuple[Fraction, Form]]]:
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
        total, found, left = ZERO, list[GatedStep](), []
        for group in groups.values():
            base = group[0][3]
            steps = jumps_of(base, [(weight, slope, bias) for weight, slope, bias, _ in group])
            if steps is None or len(base.terms) == 1:
                left += [(weight, base * slope + Form(bias)) for weight, slope, bias, _ in group]
            else:
                total += steps[0]
                found += gated_steps(base, steps[1], self.bits) if steps[1] else []
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
        terms = {value: z3.Or(*(self.setting(each) for each in some)) for value, some in values.items()}
        possible = [value for value in sorted(values) if self.solver.possible(terms[value])]
        found = Form(possible[0])
        for low, high in pairwise(possible):
            reached = z3.Or(*(terms[value] for value in possible if value >= high))
            found += self.named_bit(reached) * (high - low)
        return found

    def setting(self, setting: dict[int, int]) -> Term:
        """Whether bits have these values."""
        return z3.And(*(self.bits.terms[bit] if value else z3.Not(self.bits.terms[bit]) for bit, value in setting.items()))

    def named_bit(self, term: Term) -> Form:
        """A bit by a name of its own, so that what it stands for is worked out once."""
        term = z3.simplify(term)
        form = self.bits.form(term)
        if form.is_constant or z3.is_const(term):
            return form
        name = z3.FreshBool("bit")
        self.solver.suppose(name == term)
        return self.bits.form(name)

    def named(self, condition: Term) -> Term:
        """A condition by a name of its own."""
        form = self.named_bit(condition)
        if form.is_constant:
            return z3.BoolVal(form.constant == 1)
        (bit, factor), = form.terms.items()
        return self.bits.terms[bit] if factor > 0 else z3.Not(self.bits.terms[bit])

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
                total += gated(self.setting(literals), inside, self.bits) * weight
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
            terms = [self.setting(each)
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
                return Form(Fraction(low)) + self.named_bit(is_one_of(high)) * Fraction(high - low)
        if self.solver.holds(is_one_of(-1, 0, 1)):
            return self.named_bit(is_one_of(1)) - self.named_bit(is_one_of(-1))
        found = NOTHING
        for place, bit in enumerate(self.bits.of_word(word)):
            found += bit * (scale * (1 << place) * (-1 if place == size - 1 else 1))
        return found
