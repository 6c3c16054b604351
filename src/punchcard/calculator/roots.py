"""1/x and sqrt x for the calculator: shifted into a block's range, estimated there, refined by Newton's iteration.

    y + y (1 - x y)           for y near 1/x: the relative error is squared
    (s + x / s) / 2           for s near sqrt x

The standard blocks, 64 sigmoids on a narrow range, need no refinement. A block for a wide range, or one of few terms,
does; how many steps are worth it is decided from the bounds. The correction y (1 - x y) is small, and it is computed
shifted up to the reach of the product, so that the product's error hardly counts.
"""

from __future__ import annotations

import math
from fractions import Fraction

from punchcard.calculator.blocks import REACH
from punchcard.calculator.code import GOOD, UP, ScaledCode, ScaledTerm
from punchcard.calculator.exact import Exact, reciprocal, scaled, sqrt, text
from punchcard.calculator.functions import SHIFTS, SQRT, WIDE_RUNGS, wide
from punchcard.errors import ProgramError
from punchcard.machines.fleq.functions import ADD, INVERSE, MUL, SUB, Function
from punchcard.python.intervals import Interval

MOST_STEPS = 3
LEAST_OFFSET = 2.0**-80
"""sqrt of a number that may be 0 is taken this far from 0 at least."""


def fitting(function: Function, low: float, high: float, multiple: int) -> tuple[Function, int]:
    """A block for low to high, and the power of two that brings them into its range.

    The power is a multiple of `multiple`, and of four times that where possible, which takes fewer instructions.
    """
    for candidate in (function, *(wide(function, rung) for rung in WIDE_RUNGS)):
        bottom, top = candidate.domain or (-math.inf, math.inf)
        least, most = math.ceil(math.log2(bottom / low)), math.floor(math.log2(top / high))
        powers = [p for p in range(least, most + 1) if p % multiple == 0
                  and low * 2.0**p >= bottom and high * 2.0**p <= top]
        if powers:
            return candidate, min(powers, key=lambda p: (p % (4 * multiple) != 0, abs(p)))
    raise ProgramError(f"{function.name} of a range from {low:.3g} to {high:.3g}: the widest spans a factor of "
                       f"2^{2 * WIDE_RUNGS[-1]}; declare a narrower one")


def inverse(code: ScaledCode, x: ScaledTerm) -> ScaledTerm:
    """1/x for an interval without 0."""
    if x.exact.high < 0:
        return code.negative(inverse(code, code.negative(x)))
    if x.least <= 0:
        raise ProgramError(f"division by {text(x.exact)}, which cannot be distinguished from 0: its error may be "
                           f"{x.error:.1e}")
    if x.exact.low * Fraction(code.blocks.range) < 1:
        raise ProgramError(f"1 / {text(x.exact)}: the calculator's numbers stay within ±{code.blocks.range:g}")
    function, power = code.decide(lambda: fitting(INVERSE, x.least, x.most, 1))
    z = code.shift(x, power)
    steps = code.decide(lambda: _inverse_steps(code, function, z))
    exact, operand = reciprocal(z.exact), z.error / (z.least * float(z.exact.low))
    error = code.error(function, 1 / z.least)
    y = code.call(function, z, exact=exact, error=error + operand)
    for _ in range(steps):
        y, error = _refined(code, z, y, error, operand)
    return code.shift(y, power)


def _refined(code: ScaledCode, z: ScaledTerm, y: ScaledTerm, error: float, operand: float) -> tuple[ScaledTerm, float]:
    """y + y (1 - z y), and its error; `error` is that of y."""
    off = z.most * error
    product = code.call(MUL, z, y, exact=_around(1, off), error=code.error(MUL, 1 + off))
    residual = code.call(SUB, code.constant(Fraction(1)), product, exact=_around(0, off), error=product.error)
    size = _correction(code, z.most, 1 / z.least, error)
    power = code.decide(lambda: _correction_shift(code, size))
    residual = code.shift(residual, power)
    change = code.call(MUL, y, residual, exact=_around(0, size * 2.0**power), error=0.0)
    change = code.shift(change, -power)
    error = _next_error(code, z.most, 1 / z.least, error, power)
    return code.call(ADD, y, change, exact=reciprocal(z.exact), error=error + operand), error


def _around(middle: int, radius: float) -> Exact:
    return Interval(middle - Fraction(radius), middle + Fraction(radius))


def _correction(code: ScaledCode, x: float, y: float, error: float) -> float:
    """The largest y (1 - x y) as computed: y's error, and y times that of the product x y."""
    return (1 + x * error) * (error + (y + error) * code.error(MUL, 2.0))


def _correction_shift(code: ScaledCode, size: float) -> int:
    """The power of two for a correction of this size: up to the product's reach, or what one instruction shifts by if
    that leaves less of the product's error than rounding does.
    """
    power, one = max(0, 4 * math.floor(math.log2(REACH / size) / 4)), SHIFTS[0]
    enough = code.blocks.error(MUL, REACH) * 2.0**-one <= code.blocks.unit
    return min(power, one) if enough else power


