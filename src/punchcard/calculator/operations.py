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

import ast
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction

from punchcard.calculator import exact
from punchcard.calculator.code import ScaledCode, ScaledTerm
from punchcard.calculator.exact import Exact
from punchcard.calculator.expression import DATA, MOST_EXPONENT, ParsedExpression
from punchcard.calculator.functions import CHOICES, DOMAINS, banded
from punchcard.calculator.roots import inverse, root
from punchcard.errors import ProgramError
from punchcard.machines.fleq.functions import ABS
from punchcard.python.arrays.compiler import LoweredFunction
from punchcard.python.arrays.ir import Const, Moves, Op, Operand, Ref, Register
from punchcard.python.intervals import Interval


def cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _is(interval: Exact) -> str:
    """What a value is, or may be, for messages."""
    return f"{'is' if interval.is_point else 'may be'} {exact.text(interval)}"


class ExpressionScaling:
    """One walk over the operations of an expression, which writes them again with shifts, bands and errors."""

    def __init__(self, expression: ParsedExpression, lowered: LoweredFunction, values: Mapping[str, Fraction],
                 ranges: Mapping[str, Exact], code: ScaledCode) -> None:
        self.expression, self.lowered, self.values, self.ranges, self.code = expression, lowered, values, ranges, code
        self.terms: dict[Register, ScaledTerm] = {}

    def run(self) -> ScaledTerm:
        for name, register in self.lowered.parameters.items():
            self.terms[register] = self._parameter(name)
        for statement in self.lowered.code:
            if isinstance(statement, Op):
                self.code.line, operator = statement.line, self.expression.operators[statement.line.node]
                with self._placed(operator.start + 1, self.expression.of(statement.line.node)):
                    self.terms[statement.target] = self._apply(statement.function, list(map(self._term, statement.operands)),
                                                               self._texts(statement.line.node), operator.text)
        last = self.lowered.code[-1]
        assert isinstance(last, Moves)
        self.code.line, result = last.line, self._term(last.pairs[0][1])
        computed = isinstance(result.operand, Ref) and result.operand.register not in self.code.data
        return result if computed else self.code.copy(result)

    def _parameter(self, name: str) -> ScaledTerm:
        """A variable, or a number, which is data where there are no variables."""
        if name in self.expression.variables:
            token = self.expression.variables[name]
            value = self.values[token.text]
            with self._placed(token.start + 1, token.text):
                return self.code.variable(token.text, self.ranges.get(token.text, Interval.point(value)), value)
        value, token = self.expression.numbers[name]
        with self._placed(token.start + 1, token.text):
            term = self.code.constant(value)
        return term if self.expression.variables or not name.startswith(DATA) else self.code.datum(name, term)

    def _term(self, operand: Operand) -> ScaledTerm:
        if not isinstance(operand, Const):
            return self.terms[operand.register]
        value = float(operand.value[0, 0])  # of x - x, which is 0 before anything is scaled
        if not math.isfinite(value):
            raise ProgramError("division by zero, or the logarithm of zero")
        return self.code.constant(Fraction(value))

    def _texts(self, node: ast.AST) -> list[str]:
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Call):
            operands = node.args
        return [self.expression.of(operand) for operand in operands]

    @contextmanager
    def _placed(self, column: int, part: str) -> Iterator[None]:
        """Errors are those of a part of the expression."""
        try:
            yield
        except ProgramError as error:
            where = "" if part == self.expression.text.strip() else f"{cut(part)}: "
            raise self.expression.error(f"{where}{error}", column, part) from None

    def _apply(self, function: str, terms: list[ScaledTerm], texts: list[str], operator: str) -> ScaledTerm:
        """An operation of the array front end; `texts` are those of the operands, for messages."""
        code = self.code
        if function == "scale" and operator == "/":  # the second factor is 1/x
            one = code.decide(lambda: terms[0].exact == Interval.point(Fraction(1)) and terms[0].error == 0)
            return terms[1] if one else code.product(*terms)
        binary = {"add": code.add, "sub": code.sub, "scale": code.product}
        if function in binary:
            return binary[function](*terms)
        if function in CHOICES:
            return self._choice(function, *terms)
        if function in DOMAINS:
            return self._fitted(function, terms[0], texts[-1])
        if function == "power":
            return self._power(terms[0], terms[1], texts[0], texts[1])
        if function == "abs":
            return self._absolute(terms[0])
        return (self._inverse if function == "inverse" else self._sqrt)(terms[0], texts[-1])

    def _inverse(self, a: ScaledTerm, text: str) -> ScaledTerm:
        if 0 in a.exact:
            raise ProgramError(f"division by zero, {cut(text)} {_is(a.exact)}")
        return self.code.constant(1 / a.exact.low) if a.is_constant else inverse(self.code, a)

    def _sqrt(self, a: ScaledTerm, text: str) -> ScaledTerm:
        if a.exact.low < 0:
            raise ProgramError(f"square root of a negative number, {cut(text)} {_is(a.exact)}")
        return self.code.constant(exact.sqrt(a.exact.low)) if a.is_constant else root(self.code, a)

    def _fitted(self, name: str, a: ScaledTerm, text: str) -> ScaledTerm:
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
            raise ProgramError(f"{name} of {exact.text(a.exact)}, which cannot be distinguished from 0: its error may be "
                               f"{a.error:.1e}")
        function = self.code.decide(lambda: banded(name, a.least, a.most))
        error = self.code.error(function, float(values.magnitude)) + domain.slope(a.least, a.most) * a.error
        return self.code.call(function, a, exact=values, error=error)

    # abs, min and max

    def _absolute(self, a: ScaledTerm) -> ScaledTerm:
        """|a|: relu(a) + relu(-a), of which one is 0."""
        if a.is_constant:
            return self.code.constant(abs(a.exact.low))
        return self.code.call(ABS, a, exact=abs(a.exact), error=a.error + self.code.blocks.error(ABS, a.magnitude))

    def _choice(self, name: str, a: ScaledTerm, b: ScaledTerm) -> ScaledTerm:
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

    def _power(self, a: ScaledTerm, b: ScaledTerm, a_text: str, b_text: str) -> ScaledTerm:
        """a^b."""
        exponent = b.exact.low
        if not b.is_constant or (2 * exponent).denominator != 1 or abs(exponent) > MOST_EXPONENT:
            return self._by_logarithm(a, b, a_text, b_text)
        if exponent.denominator == 1:
            return self._integer_power(a, int(exponent), a_text)
        return self._integer_power(self._sqrt(a, a_text), int(2 * exponent), a_text)

    def _by_logarithm(self, a: ScaledTerm, b: ScaledTerm, a_text: str, b_text: str) -> ScaledTerm:
        """exp(b log a)."""
        a_text, b_text = cut(a_text), exact.text(b.exact) if b.is_constant else cut(b_text)
        if a.exact.low <= 0:
            raise ProgramError(f"the power {b_text} of a number that is not positive, {a_text} {_is(a.exact)}: its "
                               "exponent must be a whole number from -64 to 64 that the expression names")
        natural = a.is_constant and a.exact.low == exact.E
        return self._fitted("exp", b if natural else self.code.product(self._fitted("log", a, a_text), b),
                           f"{b_text} * log({a_text})")

    def _integer_power(self, a: ScaledTerm, exponent: int, text: str) -> ScaledTerm:
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
