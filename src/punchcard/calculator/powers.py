"""Powers for the calculator.

    x^n            n whole: squares and products, from the exponent's leading bit on; a negative power is an inverse
    x^(n + 1/2)    a whole power of sqrt x
    x^y            exp(y log x), for x > 0

The first is exact but for the products' errors, so it is taken where it can be, up to exponents of 64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from punchcard.calculator import exact
from punchcard.calculator.code import Code, Term
from punchcard.calculator.exact import Interval
from punchcard.calculator.roots import inverse, root
from punchcard.calculator.syntax import MOST_EXPONENT
from punchcard.errors import ProgramError

Unary = Callable[[Term, str], Term]


def is_text(interval: Interval) -> str:
    """What a value is, or may be, for messages."""
    return f"is {interval}" if interval.is_point else f"may be {interval}"


@dataclass(frozen=True)
class Powers:
    """Emits powers. `log` and `exp` are the compiler's own, which check domains and fold constants; so is `product`."""

    code: Code
    log: Unary
    exp: Unary
    product: Callable[[Term, Term], Term]

    def raised(self, a: Term, b: Term, a_text: str, b_text: str) -> Term:
        """a^b."""
        return self.to_number(a, b.exact.low, a_text) if b.is_constant else self._by_logarithm(a, b, a_text, b_text)

    def to_number(self, a: Term, exponent: Fraction, text: str) -> Term:
        """a^exponent, for a number that the program knows."""
        twice = 2 * exponent
        if twice.denominator != 1 or abs(exponent) > MOST_EXPONENT:
            return self._by_logarithm(a, self.code.constant(exponent), text, str(Interval.point(exponent)))
        if exponent.denominator == 1:
            return self.whole(a, int(exponent), text)
        if a.exact.low < 0:
            raise ProgramError(f"square root of a negative number, {text} {is_text(a.exact)}")
        half = self.code.constant(exact.sqrt(a.exact.low)) if a.is_constant else root(self.code, a)
        return self.whole(half, int(twice), text)

    def _by_logarithm(self, a: Term, b: Term, a_text: str, b_text: str) -> Term:
        """exp(b log a)."""
        if a.exact.low <= 0:
            raise ProgramError(f"the power {b_text} of a number that is not positive, {a_text} {is_text(a.exact)}: its "
                               "exponent must be a whole number from -64 to 64 that the expression names")
        natural = a.is_constant and a.exact.low == exact.e()
        return self.exp(b if natural else self.product(self.log(a, a_text), b), f"{b_text} * log({a_text})")

    def whole(self, a: Term, exponent: int, text: str) -> Term:
        """Squares and products, from the exponent's leading bit on."""
        if exponent == 0:
            self.code.drop(a)
            return self.code.constant(Fraction(1))
        if exponent < 0 and 0 in a.exact:
            raise ProgramError(f"division by zero, {text} {is_text(a.exact)}")
        if a.is_constant:
            return self.code.constant(a.exact.low**exponent)
        result, reached = a, 1
        for bit in bin(abs(exponent))[3:]:
            result, reached = self.code.product(result, result, a.exact.power(2 * reached), keep=(a,)), 2 * reached
            if bit == "1":
                result, reached = self.code.product(result, a, a.exact.power(reached + 1), keep=(a,)), reached + 1
        if result is not a:
            self.code.drop(a)
        return inverse(self.code, result) if exponent < 0 else result
