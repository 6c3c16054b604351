"""The calculator's functions: the paper's six, exact shifts by powers of two, and FLEQ's fitted functions on bands.

A sum of sigmoids approximates a function on one range, with an error relative to the largest value there. So operands
are brought to a range of their own:

    1/x and sqrt x    x is shifted by a power of two into the block's range, and the result is shifted back: exact
    exp, sin, cos     the *band* that holds the operand's range: from and to multiples of 4
    log               the same with log2 x in place of x
    unlimited ones    2 sigmoid(2 x) - 1 and the like: one sigmoid on any range

abs, min and max are formulas of a feed-forward layer, on any range. Which band is taken depends on the operand's range
alone, and a band is never narrower than 4: none is made to a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from punchcard.machines.fleq import functions as fleq
from punchcard.machines.fleq.functions import Function, same_shape, scalar_only

SQRT = Function("sqrt", 1, scalar_only, np.sqrt, domain=(0.01, 16.0))
"""Away from 0, where fewer sigmoids are more accurate: operands are shifted into this range anyway."""

SHIFTS = (16, 4, 1, -16, -4, -1)
"""Powers of two that one instruction multiplies by, large before small; 2^1 is x + x."""


def _shift(power: int) -> Function:
    factor = 2.0**power
    name = f"times{2**power}" if power > 0 else f"over{2**-power}"
    return Function(name, 1, same_shape, lambda a: a * factor)


SHIFT: dict[int, Function] = {power: _shift(power) for power in SHIFTS if power != 1}
STANDARD: tuple[Function, ...] = (fleq.ADD, fleq.SUB, fleq.MUL, fleq.PERCENTAGE, fleq.INVERSE, SQRT, *SHIFT.values())
"""The functions of the standard calculator machine."""

MIN = Function("min", 2, same_shape, np.minimum)
MAX = Function("max", 2, same_shape, np.maximum)
CHOICES: Mapping[str, Function] = {"min": MIN, "max": MAX}
"""Functions of two operands or more."""

WIDE_RUNGS = (8, 10, 12)
"""Blocks of 1/x and sqrt x for wider ranges, 2^-w to 2^w: for a declared range that the standard blocks do not hold."""
BAND = 4.0


@dataclass(frozen=True)
class Domain:
    """Which operands a fitted function takes, and a bound of its slope between two of them."""

    low: float = -1000.0
    high: float = 1000.0
    slope: Callable[[float, float], float] = lambda low, high: 1.0
    logarithmic: bool = False


DOMAINS: Mapping[str, Domain] = {name: Domain() for name in (*fleq.FITTED, *fleq.UNLIMITED)
                                 if name not in (fleq.INVERSE.name, SQRT.name, fleq.SIGMOID.name)} | {
    "exp": Domain(-64.0, 32.0, lambda low, high: math.exp(high)),
    "log": Domain(2.0**-64, 2.0**64, lambda low, high: 1 / low, logarithmic=True),
}
"""The fitted functions that are not shifted."""
FUNCTIONS = (SQRT.name, fleq.INVERSE.name, *DOMAINS, "abs", *CHOICES)
"""What an expression may call."""


def banded(name: str, low: float, high: float) -> Function:
    """The function of this name on the narrowest band that holds low to high."""
    domain = DOMAINS[name]
    if domain.logarithmic:
        bottom, top = band(math.log2(low), math.log2(high))
        return fitted_on(name, 2.0**bottom, 2.0**top)
    if name in fleq.UNLIMITED:
        return fitted_on(name, domain.low - BAND, domain.high + BAND)
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
    rule = fleq.FITTED.get(name) or fleq.UNLIMITED[name]
    powers = name not in DOMAINS or DOMAINS[name].logarithmic
    ends = [_power_name(math.log2(x)) if powers else _number_name(x) for x in (low, high)]
    return Function(f"{name}_{ends[0]}_{ends[1]}", 1, scalar_only, rule.reference, domain=(low, high))


def base_name(function: Function) -> str:
    """inverse, sqrt, exp, ...: the name without its range."""
    return function.name.split("_")[0]


def _number_name(x: float) -> str:
    return f"{x:g}".replace("-", "m").replace(".", "d")


def _power_name(power: float) -> str:
    return f"2{'m' if power < 0 else 'p'}{abs(power):g}"
