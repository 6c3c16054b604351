"""The calculator's functions, declared: the paper's six, exact shifts by powers of two, and functions fitted on bands.

A sum of sigmoids stands for a function on one range, with an error relative to the largest value there. So operands
are brought to a range of their own:

    1/x and sqrt x    x is shifted by a power of two into the block's range, and the result is shifted back: exact
    exp, sin, cos     the *band* that holds the operand's range: from and to multiples of 4
    log               the same with log2 x in place of x
    tanh              2 sigmoid(2 x) - 1, one sigmoid on any range

abs, min and max are formulas of a feed-forward layer, on any range.

Which band is taken depends on the operand's range alone, and a band is never narrower than 4: none is made to a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from punchcard.calculator import exact
from punchcard.calculator.exact import Interval
from punchcard.machines.fleq.functions import (
    ADD,
    INVERSE,
    MUL,
    PERCENTAGE,
    SUB,
    Array,
    Function,
    same_shape,
    scalar_only,
)

SQRT = Function("sqrt", 1, scalar_only, np.sqrt, domain=(0.01, 16.0))
"""Away from 0, where fewer sigmoids are more accurate: operands are shifted into this range anyway."""

SHIFTS = (16, 4, 1, -16, -4, -1)
"""Powers of two that one instruction multiplies by, large before small; 2^1 is x + x."""


def _shift(power: int) -> Function:
    factor = 2.0**power
    name = f"times{2**power}" if power > 0 else f"over{2**-power}"
    return Function(name, 1, same_shape, lambda a: a * factor)


SHIFT: dict[int, Function] = {power: _shift(power) for power in SHIFTS if power != 1}
STANDARD: tuple[Function, ...] = (ADD, SUB, MUL, PERCENTAGE, INVERSE, SQRT, *SHIFT.values())
"""The functions of the standard calculator machine."""

MIN = Function("min", 2, same_shape, np.minimum)
MAX = Function("max", 2, same_shape, np.maximum)

WIDE_RUNGS = (8, 10, 12)
"""Blocks of 1/x and sqrt x for wider ranges, 2^-w to 2^w: for a declared range that the standard blocks do not hold."""
BAND = 4.0


@dataclass(frozen=True)
class Fitted:
    """A function of one operand: its reference, its values on an interval, a bound of its slope, and where it is allowed."""

    reference: Callable[[Array], Array]
    values: Callable[[Interval], Interval]
    slope: Callable[[float, float], float]
    low: float
    high: float
    logarithmic: bool = False


FITTED: dict[str, Fitted] = {
    "exp": Fitted(np.exp, lambda x: x.rising(exact.exp), lambda low, high: math.exp(high), -64.0, 32.0),
    "log": Fitted(np.log, lambda x: x.rising(exact.log), lambda low, high: 1 / low, 2.0**-64, 2.0**64, logarithmic=True),
    "sin": Fitted(np.sin, lambda x: x.sine(), lambda low, high: 1.0, -1000.0, 1000.0),
    "cos": Fitted(np.cos, lambda x: x.cosine(), lambda low, high: 1.0, -1000.0, 1000.0),
    "tanh": Fitted(np.tanh, lambda x: x.rising(exact.tanh), lambda low, high: 1.0, -1000.0, 1000.0),
}


def banded(name: str, low: float, high: float) -> Function:
    """The function of this name on the narrowest band that holds low to high."""
    if FITTED[name].logarithmic:
        bottom, top = band(math.log2(low), math.log2(high))
        return fitted_on(name, 2.0**bottom, 2.0**top)
    if name == "tanh":
        return fitted_on(name, FITTED[name].low - BAND, FITTED[name].high + BAND)
    return fitted_on(name, *band(low, high))


def band(low: float, high: float) -> tuple[float, float]:
    """The multiples of 4 around low to high."""
    bottom = BAND * math.floor(low / BAND)
    return bottom, max(BAND * math.ceil(high / BAND), bottom + BAND)


def wide(function: Function, rung: int) -> Function:
    """1/x or sqrt x on 2^-rung to 2^rung."""
    return fitted_on(function.name, 2.0**-rung, 2.0**rung)


@cache
def fitted_on(name: str, low: float, high: float) -> Function:
    """A declaration whose name tells the range, as in exp_m4_0 for -4 to 0 and log_2m4_2p0 for 2^-4 to 2^0."""
    references = {"inverse": np.reciprocal, "sqrt": np.sqrt} | {key: f.reference for key, f in FITTED.items()}
    powers = name in ("inverse", "sqrt", "log")
    ends = [_power_name(math.log2(x)) if powers else _number_name(x) for x in (low, high)]
    return Function(f"{name}_{ends[0]}_{ends[1]}", 1, scalar_only, references[name], domain=(low, high))


def base_name(function: Function) -> str:
    """inverse, sqrt, exp, ...: the name without its range."""
    return function.name.split("_")[0]


def _number_name(x: float) -> str:
    return f"{x:g}".replace("-", "m").replace(".", "d")


def _power_name(power: float) -> str:
    return f"2{'m' if power < 0 else 'p'}{abs(power):g}"
