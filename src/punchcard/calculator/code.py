"""Emitting FLEQ instructions for the calculator, with the error of every value that they make.

A *term* is a value on the card: what it should be, as an interval of exact numbers, and how far off it may be. Each
call below emits instructions and works out the error of their result from the errors of the operands and the bound of
the function's block. An interval is one number where the operands are numbers, and a range where ranges are declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from punchcard.calculator.exact import Interval
from punchcard.calculator.functions import SHIFT, SHIFTS
from punchcard.errors import ProgramError
from punchcard.machines.fleq.builder import Builder, Place
from punchcard.machines.fleq.functions import ADD, MUL, PERCENTAGE, SUB, Function
from punchcard.machines.fleq.isa import FleqProgram

GOOD = 1e-10
"""Relative error of one operation that is good enough; more instructions are spent only above it."""
REFERENCE = 4 * 2.0**-53
"""Rounding of a function's float64 reference, against which a block's bound holds."""
MOST_INSTRUCTIONS = 1000
UP = 1 + 1e-9
"""Errors are added up in float64; this makes up for its rounding."""
T = TypeVar("T")


class Accuracy(Protocol):
    """What the compiler must know of a machine: sizes and bounds, no weights."""

    @property
    def range(self) -> float:
        """Every value stays within ± this."""

    @property
    def reach(self) -> float:
        """The largest product that the machine's mul is built for."""

    @property
    def unit(self) -> float:
        """The roundoff of the number format."""

    @property
    def least(self) -> float:
        """Near the least positive number of the format, where roundoff is no longer relative."""

    def error(self, function: Function, magnitude: float) -> float:
        """The bound of a function's block, for operands and results up to a magnitude."""

    def rounded(self, value: Fraction) -> float:
        """The number that is punched for a value."""


@dataclass(frozen=True, eq=False)
class Term:
    """A value: the variable that holds it (none for a constant not yet on the card), and how far off it may be."""

    exact: Interval
    error: float
    place: Place | None = None
    temporary: bool = False

    @property
    def is_constant(self) -> bool:
        return self.place is None

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


@dataclass
class Decisions:
    """Which blocks and shifts were chosen. Chosen once for the ranges, they are used again to bound one run."""

    made: list[Any] = field(default_factory=list)
    replay: int | None = None

    def decide(self, choose: Callable[[], T]) -> T:
        if self.replay is None:
            self.made.append(choose())
            return self.made[-1]  # type: ignore[no-any-return]
        self.replay += 1
        return self.made[self.replay - 1]  # type: ignore[no-any-return]


