"""Instructions of the calculator in the array front end's form, with the error of every value that they make.

A *term* is a value on the card: what it should be, as an interval of exact numbers, and how far off it may be. Each
call below writes operations and works out the error of their result from the errors of the operands and the bound of
the function's block. An interval is one number where the operands are numbers, and a range where ranges are declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar, cast

from punchcard.calculator.blocks import REACH, Blocks
from punchcard.calculator.exact import Exact, scaled, shortened, text
from punchcard.calculator.functions import SHIFT, SHIFTS
from punchcard.errors import ProgramError
from punchcard.machines.fleq.functions import ADD, MUL, PERCENTAGE, SUB, Function
from punchcard.python.arrays.ir import Const, Op, Operand, Ref, Register, SourcePlace
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.intervals import Interval

GOOD = 1e-10
"""Relative error of one operation that is good enough; more instructions are spent only above it."""
REFERENCE = 4 * 2.0**-53
"""Rounding of a function's float64 reference, against which a block's bound holds."""
MOST_INSTRUCTIONS = 1000
UP = 1 + 1e-9
"""Errors are added up in float64; this makes up for its rounding."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ScaledTerm:
    """A value: where it is (None for a constant that is not on the card yet), and how far off it may be."""

    exact: Exact
    error: float
    operand: Operand | None = None

    @property
    def is_constant(self) -> bool:
        return self.operand is None

    @property
    def is_zero(self) -> bool:
        return self.is_constant and self.exact.low == 0

    @property
    def magnitude(self) -> float:
        """No value on the card is larger."""
        return float(self.exact.magnitude) * UP + self.error

    @property
    def least(self) -> float:
        """No value on the card is smaller."""
        low = float(self.exact.low)
        return low - abs(low) * (UP - 1) - self.error

    @property
    def most(self) -> float:
        high = float(self.exact.high)
        return high + abs(high) * (UP - 1) + self.error


