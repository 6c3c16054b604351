"""The calculator: an expression and the numbers of its variables become a straight-line FLEQ program, with its error bound.

The paper's sample program, for sqrt(1 / ((a + b - c) d)) / 100, is what comes out for its expression:

    t = add(a, b);  t = sub(t, c);  t = mul(t, d);  t = inverse(t);  t = sqrt(t);  t = percentage(t)

Parts that are numbers alone are folded, and dividing by a number is multiplying by its reciprocal. But in an
expression without variables every number is data, so that the machine has something to compute. The program depends on
the ranges of the variables, by default the numbers themselves, only in which shifts and which fitted functions it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from punchcard.calculator import exact
from punchcard.calculator.code import Accuracy, Code, Decisions, Term
from punchcard.calculator.exact import Interval
from punchcard.calculator.extremes import absolute, extreme
from punchcard.calculator.functions import FITTED, STANDARD, banded
from punchcard.calculator.powers import Powers, is_text
from punchcard.calculator.roots import inverse, root
from punchcard.calculator.syntax import CHOICES, CONSTANTS, FUNCTIONS, Item, parse, place_error
from punchcard.errors import ProgramError, SourceError, did_you_mean
from punchcard.machines.fleq.functions import Function
from punchcard.machines.fleq.isa import FleqProgram

RESERVED = ("halt", "if", "goto")


@dataclass(frozen=True)
class Compiled:
    """A program, the variable that holds its result, the exact value, and how far from it the result may be."""

    program: FleqProgram
    result: str
    exact: Fraction
    bound: float

    @property
    def extra_functions(self) -> tuple[Function, ...]:
        """The functions that the standard calculator machine has not."""
        standard = {function.name for function in STANDARD}
        return tuple(self.program.functions[name] for name in self.program.used_functions() if name not in standard)


def compile_expression(
    expression: str,
    values: Mapping[str, Fraction],
    accuracy: Accuracy,
    *,
    ranges: Mapping[str, Interval] | None = None,
    newton: int | None = None,
) -> Compiled:
    """Compile for the ranges of the variables; the bound is for the given values.

    `newton` is how many steps refine each 1/x and sqrt x; None means as many as their error needs.
    """
    items = [_known(item, values) for item in parse(expression)]
    ranges = ranges or {}
    _check_names(expression, items, values, ranges)
    decisions = Decisions()
    compilation = _Compilation(expression, items, values, ranges, Code(accuracy, decisions, values, newton))
    result = compilation.run()
    if ranges:
        decisions.replay = 0
        compilation = _Compilation(expression, items, values, {}, Code(accuracy, decisions, values, newton))
        result = compilation.run()
    program = compilation.code.program()
    return Compiled(program, compilation.code.place(result).name, result.exact.low, result.error)


def _known(item: Item, values: Mapping[str, Fraction]) -> Item:
    """pi and e are numbers, unless they are variables with values of their own."""
    if item.kind != "variable" or item.name not in CONSTANTS or item.name in values:
        return item
    return replace(item, kind="number", value=exact.pi() if item.name == "pi" else exact.e())


def _check_names(
    expression: str, items: list[Item], values: Mapping[str, Fraction], ranges: Mapping[str, Interval]
) -> None:
    """Every variable has a value, every value a variable, every range a value inside it."""
    variables = {item.name: item for item in items if item.kind == "variable"}
    for name, item in variables.items():
        if name in RESERVED:
            raise place_error(f"{name!r} is a word of FLEQ: name the variable otherwise", expression, item.column, name)
        if name not in values:
            near = did_you_mean(name, [*values, *FUNCTIONS, *CONSTANTS])
            raise place_error(f"variable {name!r} has no value{near}: give it one, {name}=NUMBER", expression, item.column,
                              name)
    for name in values:
        if name not in variables:
            has = f"it has {', '.join(variables)}" if variables else "it has none"
            raise ProgramError(f"{name!r} is not a variable of the expression{did_you_mean(name, variables)}: {has}")
    for name, interval in ranges.items():
        if name not in variables:
            raise ProgramError(f"a range for {name!r}, which is not a variable of the expression"
                               f"{did_you_mean(name, variables)}")
        if values[name] not in interval:
            raise ProgramError(f"{name} is {Interval.point(values[name])}, outside its range, {interval}")


class _Compilation:
    """One walk over the postfix code, with a stack of terms and of the texts they stand for."""

    def __init__(
        self, expression: str, items: list[Item], values: Mapping[str, Fraction], ranges: Mapping[str, Interval], code: Code
    ) -> None:
        self.expression, self.items, self.values, self.ranges, self.code = expression, items, values, ranges, code
        self.variables: dict[str, Term] = {}
        self.stack: list[Term] = []
        self.texts: list[str] = []
        self.folds = any(item.kind == "variable" for item in items)
        self.powers = Powers(code, partial(self._fitted, "log"), partial(self._fitted, "exp"), self._product)

    def run(self) -> Term:
        for index, item in enumerate(self.items):
            try:
                self._step(index, item)
            except SourceError:
                raise
            except ProgramError as error:
                where = "" if item.text == self.expression.strip() else f"{_cut(item.text)}: "
                raise place_error(f"{where}{error}", self.expression, item.column, item.text) from None
        result = self.stack.pop()
        if result.temporary:
            return result
        return self.code.add(result, self.code.constant(Fraction(0)))

    def _hundred(self, index: int) -> bool:
        """The number 100 of x / 100, which is the paper's percentage even where numbers are data."""
        item, after = self.items[index], self.items[index + 1 : index + 2]
        return item.kind == "number" and item.value == 100 and bool(after) and after[0].kind == "div"

    def _step(self, index: int, item: Item) -> None:
        if item.kind == "number":
            term = self.code.constant(item.value)
            self._push(term if self.folds or self._hundred(index) else self.code.datum(term), item.text)
        elif item.kind == "variable":
            if item.name not in self.variables:
                value = self.values[item.name]
                exact = self.ranges.get(item.name, Interval.point(value))
                self.variables[item.name] = self.code.variable(item.name, exact, value)
            self._push(self.variables[item.name], item.text)
        elif item.kind in ("add", "sub", "mul", "div", "raise", *CHOICES):
            (b, b_text), (a, a_text) = self._pop(), self._pop()
            result = self._percentage(a, "") if self._hundred(index - 1) else self._binary(item.kind, a, b, a_text, b_text)
            self._push(result, item.text)
        else:
            a, text = self._pop()
            self._push(self.powers.to_number(a, item.value, _cut(text)) if item.kind == "power"
                       else self._unary(item.kind, a, text), item.text)

    def _push(self, term: Term, text: str) -> None:
        self.stack.append(term)
        self.texts.append(text)

    def _pop(self) -> tuple[Term, str]:
        return self.stack.pop(), self.texts.pop()

    # Operations

    def _binary(self, kind: str, a: Term, b: Term, a_text: str, b_text: str) -> Term:
        if kind == "div":
            return self._quotient(a, b, b_text)
        if kind == "raise":
            return self.powers.raised(a, b, _cut(a_text), _cut(b_text))
        if kind in CHOICES:
            return self._choice(kind, a, b)
        rules: dict[str, Callable[[Term, Term], Term]] = {"add": self._add, "sub": self._sub, "mul": self._product}
        return rules[kind](a, b)

    def _unary(self, kind: str, a: Term, text: str) -> Term:
        if kind in FITTED:
            return self._fitted(kind, a, text)
        rules: dict[str, Callable[[Term, str], Term]] = {
            "neg": lambda a, _: self._sub(self.code.constant(Fraction(0)), a),
            "percentage": self._percentage, "inverse": self._inverse, "sqrt": self._sqrt, "abs": self._abs,
        }
        return rules[kind](a, text)

    def _add(self, a: Term, b: Term) -> Term:
        if a.is_constant and b.is_constant:
            return self.code.constant(a.exact.low + b.exact.low)
        if self._is(a, 0):
            return b
        return a if self._is(b, 0) else self.code.add(a, b)

    def _sub(self, a: Term, b: Term) -> Term:
        if a.is_constant and b.is_constant:
            return self.code.constant(a.exact.low - b.exact.low)
        return a if self._is(b, 0) else self.code.sub(a, b)

    def _is(self, term: Term, value: int) -> bool:
        return term.is_constant and term.exact.low == value

    def _product(self, a: Term, b: Term) -> Term:
        if b.is_constant:
            a, b = b, a
        if not a.is_constant:
            return self.code.product(a, b)
        factor = a.exact.low
        if b.is_constant:
            return self.code.constant(factor * b.exact.low)
        if factor == 0:
            self.code.drop(b)
            return a
        if factor == Fraction(1, 100):
            return self.code.hundredth(b)
        if factor < 0:
            return self.code.negative(self._product(self.code.constant(-factor), b))
        power = factor.numerator.bit_length() - factor.denominator.bit_length()
        return self.code.shift(b, power) if factor == Fraction(2) ** power else self.code.product(a, b)

    def _quotient(self, a: Term, b: Term, text: str) -> Term:
        reciprocal = self._inverse(b, text)
        one = self.code.decide(lambda: a.exact == Interval.point(1) and a.error == 0)
        return reciprocal if one else self._product(a, reciprocal)

    def _percentage(self, a: Term, text: str) -> Term:
        return self.code.constant(a.exact.low / 100) if a.is_constant else self.code.hundredth(a)

    def _inverse(self, a: Term, text: str) -> Term:
        if 0 in a.exact:
            raise ProgramError(f"division by zero, {_cut(text)} {is_text(a.exact)}")
        return self.code.constant(1 / a.exact.low) if a.is_constant else inverse(self.code, a)

    def _sqrt(self, a: Term, text: str) -> Term:
        if a.exact.low < 0:
            raise ProgramError(f"square root of a negative number, {_cut(text)} {is_text(a.exact)}")
        return self.code.constant(exact.sqrt(a.exact.low)) if a.is_constant else root(self.code, a)

    def _fitted(self, name: str, a: Term, text: str) -> Term:
        fitted = FITTED[name]
        if name == "log" and a.exact.low <= 0:
            raise ProgramError(f"log of a number that is not positive, {_cut(text)} {is_text(a.exact)}")
        if not (a.exact.low >= fitted.low and a.exact.high <= fitted.high):
            raise ProgramError(f"{_cut(text)} {is_text(a.exact)}, outside the range of {name}, {fitted.low:g} to "
                               f"{fitted.high:g}")
        exact = fitted.values(a.exact)
        if a.is_constant:
            return self.code.constant(exact.low)
        if name == "log" and a.least <= 0:
            raise ProgramError(f"log of {a.exact}, which cannot be told from 0: its error may be {a.error:.1e}")
        function = self.code.decide(lambda: banded(name, a.least, a.most))
        error = self.code.error(function, float(exact.magnitude)) + fitted.slope(a.least, a.most) * a.error
        return self.code.call(function, a, exact=exact, error=error)

    def _abs(self, a: Term, text: str) -> Term:
        return self.code.constant(abs(a.exact.low)) if a.is_constant else absolute(self.code, a)

    def _choice(self, kind: str, a: Term, b: Term) -> Term:
        if a.is_constant and b.is_constant:
            return self.code.constant((min if kind == "min" else max)(a.exact.low, b.exact.low))
        return extreme(self.code, kind, a, b)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