class Code:
    """Instructions, variables and constants of one program, and the errors of its terms."""

    def __init__(self, accuracy: Accuracy, decisions: Decisions, taken: Collection[str], newton: int | None) -> None:
        self.accuracy, self.decide, self.newton = accuracy, decisions.decide, newton
        self.builder = Builder()
        self.builder.reserve(taken)
        self.largest = 0.0

    # Values

    def variable(self, name: str, exact: Interval, value: Fraction) -> Term:
        """A variable of the expression; `exact` is its range, or the value itself."""
        if exact.magnitude > self.accuracy.range:
            raise ProgramError(f"{name} is {exact}: the calculator's numbers stay within ±{self.accuracy.range:g}")
        punched = self.accuracy.rounded(value)
        place = self.builder.scalar(name, punched)
        error = float(abs(Fraction(punched) - value))
        if not exact.is_point:
            error = self.accuracy.unit * float(exact.magnitude) * UP + self.accuracy.least
        return Term(exact, error, place)

    def constant(self, value: Fraction) -> Term:
        """A number of the program's own."""
        if abs(value) > self.accuracy.range:
            raise ProgramError(f"the number {Interval.point(value)}: the calculator's numbers stay within "
                               f"±{self.accuracy.range:g}")
        off = abs(Fraction(self.accuracy.rounded(value)) - value)
        return Term(Interval.point(value), float(off) * UP)

    def datum(self, term: Term) -> Term:
        """The term on the card, from here on a value like any other."""
        return Term(term.exact, term.error, self.place(term))

    def place(self, term: Term) -> Place:
        """The variable that holds a term; a constant gets one, which equal constants share."""
        return term.place or self.builder.constant(self.accuracy.rounded(term.exact.low))

    def drop(self, term: Term, keep: Collection[Term] = ()) -> None:
        """A value that is needed no more, unless it is kept."""
        if term.temporary and term.place is not None and term not in keep:
            self.builder.release(term.place)

    # Instructions

    def call(
        self, function: Function, a: Term, b: Term | None = None, *, exact: Interval, error: float,
        keep: Collection[Term] = (),
    ) -> Term:
        """Emit one instruction. Operands that are temporary are free afterwards unless they are kept."""
        operands = [a] if b is None else [a, b]
        places = [self.place(operand) for operand in operands]
        for operand in dict.fromkeys(operands):
            self.drop(operand, keep)
        if exact.magnitude + Fraction(error) > Fraction(self.accuracy.range):
            raise ProgramError(f"a value of {exact}: the calculator's numbers stay within ±{self.accuracy.range:g}")
        target = self.builder.call(function, *places)
        if self.builder.here > MOST_INSTRUCTIONS:
            raise ProgramError(f"more than {MOST_INSTRUCTIONS} instructions: compute it in parts")
        term = Term(exact, error * UP + self.accuracy.least, target, temporary=True)
        self.largest = max(self.largest, term.magnitude, *(operand.magnitude for operand in operands))
        return term

    def error(self, function: Function, magnitude: float) -> float:
        """How far a function's result may be from the exact function of the operands that are on the card."""
        return self.accuracy.error(function, magnitude) + REFERENCE * magnitude

    def add(self, a: Term, b: Term, keep: Collection[Term] = ()) -> Term:
        return self._sum(ADD, a, b, a.exact + b.exact, keep)

    def sub(self, a: Term, b: Term, keep: Collection[Term] = ()) -> Term:
        return self._sum(SUB, a, b, a.exact - b.exact, keep)

    def _sum(self, function: Function, a: Term, b: Term, exact: Interval, keep: Collection[Term]) -> Term:
        magnitude = float(min(exact.magnitude, Fraction(2 * self.accuracy.range))) + a.error + b.error
        return self.call(function, a, b, exact=exact, error=a.error + b.error + self.error(function, magnitude), keep=keep)

    def negative(self, a: Term, keep: Collection[Term] = ()) -> Term:
        """0 - a."""
        return self.sub(self.constant(Fraction(0)), a, keep)

    def hundredth(self, a: Term) -> Term:
        error = a.error / 100 + self.error(PERCENTAGE, a.magnitude)
        return self.call(PERCENTAGE, a, exact=a.exact.scaled(Fraction(1, 100)), error=error)

    def shift(self, a: Term, power: int, keep: Collection[Term] = ()) -> Term:
        """2^power a, exactly: in steps of 16, 4 and 1, and at once for a constant."""
        if a.is_constant:
            return self.constant(a.exact.low * Fraction(2) ** power)
        for step in SHIFTS:
            while power * step > 0 and abs(power) >= abs(step):
                exact, error = a.exact.scaled(Fraction(2) ** step), a.error * 2.0**step
                function = ADD if step == 1 else SHIFT[step]
                error += self.accuracy.error(function, float(exact.magnitude) + error)
                a = self.call(function, a, a if step == 1 else None, exact=exact, error=error, keep=keep)
                power -= step
        return a

    def product(self, a: Term, b: Term, exact: Interval | None = None, keep: Collection[Term] = ()) -> Term:
        """a b. The soft product's error is absolute, so a small or large product is shifted to its reach and back."""
        exact = a.exact * b.exact if exact is None else exact
        if exact.magnitude > self.accuracy.range:
            raise ProgramError(f"a value of {exact}: the calculator's numbers stay within ±{self.accuracy.range:g}")
        passed_on = a.magnitude * b.error + b.magnitude * a.error
        size = float(exact.magnitude) * UP + passed_on
        left_power, right_power = self.decide(lambda: self._product_shifts(a, b, size))
        power = left_power + right_power
        left = self.shift(a, left_power, (*keep, b))
        right = self.shift(b, right_power, (*keep, left))
        # shifts are exact in float64, and what they round in other formats is in the errors of left and right
        passed_on = left.magnitude * right.error + right.magnitude * left.error
        scaled = exact.scaled(Fraction(2) ** power)
        error = passed_on + self.error(MUL, size * 2.0**power)
        return self.shift(self.call(MUL, left, right, exact=scaled, error=error, keep=keep), -power)

    def _product_shifts(self, a: Term, b: Term, size: float) -> tuple[int, int]:
        """Powers of two for the operands that bring a product's magnitude to between reach / 16 and reach."""
        reach, sizes = self.accuracy.reach, (a.magnitude, b.magnitude)
        good = self.accuracy.error(MUL, reach) <= GOOD * size or size >= reach / 16
        if size < self.accuracy.least or (size <= reach and good):
            return 0, 0
        power = -4 * math.ceil(math.log2(size / reach) / 4)
        first = 0 if a.is_constant or (not b.is_constant and (sizes[0] < sizes[1]) == (power > 0)) else 1
        most = power
        if power > 0:  # up: the smaller operand first, which never goes beyond the reach
            most = min(power, max(0, 4 * math.floor(math.log2(reach / max(sizes[first], self.accuracy.least)) / 4)))
        return (most, power - most) if first == 0 else (power - most, most)

    # The program

    def program(self) -> FleqProgram:
        """The instructions as a program."""
        largest = max(self.largest, *(float(abs(value[0, 0])) for value in self.builder.values.values()))
        return self.builder.program(2.0 ** math.ceil(math.log2(max(largest, FleqProgram.range))))