class ScaledCode:
    """The operations of one program, at a line of its source, and the errors of its terms.

    decisions    which blocks and shifts were chosen. Chosen once for the ranges, they are used `again` to bound one run
    """

    def __init__(self, blocks: Blocks, newton: int | None, again: Sequence[object] | None = None) -> None:
        self.blocks, self.newton = blocks, newton
        self.decisions: list[object] = []
        self._again = None if again is None else iter(again)
        self.builder = OperationBuilder()
        self.functions: dict[str, Function] = {}
        self.data: dict[Register, float] = {}
        self.largest = 0.0
        self.line: SourcePlace

    def decide(self, choose: Callable[[], T]) -> T:
        if self._again is not None:
            return cast(T, next(self._again))
        self.decisions.append(choose())
        return cast(T, self.decisions[-1])

    # Values

    def check_range(self, exact: Exact, what: str, error: float = 0.0) -> None:
        if exact.magnitude + Fraction(error) > Fraction(self.blocks.range):
            raise ProgramError(f"{what} {text(exact)}: the calculator's numbers stay within ±{self.blocks.range:g}")

    def variable(self, name: str, exact: Exact, value: Fraction) -> ScaledTerm:
        """A variable of the expression; `exact` is its range, or the value itself."""
        self.check_range(exact, f"{name} is")
        punched = self.blocks.rounded(value)
        error = float(abs(Fraction(punched) - value))
        if not exact.is_point:
            error = self.blocks.unit * float(exact.magnitude) * UP + self.blocks.least
        return ScaledTerm(exact, error, self._on_card(name, punched))

    def constant(self, value: Fraction) -> ScaledTerm:
        """A number of the program's own."""
        exact = Interval.point(value)
        self.check_range(exact, "the number")
        off = abs(Fraction(self.blocks.rounded(value)) - value)
        return ScaledTerm(exact, float(off) * UP)

    def datum(self, name: str, term: ScaledTerm) -> ScaledTerm:
        """A number on the card, from here on a value like any other."""
        return ScaledTerm(term.exact, term.error, self._on_card(name, self.blocks.rounded(term.exact.low)))

    def _on_card(self, name: str, punched: float) -> Ref:
        register = self.builder.register(1, 1, name=name)
        self.data[register] = punched
        self.largest = max(self.largest, abs(punched))
        return Ref(register)

    def operand(self, term: ScaledTerm) -> Operand:
        return Const.of(self.blocks.rounded(term.exact.low)) if term.operand is None else term.operand

    # Instructions

    def call(
        self, function: Function, a: ScaledTerm, b: ScaledTerm | None = None, *, exact: Exact, error: float
    ) -> ScaledTerm:
        """One instruction, unless its result is known already."""
        terms = [a] if b is None else [a, b]
        self.check_range(exact, "a value of", error)
        found = self.builder.emit(function.name, tuple(map(self.operand, terms)), 1, 1, self.line)
        self.functions[function.name] = function
        if len(self.builder.code) > MOST_INSTRUCTIONS:
            raise ProgramError(f"more than {MOST_INSTRUCTIONS} instructions: compute it in parts")
        if isinstance(found, Const):  # x - x
            return self.constant(Fraction(float(found.value[0, 0])))
        term = ScaledTerm(exact, error * UP + self.blocks.least, found)
        self.largest = max(self.largest, term.magnitude, *(operand.magnitude for operand in terms))
        return term

    def copy(self, a: ScaledTerm) -> ScaledTerm:
        """a + 0: always an instruction, so that a result has its own place."""
        target = self.builder.register(1, 1)
        self.builder.add(Op(ADD.name, target, (self.operand(a), Const.of(0.0)), self.line))
        return ScaledTerm(a.exact, (a.error + self.error(ADD, a.magnitude)) * UP + self.blocks.least, Ref(target))

    def error(self, function: Function, magnitude: float) -> float:
        """How far a function's result may be from the exact function of the operands that are on the card."""
        return self.blocks.error(function, magnitude) + REFERENCE * magnitude

    def add(self, a: ScaledTerm, b: ScaledTerm) -> ScaledTerm:
        return b if a.is_zero else self._sum(ADD, a, b, a.exact + b.exact)

    def sub(self, a: ScaledTerm, b: ScaledTerm) -> ScaledTerm:
        return self._sum(SUB, a, b, a.exact - b.exact)

    def _sum(self, function: Function, a: ScaledTerm, b: ScaledTerm, exact: Exact) -> ScaledTerm:
        if b.is_zero:
            return a
        if a.is_constant and b.is_constant:
            return self.constant(exact.low)
        exact = shortened(exact)
        magnitude = float(min(exact.magnitude, Fraction(2 * self.blocks.range))) + a.error + b.error
        return self.call(function, a, b, exact=exact, error=a.error + b.error + self.error(function, magnitude))

    def negative(self, a: ScaledTerm) -> ScaledTerm:
        """0 - a."""
        return self.sub(self.constant(Fraction(0)), a)

    def shift(self, a: ScaledTerm, power: int) -> ScaledTerm:
        """2^power a, exactly: in steps of 16, 4 and 1, and at once for a constant."""
        if a.is_constant:
            return self.constant(a.exact.low * Fraction(2) ** power)
        for step in SHIFTS:
            while power * step > 0 and abs(power) >= abs(step):
                exact, error = scaled(a.exact, Fraction(2) ** step), a.error * 2.0**step
                function = ADD if step == 1 else SHIFT[step]
                error += self.blocks.error(function, float(exact.magnitude) + error)
                a = self.call(function, a, a if step == 1 else None, exact=exact, error=error)
                power -= step
        return a

    def product(self, a: ScaledTerm, b: ScaledTerm) -> ScaledTerm:
        """a b, where a number is multiplied by in the simplest way."""
        if b.is_constant:
            a, b = b, a
        if not a.is_constant:
            return self.soft_product(a, b)
        factor = a.exact.low
        if b.is_constant:
            return self.constant(factor * b.exact.low)
        if factor == 0:
            return a
        if factor == Fraction(1, 100):
            error = b.error / 100 + self.error(PERCENTAGE, b.magnitude)
            return self.call(PERCENTAGE, b, exact=scaled(b.exact, factor), error=error)
        if factor < 0:
            return self.negative(self.product(self.constant(-factor), b))
        power = factor.numerator.bit_length() - factor.denominator.bit_length()
        return self.shift(b, power) if factor == Fraction(2) ** power else self.soft_product(a, b)

    def soft_product(self, a: ScaledTerm, b: ScaledTerm, exact: Exact | None = None) -> ScaledTerm:
        """a b. The soft product's error is absolute, so a small or large product is shifted to its reach and back."""
        exact = shortened(a.exact * b.exact) if exact is None else exact
        self.check_range(exact, "a value of")
        passed_on = a.magnitude * b.error + b.magnitude * a.error
        size = float(exact.magnitude) * UP + passed_on
        left_power, right_power = self.decide(lambda: self._product_shifts(a, b, size))
        power = left_power + right_power
        left, right = self.shift(a, left_power), self.shift(b, right_power)
        # shifts are exact in float64, and what they round in other formats is in the errors of left and right
        passed_on = left.magnitude * right.error + right.magnitude * left.error
        error = passed_on + self.error(MUL, size * 2.0**power)
        return self.shift(self.call(MUL, left, right, exact=scaled(exact, Fraction(2) ** power), error=error), -power)

    def _product_shifts(self, a: ScaledTerm, b: ScaledTerm, size: float) -> tuple[int, int]:
        """Powers of two for the operands that bring a product's magnitude to between reach / 16 and reach."""
        sizes = (a.magnitude, b.magnitude)
        good = self.blocks.error(MUL, REACH) <= GOOD * size or size >= REACH / 16
        if size < self.blocks.least or (size <= REACH and good):
            return 0, 0
        power = -4 * math.ceil(math.log2(size / REACH) / 4)
        first = 0 if a.is_constant or (not b.is_constant and (sizes[0] < sizes[1]) == (power > 0)) else 1
        most = power
        if power > 0:  # up: the smaller operand first, which never goes beyond the reach
            most = min(power, max(0, 4 * math.floor(math.log2(REACH / max(sizes[first], self.blocks.least)) / 4)))
        return (most, power - most) if first == 0 else (power - most, most)
