"""The error of a function block over its whole range, enclosed: every step is rounded outward, and no point is left out.

    truncation   the formula in exact arithmetic against the function: interval Taylor polynomials on pieces of the range,
                 halved until the bound is tight, and for products the power series of the softmax
    rounding     each operation of the number format is off by at most one unit, sums in any order

A block states a bound of its own (`Block.bound`), which samples the range in part. The certificate has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from punchcard.errors import PunchcardError
from punchcard.machines.fleq.blocks.anchors import anchor_scales
from punchcard.machines.fleq.blocks.block import (
    REFERENCE_UNIT,
    AnchoredMatrixProduct,
    Block,
    Elementwise,
    FittedFunction,
    MatrixProduct,
    Scale,
    Transposition,
)
from punchcard.machines.fleq.blocks.curves import Curve, Exponential, Positive, Sigmoid, Tabulated, Tanh
from punchcard.machines.fleq.blocks.entries import EntriesFunction
from punchcard.machines.fleq.blocks.fit import SigmoidSum
from punchcard.machines.fleq.blocks.product import EXTRAPOLATION, best_c
from punchcard.machines.fleq.blocks.series import remainder, tail
from punchcard.machines.fleq.blocks.table import Table

ORDER, BITS = 10, 192
"""Terms of a Taylor polynomial, and bits of the numbers that it is computed with."""
TIGHT = 1.05
"""Pieces are halved until the bound is at most this times an error that does occur."""
MOST_PIECES = 20_000
NARROW = 1e-9
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "inverse": lambda x: 1 / x, "sqrt": lambda x: _root(x), "log": lambda x: x.log(), "exp": lambda x: x.exp(),
    "sin": lambda x: x.sin(), "cos": lambda x: x.cos(),
}
"""Functions that are fitted, on Taylor polynomials of intervals."""


def _root(x: Any) -> Any:
    """The square root; of an interval that begins at 0, and so a little below it, that from 0 on."""
    if isinstance(x, _flint().arb) and not x > 0:
        return (x + abs(x)).sqrt() * _flint().arb(0.5, 0.5)
    return x.sqrt()


def _sigmoid(score: Any) -> Any:
    """1 / (1 + e^-score) of a number or an interval, by its ends: it rises."""
    low, high = (1 / (1 + (-end).exp()) for end in (score.lower(), score.upper()))
    return low.union(high)


@dataclass(frozen=True)
class Enclosure:
    """The largest error of a block's result: of its formula and of its rounding, over which operands, in how many pieces."""

    truncation: float
    rounding: float
    over: str
    pieces: int = 0

    @property
    def error(self) -> float:
        """Both together."""
        return self.truncation + self.rounding


def enclosed(block: Block, scale: Scale) -> Enclosure | None:
    """The error of a block over its whole range; None where nothing is known of it, as of a block of your own."""
    over = f"[-{scale.range:g}, {scale.range:g}]"
    if isinstance(block, Transposition):
        return Enclosure(0.0, block.bound(scale), over)
    if isinstance(block, Elementwise):
        return Enclosure(0.0, block.bound(scale), over)
    if isinstance(block, MatrixProduct):
        return _product(block, scale)
    if isinstance(block, AnchoredMatrixProduct):
        return _anchored(scale)
    if isinstance(block, FittedFunction):
        return _fitted(block.name, block.fit, scale) if isinstance(block.fit, SigmoidSum) else None
    if isinstance(block, EntriesFunction):
        return _curve(block.function.name, block.curve, scale)
    return Enclosure(0.0, 0.0, "all bits") if block.reads_instructions else None


def _product(block: MatrixProduct, scale: Scale) -> Enclosure:
    """Keys A and -A: see `series` for the powers that are left; products within the reach."""
    reach, u, d, heads = block.reach or scale.reach, scale.unit, scale.size, block.heads
    c = best_c(reach, heads, u)
    x = c * reach
    truncation = reach * (remainder(heads) * x ** (2 * heads) + tail(heads, x))
    # A weight is exp (2 units: its last place), a division and a product by V: 4 units of 1 / 2 d at most, times d / h c.
    # The denominator, the value matrix and the sum of heads are common to both weights, so they are units of the product.
    soft = math.fsum(4 * u / c * abs(w) / (h + 1) * math.exp(2 * (h + 1) * x) for h, w in enumerate(EXTRAPOLATION[heads]))
    common = (2 * d + 4 + heads) * u * reach * math.fsum(abs(w) for w in EXTRAPOLATION[heads])
    small = 2 * u * reach if block.reach and d == 1 else scale.dot_product
    return Enclosure(_up(truncation), _up(soft + common + small), f"products within [-{reach:g}, {reach:g}]")


