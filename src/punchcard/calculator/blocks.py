"""The calculator's function blocks in one number format: their bounds, which the compiler needs, and their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from punchcard.calculator.functions import MAX, MIN, SHIFT, base_name
from punchcard.machines.fleq.blocks.block import Block, Elementwise, FittedFunction, Formula, MatrixProduct, Scale
from punchcard.machines.fleq.blocks.catalogue import built_in
from punchcard.machines.fleq.blocks.fit import fit
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum
from punchcard.machines.fleq.functions import MUL, UNLIMITED, Function
from punchcard.transformer.expression import relu

REACH = 16.0
"""The largest product that mul is built for; larger and smaller ones are shifted."""
RANGES = {53: 2.0**40, 24: 2.0**16}
"""Every value stays within ± this, by the significand bits of the number format."""
LEAST = {53: 1e-300, 24: 1e-37}
FORMULAS: Mapping[Function, Formula] = {MIN: lambda a, b, one: a - relu(a - b), MAX: lambda a, b, one: a + relu(b - a)}


@dataclass(frozen=True)
class Blocks:
    """The blocks of a machine with `heads` for a product and `terms` for a sum of sigmoids."""

    significand: int
    heads: int
    terms: int

    @property
    def unit(self) -> float:
        """The roundoff of the number format."""
        return 2.0**-self.significand

    @property
    def least(self) -> float:
        """Near the least positive number of the format, where roundoff is no longer relative."""
        return LEAST[self.significand]

    @property
    def range(self) -> float:
        """Every value stays within ± this."""
        return RANGES[self.significand]

    @lru_cache(maxsize=1024)  # noqa: B019 (few values of this class, and all are small)
    def error(self, function: Function, magnitude: float) -> float:
        """The bound of a function's block, for operands and results up to a magnitude."""
        return self.block(function).bound(Scale(1, magnitude, self.unit))

    def rounded(self, value: Fraction) -> float:
        """The number that is punched for a value."""
        return float(value) if self.significand == 53 else float(np.float32(float(value)))

    def block(self, function: Function) -> Block:
        """The weights of one of the calculator's functions."""
        if function is MUL:
            return MatrixProduct(MUL, self.heads, REACH)
        if function in FORMULAS:
            return Elementwise(function, FORMULAS[function], error=4.0)
        if function in SHIFT.values():
            factor = float(function.reference(np.ones(1))[0])
            return Elementwise(function, lambda a, b, one: factor * a, error=0.0)
        if function.domain is None:
            return built_in(function.name)
        return FittedFunction(function, fitted(function, self.terms, 2 * self.unit))


@cache
def fitted(function: Function, terms: int, rounding: float) -> SigmoidSum:
    """The sum of sigmoids for a function on its range; an unlimited one is 2 sigmoid(2 x) - 1."""
    low, high = function.domain or (-1.0, 1.0)
    if base_name(function) in UNLIMITED:
        two = np.array([2.0])
        return SigmoidSum(two, np.zeros(1), two, -1.0, low, high, error=0.0)
    return fit(function.reference, low, high, terms, rounding=rounding)
