"""What each operation of an expression becomes: constants fold, and the rest is written with its error.

    x^n            n whole: squares and products, from the exponent's leading bit on; a negative power is an inverse
    x^(n + 1/2)    a whole power of sqrt x
    x^y            exp(y log x), for x > 0
    min(a, b)      a - relu(a - b), and max(a, b) = a + relu(b - a), in one instruction

The first is exact but for the products' errors, so it is taken where it can be, up to exponents of 64. Where a is the
less or the larger one, the relu is 0 and nothing is rounded: so the operand that is likely to be the result is the
first. Which one that is depends on their ranges; either order gives the right value.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from punchcard.calculator import exact
from punchcard.calculator.code import ScaledCode, ScaledTerm
from punchcard.calculator.exact import Exact
from punchcard.calculator.expression import MOST_EXPONENT
from punchcard.calculator.functions import CHOICES, DOMAINS, banded
from punchcard.calculator.roots import inverse, root
from punchcard.errors import ProgramError
from punchcard.machines.fleq.functions import ABS
from punchcard.python.intervals import Interval


def cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _is(interval: Exact) -> str:
    """What a value is, or may be, for messages."""
    return f"{'is' if interval.is_point else 'may be'} {exact.text(interval)}"


@dataclass(frozen=True)
class Operations:
    """Writes operations on terms; `texts` are those of the operands, for messages."""

    code: ScaledCode

    def apply(self, function: str, terms: list[ScaledTerm], texts: list[str], *, quotient: bool = False) -> ScaledTerm:
        """An operation of the array front end; `quotient`: a product that divides, its second factor is 1/x."""
        if function == "scale" and quotient:
            one = self.code.decide(lambda: terms[0].exact == Interval.point(Fraction(1)) and terms[0].error == 0)
            return terms[1] if one else self.code.product(*terms)
        binary = {"add": self.code.add, "sub": self.code.sub, "scale": self.code.product}
        if function in binary:
            return binary[function](*terms)
        if function in CHOICES:
            return self.choice(function, *terms)
        if function in DOMAINS:
            return self.fitted(function, terms[0], texts[-1])
        if function == "power":
            return self.power(terms[0], terms[1], texts[0], texts[1])
        if function == "abs":
            return self.absolute(terms[0])
        return (self.inverse if function == "inverse" else self.sqrt)(terms[0], texts[-1])

    def inverse(self, a: ScaledTerm, text: str) -> ScaledTerm:
        if 0 in a.exact:
            raise ProgramError(f"division by zero, {cut(text)} {_is(a.exact)}")
        return self.code.constant(1 / a.exact.low) if a.is_constant else inverse(self.code, a)

    def sqrt(self, a: ScaledTerm, text: str) -> ScaledTerm:
        if a.exact.low < 0:
            raise ProgramError(f"square root of a negative number, {cut(text)} {_is(a.exact)}")
        return self.code.constant(exact.sqrt(a.exact.low)) if a.is_constant else root(self.code, a)

    def fitted(self, name: str, a: ScaledTerm, text: str) -> ScaledTerm:
        domain = DOMAINS[name]
        if domain.logarithmic and a.exact.low <= 0:
            raise ProgramError(f"{name} of a number that is not positive, {cut(text)} {_is(a.exact)}")
        if not (a.exact.low >= domain.low and a.exact.high <= domain.high):
            raise ProgramError(f"{cut(text)} {_is(a.exact)}, outside the range of {name}, {domain.low:g} to "
                               f"{domain.high:g}")
        values = exact.image(name, a.exact)
        if a.is_constant:
            return self.code.constant(values.low)
        if domain.logarithmic and a.least <= 0:
            raise ProgramError(f"{name} of {exact.text(a.exact)}, which cannot be told from 0: its error may be "
                               f"{a.error:.1e}")
        function = self.code.decide(lambda: banded(name, a.least, a.most))
        error = self.code.error(function, float(values.magnitude)) + domain.slope(a.least, a.most) * a.error
        return self.code.call(function, a, exact=values, error=error)

    # abs, min and max

    def absolute(self, a: ScaledTerm) -> ScaledTerm:
        """|a|: relu(a) + relu(-a), of which one is 0."""
        if a.is_constant:
            return self.code.constant(abs(a.exact.low))
        return self.code.call(ABS, a, exact=abs(a.exact), error=a.error + self.code.blocks.error(ABS, a.magnitude))

    def choice(self, name: str, a: ScaledTerm, b: ScaledTerm) -> ScaledTerm:
        """The less or the larger of two; its error is the larger of theirs, and rounding."""
        choose = min if name == "min" else max
        if a.is_constant and b.is_constant:
            return self.code.constant(choose(a.exact.low, b.exact.low))
        middles = [term.exact.low + term.exact.high for term in (a, b)]
        if self.code.decide(lambda: choose(middles) == middles[1]):
            a, b = b, a
        values = Interval(choose(a.exact.low, b.exact.low), choose(a.exact.high, b.exact.high))
        certain = a.most <= b.least if name == "min" else a.least >= b.most
        magnitude = a.magnitude if certain else max(a.magnitude, b.magnitude)
        error = a.error if certain else max(a.error, b.error)
        function = CHOICES[name]
        return self.code.call(function, a, b, exact=values, error=error + self.code.blocks.error(function, magnitude))

    # Powers

    def power(self, a: ScaledTerm, b: ScaledTerm, a_text: str, b_text: str) -> ScaledTerm:
        """a^b."""
        exponent = b.exact.low
        if not b.is_constant or (2 * exponent).denominator != 1 or abs(exponent) > MOST_EXPONENT:
            return self._by_logarithm(a, b, a_text, b_text)
        if exponent.denominator == 1:
            return self._whole_power(a, int(exponent), a_text)
        return self._whole_power(self.sqrt(a, a_text), int(2 * exponent), a_text)

    def _by_logarithm(self, a: ScaledTerm, b: ScaledTerm, a_text: str, b_text: str) -> ScaledTerm:
        """exp(b log a)."""
        a_text, b_text = cut(a_text), exact.text(b.exact) if b.is_constant else cut(b_text)
        if a.exact.low <= 0:
            raise ProgramError(f"the power {b_text} of a number that is not positive, {a_text} {_is(a.exact)}: its "
                               "exponent must be a whole number from -64 to 64 that the expression names")
        natural = a.is_constant and a.exact.low == exact.E
        return self.fitted("exp", b if natural else self.code.product(self.fitted("log", a, a_text), b),
                           f"{b_text} * log({a_text})")

    def _whole_power(self, a: ScaledTerm, exponent: int, text: str) -> ScaledTerm:
        """Squares and products, from the exponent's leading bit on."""
        if exponent == 0:
            return self.code.constant(Fraction(1))
        if exponent < 0 and 0 in a.exact:
            raise ProgramError(f"division by zero, {cut(text)} {_is(a.exact)}")
        if a.is_constant:
            return self.code.constant(a.exact.low**exponent)
        result, reached = a, 1
        for bit in bin(abs(exponent))[3:]:
            result, reached = self.code.soft_product(result, result, exact.power(a.exact, 2 * reached)), 2 * reached
            if bit == "1":
                result, reached = self.code.soft_product(result, a, exact.power(a.exact, reached + 1)), reached + 1
        return inverse(self.code, result) if exponent < 0 else result
