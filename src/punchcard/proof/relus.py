"""Sums of ReLUs of linear forms over bits and real numbers, as forms again.

Of bits, steps become conditions (see `steps`), functions of few bits become tables, and all else a word for the solver.

A real number is followed exactly as long as it is moved, gated, added and multiplied by weights. What a ReLU makes of real
numbers is a new number, of which an interval is known. So a claim about bits fails wherever it would depend on one.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import z3

from punchcard.proof.forms import NOTHING, ONE, ZERO, Bits, Form, Real, Term, gated, settings, times, unit, vector, width
from punchcard.proof.solver import Solver
from punchcard.proof.steps import GatedStep, at_least, equal, gated_steps, jumps_of, merged_steps

Interval = tuple[Fraction, Fraction]
FEW = 6
"""Functions of so many bits are tried on all their settings; others are words for the solver."""
MANY = 8
"""Sums with noise are looked at on all settings of so many bits."""


class Relus:
    """Sums of ReLUs, over the bits and real numbers of one proof."""

    def __init__(self, bits: Bits, solver: Solver) -> None:
        self.bits, self.solver = bits, solver
        self.at_most_zero: dict[object, Term] = {}
        """Whether a number that is an integer by promise is 0 or less, by its form."""
        self._integers: dict[object, Form] = {}
        self._sums: dict[object, Form] = {}
        self._parts: dict[object, Form] = {}
        self._products: dict[object, Form] = {}

    def is_integer(self, form: Form) -> Term:
        if form.is_integer:
            return z3.BoolVal(True)
        scale = unit([form, Form(ONE)])
        word = vector(form, scale, width(form.low, form.high, scale), self.bits)
        return z3.SRem(word, z3.BitVecVal(int(1 / scale), word.size())) == 0

    def between(self, form: Form, low: Fraction, high: Fraction) -> Term:
        """low <= form <= high."""
        return z3.And(at_least(form, low, self.bits), at_least(-form, -high, self.bits))

    def summed(self, old: Form, bias: Fraction, units: list[tuple[Fraction, Form]]) -> Form:
        """old + bias + sum of weight * relu(form), once for all columns in which it is the same."""
        if not self.bits.reals:
            return self._summed_bits(old, bias, units)
        key = old.key, bias, tuple((weight, form.key) for weight, form in units)
        if key not in self._sums:
            total, used = _folded(old, units)
            bits, reals = self.parts(total)
            noisy = [unit for unit in used if self._is_noisy(unit[1])]
            noise = Form(ZERO, {atom: c for atom, c in reals.terms.items() if noisy and self.bits.reals[atom].noise})
            total = self._summed_bits(bits, bias, [unit for unit in used if not self.is_real(unit[1])]) + (reals - noise)
            for weight, form in used:
                if self.is_real(form) and not self._is_noisy(form):
                    total += self._opened(form) * weight
            self._sums[key] = total + self._steady(noise, noisy) if noisy else total
        return self._sums[key]

    def _summed_bits(self, old: Form, bias: Fraction, units: list[tuple[Fraction, Form]]) -> Form:
        """The same of bits alone."""
        total = old + Form(bias)
        for weight, form in units:
            if form.low >= 0:
                total += form * weight
        total, used = _folded(total, [(weight, form) for weight, form in units if form.low < 0 < form.high])
        start, steps, left = self._steps(used)
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
            return self._word(total, [])
        values = dict[Fraction, list[dict[int, int]]]()
        for each in settings(used):
            values.setdefault(total.value(each), []).append(each)
        terms = {value: z3.Or(*(self.bits.setting(each) for each in some)) for value, some in values.items()}
        possible = [value for value in sorted(values) if self.solver.possible(terms[value])]
        found = Form(possible[0])
        for low, high in pairwise(possible):
            reached = z3.Or(*(terms[value] for value in possible if value >= high))
            found += self.named_bit(reached) * (high - low)
        return found

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
        return self.bits.literal(bit, factor > 0)

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
            inside = form.given(literals)
            if literals and inside.low >= 0 and inside.high > 1:
                total += gated(self.bits.setting(literals), inside, self.bits) * weight
            else:
                left.append((weight, form))
        return total, left

    def _table(self, used: list[int], values: list[Fraction]) -> Form:
        """A function of few bits, by its values."""
        slopes = {bit: values[1 << (len(used) - 1 - place)] - values[0] for place, bit in enumerate(used)}
        linear = Form(values[0], {bit: slope for bit, slope in slopes.items() if slope})
        if all(linear.value(each) == value for each, value in zip(settings(used), values, strict=True)):
            return linear
        steps = sorted(set(values))
        found = Form(steps[0])
        for low, high in pairwise(steps):
            terms = [self.bits.setting(each)
                     for each, reached in zip(settings(used), values, strict=True) if reached >= high]
            found += self.bits.form(z3.Or(*terms)) * (high - low)
        return found

    def _word(self, total: Form, units: list[tuple[Fraction, Form]]) -> Form:
        """A sum with ReLUs of many bits, as a word for the solver; it is one of two numbers, or any."""
        scale = unit([total, Form(ONE), *(Form(unit([form]) * weight) for weight, form in units)])
        low = total.low + sum((min(w * f.high, ZERO) for w, f in units), ZERO)
        high = total.high + sum((max(w * f.high, ZERO) for w, f in units), ZERO)
        size = max([width(low, high, scale), *(width(f.low, f.high, unit([f])) for _, f in units)])
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

    # Real numbers

    def is_real(self, form: Form) -> bool:
        """Whether a form is about more than bits."""
        return any(atom in self.bits.reals for atom in form.terms)

    def parts(self, form: Form) -> tuple[Form, Form]:
        """The bits of a form with its constant, and its real numbers."""
        reals = self.bits.reals
        return (Form(form.constant, {a: c for a, c in form.terms.items() if a not in reals}),
                Form(ZERO, {a: c for a, c in form.terms.items() if a in reals}))

    def span(self, form: Form, *, stand: bool = False) -> Interval:
        """The least and the greatest value, were all bits and real numbers free, or where all real numbers `stand`."""
        low = high = form.constant
        for atom, factor in form.terms.items():
            real = self.bits.reals.get(atom)
            if real is None:
                least, most = ZERO, ONE
            elif stand or z3.is_true(self.bits.terms[atom]):
                least, most = real.low, real.high
            else:
                least, most = min(real.low, ZERO), max(real.high, ZERO)
            low, high = low + min(factor * least, factor * most), high + max(factor * least, factor * most)
        return low, high

    def same(self, found: Form, wanted: Form) -> list[Term]:
        """Two forms are equal, whatever the real numbers are: what must hold of the bits."""
        bits, reals = self.parts(found - wanted)
        gates: dict[Real, Form] = {}
        for atom, factor in reals.terms.items():
            real = self.bits.reals[atom]
            gates[real] = gates.get(real, NOTHING) + self.bits.form(self.bits.terms[atom]) * factor
        return [equal(form, self.bits) for form in (bits, *gates.values()) if form.terms or form.constant]

    def product(self, one: Form, other: Form) -> Form:
        """one * other; of real numbers, a new number between its least and greatest value."""
        if one.is_constant or other.is_constant or not (self.is_real(one) or self.is_real(other)):
            return times(one, other, self.bits)
        key = frozenset((one.key, other.key))
        if key not in self._products:
            ends = [a * b for a in self.span(one) for b in self.span(other)]
            self._products[key] = self.bits.real(Real("a product", min(ends), max(ends)))
        return self._products[key]

    def as_integer(self, shifted: Form, tolerance: Fraction, limit: Fraction, shift: Fraction) -> Form:
        """A number that is an integer by promise: at most 0, or at least 1, up to the tolerance; and what is added to it."""
        form = shifted - Form(shift)
        if form.key not in self._integers:
            bits, reals = self.parts(form)
            condition = z3.FreshBool("at most 0")
            stands = z3.Or(*(self.bits.terms[atom] for atom in reals.terms))
            self.solver.suppose(z3.Or(stands, condition == at_least(-bits, ZERO, self.bits)))
            self.at_most_zero[form.key] = condition
            below = Real("an integer of at most 0", -limit, tolerance, noise=True)
            above = Real("an integer of at least 1", 1 - tolerance, limit, noise=True)
            self._integers[form.key] = self.bits.real(below, condition) + self.bits.real(above, z3.Not(condition))
        return self._integers[form.key] + Form(shift)

    def _is_noisy(self, form: Form) -> bool:
        reals = [self.bits.reals[atom] for atom in form.terms if atom in self.bits.reals]
        return bool(reals) and all(real.noise for real in reals)

    def _opened(self, form: Form) -> Form:
        """relu(form), of a form with real numbers: case by case of the bits that are larger than all the rest, the gates."""
        low, high = self.span(form)
        gates = self._gates(form) if low < 0 < high else []
        if not gates:
            return self._positive(form)
        if len(gates) > FEW:
            return self.bits.real(Real("what a ReLU makes of many gates", ZERO, high))
        total = NOTHING
        for setting in settings(gates):
            opened = self._positive(form.given(setting))
            if opened.terms or opened.constant:
                total += gated(self.bits.setting(setting), opened, self.bits)
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
            if len(switches) > 1 and not self.solver.possible(self.bits.setting(setting)):
                continue
            made = Form(ZERO, {atom: c for atom, c in noise.terms.items() if gates[atom].value(setting) == 1})
            for weight, form in units:
                value, kept = form.constant, dict[int, Fraction]()
                for atom, factor in form.terms.items():
                    if atom not in reals:
                        value += factor * setting[atom]
                    elif gates[atom].value(setting) == 1:
                        kept[atom] = factor
                made += self._positive(Form(value, kept), noise=True) * weight
            left = self.span(Form(ZERO, made.terms), stand=True)
            low, high = min(low, left[0]), max(high, left[1])
            if made.constant:
                total += gated(self.bits.setting(setting), Form(made.constant), self.bits)
        if len(total.terms) > 1:
            total = self._settled(total)
        return total + self.bits.real(Real("noise", low, high, noise=True)) if low < high else total

    def _positive(self, form: Form, *, noise: bool = False) -> Form:
        """relu(form) of real numbers, or of noise that stands: a new number, where it may be below 0 and above.

        relu(f) = relu(-f) + f and relu(c f) = c relu(f), so that a form, its negative and its multiples have one.
        """
        low, high = self.span(form, stand=noise)
        if low >= 0 or high <= 0:
            return form if low >= 0 else NOTHING
        scale = abs(form.terms[min(form.terms)])
        if scale != 1:
            return self._positive(form * (1 / scale), noise=noise) * scale
        turned = -form
        if turned.key in self._parts:
            return form + self._parts[turned.key]
        if form.key not in self._parts:
            if -low < high:
                self._parts[turned.key] = self.bits.real(Real("a positive part", ZERO, -low, noise))
                return form + self._parts[turned.key]
            self._parts[form.key] = self.bits.real(Real("a positive part", ZERO, high, noise))
        return self._parts[form.key]


def _folded(total: Form, units: list[tuple[Fraction, Form]]) -> tuple[Form, list[tuple[Fraction, Form]]]:
    """A form and ReLUs, each form once. relu(f) = relu(-f) + f: of a form and its negative, one is enough.

    So a row is cleared exactly.
    """
    left = dict[object, tuple[Fraction, Form]]()
    for weight, form in units:
        if (-form).key in left:
            total, form = total + form * weight, -form
        before = left.get(form.key, (ZERO, form))[0]
        left[form.key] = before + weight, form
    return total, [(weight, form) for weight, form in left.values() if weight]
