"""An error over a whole range, enclosed: every step is rounded outward, and no point is left out.

    truncation   the formula in exact arithmetic against the function: interval Taylor polynomials on pieces of the range,
                 halved until the bound is tight
    rounding     each operation of the number format is off by at most one unit, sums in any order

Numbers are those of python-flint: intervals (`arb`) and Taylor series of intervals (`arb_series`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import punchcard.code_cache as code_cache
from punchcard.errors import PunchcardError
from punchcard.machines.fleq.functions import Smooth

Number: TypeAlias = Any
"""An `arb` or an `arb_series`: python-flint has no types."""
Piece: TypeAlias = Callable[[float, float], tuple[Smooth, float]]
"""For a piece of the range: a function, and what it may be off by there."""

ORDER, BITS = 16, 128
"""Terms of a Taylor polynomial, and bits of the numbers that it is computed with."""
TIGHT = 1.05
"""Pieces are halved until the bound is at most this times an error that does occur."""
MOST_PIECES = 20_000
NARROW = 1e-9
SATURATED = 80.0
"""A sigmoid of a score beyond this is 0 or 1, and a softmax weight behind by this is 0, but for e^-80."""

REFERENCE_UNIT = 2.0**-53
"""The unit roundoff of float64, in which references are computed."""


@dataclass(frozen=True)
class Enclosure:
    """The largest error of a block's result: of its formula and of its rounding, over which operands, in how many pieces.

    An error that is not `proven` was measured at many points, with a margin: nothing is known of the function in between.
    """

    truncation: float
    rounding: float
    over: str
    pieces: int = 0
    proven: bool = True

    @property
    def error(self) -> float:
        """Both together."""
        return self.truncation + self.rounding

    def plus(self, rounding: float) -> Enclosure:
        """With some more rounding."""
        return replace(self, rounding=round_up(self.rounding + rounding)) if rounding else self


def within(limit: float) -> str:
    """The range of operands, in words."""
    return f"[-{limit:g}, {limit:g}]"


def sigmoid_of(score: Number) -> Number:
    """1 / (1 + e^-score) of an interval, by its ends, since it rises; or of a series."""
    if not isinstance(score, flint().arb):
        return 1 / (1 + (-score).exp())
    low, high = (1 / (1 + (-end).exp()) for end in (score.lower(), score.upper()))
    return low.union(high)


def enclose(difference: Piece, units: Piece, low: float, high: float, unit: float, key: Sequence[NDArray[np.float64]],
            ) -> Enclosure:
    """The error of a formula and of its rounding from low to high. It is kept on disk under the numbers of `key`."""
    name = _name(key, low, high, unit)
    known = code_cache.find(name)
    if isinstance(known, tuple):
        return Enclosure(**known[0])
    truncation, pieces = largest(difference, low, high)
    found = Enclosure(round_up(truncation), round_up(most(units, low, high) * unit), f"[{low:g}, {high:g}]", pieces)
    code_cache.keep(name, asdict(found), b"")
    return found


def _name(key: Sequence[NDArray[np.float64]], *numbers: float) -> str:
    """A digest of a formula's numbers, and of the source that encloses its error."""
    found = hashlib.sha256(_source() + repr(numbers).encode())
    for part in key:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


@cache
def _source() -> bytes:
    folder = Path(__file__).parent
    return b"".join((folder / name).read_bytes() for name in ("enclosure.py", "sigmoids.py", "table.py")) + (
        folder.parent / "functions.py").read_bytes()


def most(on_piece: Piece, low: float, high: float) -> float:
    """An upper bound of a positive function from low to high: pieces are halved until it is near a value that occurs."""
    number = flint()
    waiting, occurs, bound = [(low, high)], 0.0, 0.0
    while waiting:
        a, b = waiting.pop()
        middle = (a + b) / 2
        function, slack = on_piece(a, b)
        occurs = max(occurs, float(function(number.arb(middle)).abs_upper()))
        size = float(function(_ball(a, b)).abs_upper()) + slack
        if size <= TIGHT * occurs or not a < middle < b:
            bound = max(bound, size)
        else:
            waiting += [(a, middle), (middle, b)]
    return bound


def largest(on_piece: Piece, low: float, high: float) -> tuple[float, int]:
    """An upper bound of the largest size of a smooth function from low to high, and how many pieces it took.

    On a piece of radius r about m the function is a Taylor polynomial at m, and a last term whose coefficient is
    enclosed on the whole piece. Pieces that may be larger than what is known to occur are halved.
    """
    number = flint()
    before = number.ctx.prec, number.ctx.cap
    number.ctx.prec, number.ctx.cap = BITS, ORDER + 1
    try:
        waiting, occurs, bound, pieces = [(low, high)], 0.0, 0.0, 0
        while waiting:
            a, b = waiting.pop()
            middle, pieces = (a + b) / 2, pieces + 1
            if pieces > MOST_PIECES:
                raise PunchcardError(f"the error from {low:g} to {high:g} can't be enclosed by {MOST_PIECES} pieces")
            radius = max(round_up(middle - a), round_up(b - middle))
            difference, slack = on_piece(a, b)
            at = difference(number.arb_series([middle, 1]))
            occurs = max(occurs, float(abs(at[0]).mid()) - slack)
            size = _size(difference, at, middle, radius) + slack
            if not size <= TIGHT * occurs and a == low and b - a < NARROW:
                # where a slope is infinite, as the square root's at 0, on a piece so short that the value itself is small
                size = float(difference(number.arb(middle, radius)).abs_upper()) + slack
            too_short = not a < middle < b or (a != low and b - a <= 1e-12 * abs(a))
            if size <= TIGHT * occurs or too_short:
                bound = max(bound, size)
            else:
                waiting += [(a, middle), (middle, b)]
        return bound, pieces
    finally:
        number.ctx.prec, number.ctx.cap = before


def _size(difference: Smooth, at: Number, middle: float, radius: float) -> float:
    """How large a function may be on a piece; infinite where nothing is known."""
    number = flint()
    try:
        whole = difference(number.arb_series([number.arb(middle, radius), 1]))
    except ValueError:  # a denominator that might be 0
        return math.inf
    size = sum((abs(at[i]) * number.arb(radius) ** i for i in range(ORDER)), number.arb(0))
    return float((size + abs(whole[ORDER]) * number.arb(radius) ** ORDER).abs_upper())


def _ball(low: float, high: float) -> Number:
    middle = (low + high) / 2
    return flint().arb(middle, max(round_up(middle - low), round_up(high - middle)))


def round_up(value: float) -> float:
    """A little above a sum of a few positive floats, whatever they were rounded to."""
    return value * (1 + 2.0**-40)


@cache
def flint() -> Any:
    """python-flint, imported when a bound is first asked for."""
    import flint

    return flint