def _anchored(scale: Scale) -> Enclosure:
    """(D w - 1) / c = (e^x / (1 + v / (E + 1)) - 1) / c with |x| <= c reach, E = e^C, and v = mean of e^x - 1."""
    u, reach, d = scale.unit, scale.reach, scale.size
    at = anchor_scales(d, reach, u)
    x = at.c * reach
    mean = math.expm1(x) / (math.exp(at.anchor) + 1)
    truncation = (x * x / 2 * math.exp(x) + math.exp(x) * mean / (1 - mean)) / at.c
    # The score c z - C is rounded to C units; then exp, division and product, and the sum of 2 d weights.
    rounding = (at.anchor + 5 + 2 * d) * u / at.c * math.exp(2 * x) + scale.dot_product
    return Enclosure(_up(truncation), _up(rounding), f"products within [-{reach:g}, {reach:g}]")


def _fitted(name: str, fit: SigmoidSum, scale: Scale) -> Enclosure | None:
    smooth = SMOOTH.get(name)
    if smooth is None:
        return None
    flint = _flint()
    terms = [tuple(flint.arb(float(v)) for v in term)
             for term in zip(fit.weights, fit.biases, fit.coefficients, strict=True)]

    def difference(x: Any) -> Any:
        total = flint.arb(fit.constant) - smooth(x)
        for w, b, c in terms:
            score = w * x + b
            total = total + c * (_sigmoid(score) if isinstance(score, flint.arb) else 1 / (1 + (-score).exp()))
        return total

    def units(x: Any) -> Any:
        total = flint.arb(abs(fit.constant)) * (2 + len(terms))
        for w, b, c in terms:
            s = _sigmoid(w * x + b)
            # the score, passed on by the slope; then exp, sum, division, two products, and a sum of all terms
            total = total + abs(c) * (s * (1 - s) * 2 * (abs(w * x) + abs(b)) + (7 + len(terms)) * s)
        return total

    return _enclose(difference, units, fit.low, fit.high, scale.unit)


def _curve(name: str, curve: Curve, scale: Scale) -> Enclosure | None:
    u, limit, over = scale.unit, scale.range, f"[-{scale.range:g}, {scale.range:g}]"
    averaging = 0.0 if scale.size & (scale.size - 1) == 0 else 4 * u * scale.range
    if isinstance(curve, Tabulated):
        return _table(name.split("_")[0], curve.table, scale)
    if isinstance(curve, Positive):
        return Enclosure(0.0, averaging, f"{over}, but for its dead zone")
    if isinstance(curve, Exponential):
        # e^t sigmoid(x - t) = e^x / (1 + e^(x - t)): below e^x by the part e^(high - t) at most
        high = math.exp(curve.high)
        size = limit + curve.shift
        return Enclosure(_up(high * math.exp(curve.high - curve.shift)),
                         _up(high * u * (size + 9) + averaging), f"[-{limit:g}, {curve.high:g}]")
    if isinstance(curve, Sigmoid | Tanh):
        # exp, sum, division, and the two of the reference; the score itself is exact
        factor = 2 if isinstance(curve, Tanh) else 1
        rounding = factor * (6 * u + 2 * REFERENCE_UNIT)  # powers of two, so this sum is exact
        return Enclosure(0.0, _up(rounding + averaging) if averaging else rounding, over)
    return None


def _table(name: str, table: Table, scale: Scale) -> Enclosure | None:
    smooth = SMOOTH.get(name)
    if smooth is None:
        return None
    flint = _flint()
    keys = [tuple(flint.arb(float(v)) for v in key) for key in zip(table.slopes, table.offsets, table.values, strict=True)]

    def softmax(x: Any) -> list[Any]:
        middle = x[0] if isinstance(x, flint.arb_series) else x
        scores = [float((w * middle + b).mid()) for w, b, _ in keys]
        top = max(scores)
        # a constant that all scores lose: it cancels, and keeps the powers small
        return [(w * x + b - top).exp() for w, b, _ in keys]

    def difference(x: Any) -> Any:
        e = softmax(x)
        taken = [p * v for p, (_, _, v) in zip(e, keys, strict=True)]
        return sum(taken[1:], taken[0]) / sum(e[1:], e[0]) - smooth(x)

    def units(x: Any) -> Any:
        e = softmax(x)
        whole = sum(e[1:], e[0])
        mean = sum((p * v for p, (_, _, v) in zip(e, keys, strict=True)), flint.arb(0)) / whole
        total = flint.arb(0)
        for p, (w, b, v) in zip(e, keys, strict=True):
            part = p / whole
            moved = abs(v - mean) * (2 * (abs(w * x) + abs(b)) + 4)
            total = total + part * (moved + (len(keys) + 3) * abs(v))
        return total

    return _enclose(difference, units, table.low, table.high, scale.unit)


