"""abs, min and max for the calculator: each one instruction, and exact where its operands are far enough apart.

    min(a, b) = a - relu(a - b)           max(a, b) = a + relu(b - a)

Where a is the result, the relu is 0 and nothing is rounded. So the operand that is likely to be the result stands first;
which one that is depends on their ranges. Either order gives the right value.
"""

from __future__ import annotations

from fractions import Fraction

from punchcard.calculator.code import Code, Term
from punchcard.calculator.exact import Interval
from punchcard.calculator.functions import MAX, MIN
from punchcard.machines.fleq.functions import ABS


def absolute(code: Code, a: Term) -> Term:
    """|a|: relu(a) + relu(-a), of which one is 0."""
    low, high = abs(a.exact.low), abs(a.exact.high)
    exact = Interval(Fraction(0) if 0 in a.exact else min(low, high), max(low, high))
    return code.call(ABS, a, exact=exact, error=a.error + code.accuracy.error(ABS, a.magnitude))


def extreme(code: Code, kind: str, a: Term, b: Term) -> Term:
    """The less or the larger of two; its error is the larger of theirs, and rounding."""
    function, choose = (MIN, min) if kind == "min" else (MAX, max)
    middles = [term.exact.low + term.exact.high for term in (a, b)]
    if code.decide(lambda: choose(middles) == middles[1]):
        a, b = b, a
    exact = Interval(choose(a.exact.low, b.exact.low), choose(a.exact.high, b.exact.high))
    certain = a.most <= b.least if kind == "min" else a.least >= b.most
    magnitude = a.magnitude if certain else max(a.magnitude, b.magnitude)
    error = a.error if certain else max(a.error, b.error)
    return code.call(function, a, b, exact=exact, error=error + code.accuracy.error(function, magnitude))
