"""Sums of ReLUs of forms with real numbers.

Bits are followed exactly, as in `relus`. A real number is followed exactly as long as it is moved, gated, added and
multiplied by weights. What a ReLU makes of real numbers is a new number, of which an interval is known. So a claim about
bits fails wherever it would depend on such a number.
"""

from __future__ import annotations

from fractions import Fraction

import z3

from punchcard.proof.forms import NOTHING, ONE, ZERO, Bits, Form, Real, Term, gated, settings, times
from punchcard.proof.relus import FEW, Relus
from punchcard.proof.solver import Solver
from punchcard.proof.steps import at_least, equal

Interval = tuple[Fraction, Fraction]
MANY = 8
"""Sums with noise are looked at on all settings of so many bits."""


class RealRelus(Relus):
    """Sums of ReLUs, over the bits and real numbers of one proof."""

    def __init__(self, bits: Bits, solver: Solver) -> None:
        super().__init__(bits, solver)
        self.at_most_zero: dict[object, Term] = {}
        """Whether a number that is an integer by promise is 0 or less, by its form."""
        self._integers: dict[object, Form] = {}
        self._sums: dict[object, Form] = {}
        self._parts: dict[object, Form] = {}
        self._products: dict[object, Form] = {}

    def is_real(self, form: Form) -> bool:
        """Whether a form is about more than bits."""
        return any(atom in self.bits.reals for atom in form.terms)

    def parts(self, form: Form) -> tuple[Form, Form]:
        """The bits of a form with its constant, and its real numbers."""
        reals = self.bits.reals
        return (Form(form.constant, {a: c for a, c in form.terms.items() if a not in reals}),
                Form(ZERO, {a: c for a, c in form.terms.items() if a in reals}))

    def span(self, form: Form) -> Interval:
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
        return self.solver.possible(self.setting(setting))

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

    def product(self, one: Form, other: Form) -> Form:
        """one * other; of real numbers, a new number between its least and greatest value."""
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

    def summed(self, old: Form, bias: Fraction, units: list[tuple[Fraction, Form]]) -> Form:
        """old + bias + sum of weight * relu(form), once for all columns in which it is the same."""
        if not self.bits.reals:
            return super().summed(old, bias, units)
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
            total = super().summed(bits, bias, [unit for unit in used if not self.is_real(unit[1])]) + (reals - noise)
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
                total += gated(self.setting(setting), opened, self.bits)
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
            if len(switches) > 1 and not self.solver.possible(self.setting(setting)):
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
                total += gated(self.setting(setting), Form(made.constant), self.bits)
        if len(total.terms) > 1:
            total = self._settled(total)
        return total + self.bits.real(Real("noise", low, high, noise=True)) if low < high else total

    def _open_span(self, form: Form) -> Interval:
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

    def _positive(self, form: Form, span: Interval | None = None, *, noise: bool = False) -> Form:
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
