"""Numbers of a column as linear forms over bits, with exact coefficients.

Every number that a card of bits can hold, and every sum that a layer makes of such numbers, is

    constant + sum of coefficient * bit,            each bit 0 or 1, each coefficient a fraction.

A bit is a term of the solver. So sums and products by weights are exact, and nothing is assumed about the order in which
a library adds. In place of a bit there may be a real number within an interval, if a bit of the solver is true, else 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import gcd
from typing import Any, TypeAlias

import z3

from punchcard.machines.meaning import Entry

Term: TypeAlias = Any
"""A term of the solver: z3 has no types that say more."""

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, eq=False)
class Real:
    """An unknown real number from `low` to `high`.

    `noise` is one beside bits, such as the error of a flag: what is made of it is looked at case by case of the bits.
    """

    name: str
    low: Fraction
    high: Fraction
    noise: bool = False


class Bits:
    """The bits that forms are made of, by number. A negated bit is never one of its own."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.reals: dict[int, Real] = {}
        """Which of the numbers are reals; their term says where they stand, elsewhere they are 0."""
        self._real_numbers: dict[tuple[int, int], int] = {}
        self._numbers: dict[int, int] = {}
        self._places: dict[int, tuple[Term, int, bool]] = {}
        self._compared: dict[object, Term] = {}

    def compare(self, form: Form, term: Term) -> None:
        """Tell that a form is 0 or more where a term holds: it was proven elsewhere."""
        self._compared[(form * (1 / unit([form]))).key] = term

    def compared(self, form: Form) -> Term | None:
        """What is known of whether a form is 0 or more."""
        return self._compared.get((form * (1 / unit([form]))).key) if self._compared else None

    def form(self, term: Term) -> Form:
        """A Boolean term as a form: 1 where it holds, else 0."""
        term = z3.simplify(term)
        if z3.is_true(term) or z3.is_false(term):
            return Form(ONE if z3.is_true(term) else ZERO)
        if z3.is_not(term):
            return Form(ONE, {self._number(term.arg(0)): -ONE})
        return Form(ZERO, {self._number(term): ONE})

    def real(self, real: Real, where: Term | None = None) -> Form:
        """A real number where the condition holds, else 0."""
        where = z3.BoolVal(True) if where is None else z3.simplify(where)
        if z3.is_false(where):
            return NOTHING
        number = self._real_numbers.setdefault((id(real), where.get_id()), len(self.terms))
        if number == len(self.terms):
            self.terms.append(where)
            self.reals[number] = real
        return Form(ZERO, {number: ONE})

    def where(self, condition: Term, number: int) -> Form:
        """A bit or a real number of a form where a condition holds, else 0."""
        both = _both(z3.simplify(condition), self.terms[number])
        return self.real(self.reals[number], both) if number in self.reals else self.form(both)

    def of_word(self, word: Term) -> list[Form]:
        """The bits of a word, the lowest first, each as 0 or 1."""
        found = []
        for place in range(word.size()):
            bit = self.form(z3.Extract(place, place, word) == 1)
            for number in bit.terms:
                self._places.setdefault(number, (word, place, bit.constant == 0))
            found.append(bit)
        return found

    def word(self, bits: Sequence[Form]) -> Term:
        """Bits of 0 or 1, the lowest first, as a word: the very word that they were taken from, where there is one."""
        places = [self._places.get(next(iter(bit.terms), -1)) for bit in bits]
        first = places[0]
        if first is not None and first[0].size() == len(bits) and all(
                place is not None and place[0].eq(first[0]) and place[1] == i and place[2] == (bit.constant == 0)
                for i, (place, bit) in enumerate(zip(places, bits, strict=True))):
            return first[0]
        parts = [self._one(bit) for bit in reversed(bits)]
        return z3.simplify(parts[0] if len(parts) == 1 else z3.Concat(*parts))

    def _one(self, bit: Form) -> Term:
        if bit.is_constant:
            return z3.BitVecVal(int(bit.constant), 1)
        (number, coefficient), = bit.terms.items()
        return self.vector(number) if coefficient > 0 else ~self.vector(number)

    def literal(self, number: int, value: object) -> Term:
        """A bit, or its negation where the value is 0."""
        return self.terms[number] if value else z3.Not(self.terms[number])

    def setting(self, setting: Mapping[int, int]) -> Term:
        """Whether bits have these values."""
        return z3.And(*(self.literal(bit, value) for bit, value in setting.items()))

    def _number(self, term: Term) -> int:
        number = self._numbers.setdefault(term.get_id(), len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
        return number

    def vector(self, number: int) -> Term:
        """A bit as a word of one bit."""
        return z3.If(self.terms[number], z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


@dataclass(frozen=True)
class Form(Entry):
    """constant + sum of coefficient * bit; bits by their numbers, without coefficients of 0."""

    constant: Fraction = ZERO
    terms: Mapping[int, Fraction] = field(default_factory=dict)

    def __add__(self, other: Form) -> Form:
        if not other.terms:
            return self if not other.constant else Form(self.constant + other.constant, self.terms)
        found = dict(self.terms)
        for bit, coefficient in other.terms.items():
            total = found.get(bit, ZERO) + coefficient
            if total:
                found[bit] = total
            else:
                del found[bit]
        return Form(self.constant + other.constant, found)

    def __mul__(self, factor: Fraction) -> Form:
        if not factor:
            return NOTHING
        return Form(self.constant * factor, {bit: c * factor for bit, c in self.terms.items()})

    def __neg__(self) -> Form:
        return self * -ONE

    def __sub__(self, other: Form) -> Form:
        return self + -other

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer whatever its bits are."""
        return self.constant.denominator == 1 and all(c.denominator == 1 for c in self.terms.values())

    @cached_property
    def low(self) -> Fraction:
        """The least value, were all bits free."""
        return self.constant + sum((c for c in self.terms.values() if c < 0), ZERO)

    @cached_property
    def high(self) -> Fraction:
        """The greatest value, were all bits free."""
        return self.constant + sum((c for c in self.terms.values() if c > 0), ZERO)

    def value(self, bits: Mapping[int, int]) -> Fraction:
        """Its value for given bits."""
        return self.constant + sum((c for bit, c in self.terms.items() if bits[bit]), ZERO)

    def given(self, bits: Mapping[int, int]) -> Form:
        """What it is where some of its bits are these."""
        constant = self.constant + sum((self.terms[bit] for bit, value in bits.items() if value), ZERO)
        return Form(constant, {bit: c for bit, c in self.terms.items() if bit not in bits})

    @property
    def key(self) -> tuple[Fraction, frozenset[tuple[int, Fraction]]]:
        """Equal for equal forms."""
        return self.constant, frozenset(self.terms.items())


NOTHING = Form()


def _both(one: Term, other: Term) -> Term:
    """Both of two terms, in one form whichever comes first."""
    parts = [part for term in (one, other) for part in (term.children() if z3.is_and(term) else [term])]
    return z3.And(*sorted(parts, key=lambda part: int(part.get_id())))


def number(value: Fraction | float | int) -> Form:
    """A constant."""
    return Form(Fraction(value))


def signed(bit: Form) -> Form:
    """A bit of 0 or 1 as -1 or 1."""
    return bit * Fraction(2) + Form(-ONE)


def weighted(weights: Iterable[tuple[int, Fraction]], rows: Sequence[Form]) -> Form:
    """A row of a matrix times a column."""
    constant, found = ZERO, dict[int, Fraction]()
    for place, weight in weights:
        form = rows[place]
        constant += form.constant * weight
        for bit, coefficient in form.terms.items():
            found[bit] = found.get(bit, ZERO) + coefficient * weight
    return Form(constant, {bit: c for bit, c in found.items() if c})


def settings(bits: list[int]) -> Iterator[dict[int, int]]:
    for values in product((0, 1), repeat=len(bits)):
        yield dict(zip(bits, values, strict=True))


def times(one: Form, other: Form, bits: Bits) -> Form:
    """The product of two forms. Two signs make one, which keeps scores of codes small."""
    if one.is_constant:
        return other * one.constant
    if other.is_constant:
        return one * other.constant
    if _is_sign(one) and _is_sign(other):
        (a, ca), (b, cb) = next(iter(one.terms.items())), next(iter(other.terms.items()))
        if a == b:
            return Form(ca * cb / 4)
        return signed(bits.form(bits.terms[a] == bits.terms[b])) * (ca * cb / 4)
    total = other * one.constant
    for bit, coefficient in one.terms.items():
        total += gated(bits.terms[bit], other, bits) * coefficient
    return total


def _is_sign(form: Form) -> bool:
    """Whether it is c or -c, by one bit."""
    return len(form.terms) == 1 and next(iter(form.terms.values())) == -2 * form.constant


def gated(condition: Term, form: Form, bits: Bits) -> Form:
    """The form where the condition holds, else 0."""
    total = bits.form(condition) * form.constant
    for bit, coefficient in form.terms.items():
        total += bits.where(condition, bit) * coefficient
    return total


def choose(condition: Term, yes: Form, no: Form, bits: Bits) -> Form:
    """One form or the other."""
    condition = z3.simplify(condition)
    if z3.is_true(condition) or yes.key == no.key:
        return yes
    if z3.is_false(condition):
        return no
    if len(yes.terms) == len(no.terms) == 1 and yes.constant == no.constant:
        (a, ca), (b, cb) = next(iter(yes.terms.items())), next(iter(no.terms.items()))
        if ca == cb and a not in bits.reals and b not in bits.reals:
            return Form(yes.constant) + bits.form(z3.If(condition, bits.terms[a], bits.terms[b])) * ca
    return no + gated(condition, yes - no, bits)


def unit(forms: Iterable[Form]) -> Fraction:
    """The greatest number that divides all coefficients and constants; 1 where there are none."""
    top, bottom = 0, 1
    for form in forms:
        for value in (form.constant, *form.terms.values()):
            if value:
                top, bottom = gcd(top * value.denominator, value.numerator * bottom), bottom * value.denominator
                common = gcd(top, bottom)
                top, bottom = top // common, bottom // common
    return Fraction(top, bottom) if top else ONE


def width(low: Fraction, high: Fraction, scale: Fraction) -> int:
    """How many bits a word needs for all multiples of the unit from low to high, with a sign."""
    most = max(abs(int(low / scale)), abs(int(high / scale)), 1)
    return most.bit_length() + 2


def vector(form: Form, scale: Fraction, size: int, bits: Bits) -> Term:
    """The form as a word in units of `scale`, in two's complement.

    Bits with weights 2^k of one odd factor are one word: the sum of bits is then one addition of words.
    """
    total = z3.BitVecVal(int(form.constant / scale), size)
    groups: dict[int, list[dict[int, int]]] = {}
    for bit, coefficient in form.terms.items():
        units = coefficient / scale
        assert units.denominator == 1
        value = units.numerator
        place = (value & -value).bit_length() - 1
        words = groups.setdefault(value >> place, [])
        for word in words:
            if place not in word:
                word[place] = bit
                break
        else:
            words.append({place: bit})
    for factor, words in sorted(groups.items()):
        for word in words:
            joined = _joined(word, size, bits)
            total = total + joined if factor == 1 else total - joined if factor == -1 else total + factor * joined
    return total


def _joined(word: Mapping[int, int], size: int, bits: Bits) -> Term:
    """Bits at their places, as one word."""
    top = max(word)
    if top >= size:
        raise ValueError("a word is too short for its bits")
    parts = [bits.vector(word[place]) if place in word else z3.BitVecVal(0, 1) for place in range(top, -1, -1)]
    joined = parts[0] if len(parts) == 1 else z3.Concat(*parts)
    return z3.simplify(z3.ZeroExt(size - top - 1, joined)) if size > top + 1 else z3.simplify(joined)