def _enclose(
    difference: Callable[[Any], Any], units: Callable[[Any], Any], low: float, high: float, unit: float,
) -> Enclosure:
    truncation, pieces = largest(difference, low, high)
    return Enclosure(_up(truncation), _up(most(units, low, high) * unit), f"[{low:g}, {high:g}]", pieces)


def most(function: Callable[[Any], Any], low: float, high: float) -> float:
    """An upper bound of a positive function from low to high: pieces are halved until it is near a value that occurs."""
    flint = _flint()
    waiting, occurs, bound = [(low, high)], 0.0, 0.0
    while waiting:
        a, b = waiting.pop()
        middle = (a + b) / 2
        occurs = max(occurs, float(function(flint.arb(middle)).abs_upper()))
        size = float(function(_ball(flint, a, b)).abs_upper())
        if size <= TIGHT * occurs or not a < middle < b:
            bound = max(bound, size)
        else:
            waiting += [(a, middle), (middle, b)]
    return bound


def largest(difference: Callable[[Any], Any], low: float, high: float) -> tuple[float, int]:
    """An upper bound of the largest size of a smooth function from low to high, and how many pieces it took.

    On a piece of radius r about m the function is a Taylor polynomial at m, and a last term whose coefficient is
    enclosed on the whole piece. Pieces that may be larger than what is known to occur are halved.
    """
    flint = _flint()
    before = flint.ctx.prec, flint.ctx.cap
    flint.ctx.prec, flint.ctx.cap = BITS, ORDER + 1
    try:
        waiting, occurs, bound, pieces = [(low, high)], 0.0, 0.0, 0
        while waiting:
            a, b = waiting.pop()
            middle, pieces = (a + b) / 2, pieces + 1
            if pieces > MOST_PIECES:
                raise PunchcardError(f"the error from {low:g} to {high:g} can't be enclosed by {MOST_PIECES} pieces")
            radius = max(_up(middle - a), _up(b - middle))
            at = difference(flint.arb_series([middle, 1]))
            occurs = max(occurs, float(abs(at[0]).mid()))
            size = _size(flint, difference, at, middle, radius)
            if not size <= TIGHT * occurs and a == low and b - a < NARROW:
                # where a slope is infinite, as the square root's at 0, on a piece so short that the value itself is small
                size = float(difference(flint.arb(middle, radius)).abs_upper())
            if not size <= TIGHT * occurs:
                if not a < middle < b or (a != low and b - a <= 1e-12 * abs(a)):
                    bound = max(bound, size)
                    continue
                waiting += [(a, middle), (middle, b)]
            else:
                bound = max(bound, size)
        return bound, pieces
    finally:
        flint.ctx.prec, flint.ctx.cap = before


def _size(flint: Any, difference: Callable[[Any], Any], at: Any, middle: float, radius: float) -> float:
    """How large a function may be on a piece; infinite where nothing can be said."""
    try:
        whole = difference(flint.arb_series([flint.arb(middle, radius), 1]))
    except ValueError:  # a denominator that might be 0
        return math.inf
    size = sum((abs(at[i]) * flint.arb(radius) ** i for i in range(ORDER)), flint.arb(0))
    return float((size + abs(whole[ORDER]) * flint.arb(radius) ** ORDER).abs_upper())


def _ball(flint: Any, low: float, high: float) -> Any:
    middle = (low + high) / 2
    return flint.arb(middle, max(_up(middle - low), _up(high - middle)))


def _up(value: float) -> float:
    """A little above a sum of a few positive floats, whatever they were rounded to."""
    return value * (1 + 2.0**-40)


@cache
def _flint() -> Any:
    try:
        import flint
    except ImportError:
        raise PunchcardError("error bounds over a whole range need python-flint: pip install 'punchcard[proof]'") from None
    return flint