def _next_error(code: ScaledCode, x: float, y: float, error: float, power: int) -> float:
    """The error of y + y (1 - x y): x e^2, y times the error of 1 - x y, that of the last product, and rounding."""
    return (x * error**2 + (y + error) * code.error(MUL, 2.0) + code.error(MUL, REACH) * 2.0**-power
            + code.error(ADD, y + error)) * UP


def _inverse_steps(code: ScaledCode, function: Function, z: ScaledTerm) -> int:
    """As many steps as the relative error needs to be good, judged at both ends of z; fewer where no more help."""
    ends = (z.least, z.most)
    errors = [code.error(function, 1 / z.least)] * 2
    converges = all(x * error < 0.5 for x, error in zip(ends, errors, strict=True))
    if code.newton is not None:
        if code.newton and not converges:
            raise ProgramError(f"{function.name} is off by up to {errors[0]:.1e}: too much for Newton's iteration; "
                               "take more terms")
        return code.newton
    best, best_steps = math.inf, 0
    for steps in range(MOST_STEPS + 1 if converges else 1):
        worst = max(x * error for x, error in zip(ends, errors, strict=True))
        if worst < best / 2:
            best, best_steps = worst, steps
        if worst <= GOOD:
            break
        errors = [_next_error(code, x, 1 / x, error, _correction_shift(code, _correction(code, x, 1 / x, error)))
                  for x, error in zip(ends, errors, strict=True)]
    return best_steps


def root_interval(interval: Exact) -> Exact:
    return Interval.around(sqrt(interval.low), sqrt(interval.high))


def root(code: ScaledCode, x: ScaledTerm) -> ScaledTerm:
    """sqrt x for an interval that is not negative.

    Where x may be 0, a small number is added first, since no sum of sigmoids is as steep as the root at 0.
    """
    offset = code.decide(lambda: _offset(code, x))
    steps = code.decide(lambda: _root_steps(code, x, offset))
    z = code.add(x, code.constant(Fraction(offset))) if offset else x
    function, power = code.decide(lambda: fitting(SQRT, z.least, z.most, 2))
    w = code.shift(z, power)
    error = code.error(function, math.sqrt(w.most)) * 2.0 ** (-power / 2)
    # of what is on the card: the fit's error, and by how much the offset makes the root larger
    least = max(0.0, x.least)
    least_root = math.sqrt(z.least) - error
    if offset:
        error += (offset + z.error) / (math.sqrt(least + offset) + math.sqrt(least))
    operand = x.error / (math.sqrt(float(x.exact.low)) + math.sqrt(least)) if least > 0 else math.sqrt(x.error)
    exact = root_interval(x.exact)
    scale = Fraction(2) ** (power // 2)
    y = code.call(function, w, exact=scaled(exact, scale), error=(error + operand) * float(scale))
    y = code.shift(y, -(power // 2))
    for _ in range(steps):
        y, error = _heron(code, x, y, error, operand, least_root)
        least_root = max(math.sqrt(least) - error, least_root / 2)
    return y


def _heron(
    code: ScaledCode, x: ScaledTerm, y: ScaledTerm, error: float, operand: float, least: float
) -> tuple[ScaledTerm, float]:
    """(y + x / y) / 2, and its error; `error` is that of y, and y is `least` or more."""
    here = Interval(Fraction(max(least, y.least)), Fraction(y.most))
    on_card = ScaledTerm(here, 0.0, y.operand)
    value = ScaledTerm(Interval(max(Fraction(0), Fraction(x.least)), Fraction(x.most)), 0.0, x.operand)
    # x / y is near the root: the interval of a quotient would be much wider than what occurs
    quotient = code.soft_product(value, inverse(code, on_card), Interval(Fraction(0), 2 * here.high))
    total = code.add(on_card, quotient)
    half = code.shift(total, -1)
    error = error**2 / (2 * float(here.low)) + half.error
    if x.least < 0:  # what is on the card may be negative by its error
        error += x.error / (2 * float(here.low))
    return ScaledTerm(root_interval(x.exact), (error + operand) * UP, half.operand), error


def _offset(code: ScaledCode, x: ScaledTerm) -> float:
    """What is added to x before the root: 0 where x is far enough from 0 for its range."""
    widest = 2.0 ** (2 * WIDE_RUNGS[-1] - 2)  # the power of two that brings x into the range is even
    if x.least > code.blocks.least and x.most / x.least < widest:
        return 0.0
    return 2.0 ** math.ceil(math.log2(max(4 * x.error, 2 * x.most / widest, LEAST_OFFSET)))


def _root_steps(code: ScaledCode, x: ScaledTerm, offset: float) -> int:
    """As many steps of Heron as the relative error needs to be good, while each one halves it at least."""
    if code.newton is not None:
        return code.newton
    if offset:
        return 0 if x.most < 4 * offset else MOST_STEPS
    function, power = fitting(SQRT, x.least, x.most, 2)
    w = x.least * 2.0**power
    error = code.error(function, math.sqrt(x.most * 2.0**power)) / math.sqrt(w)
    floor = 64 * code.blocks.error(MUL, REACH) / REACH
    steps = 0
    while error > GOOD and error**2 / 2 + floor < error / 2 and steps < MOST_STEPS:
        error, steps = error**2 / 2 + floor, steps + 1
    return steps
