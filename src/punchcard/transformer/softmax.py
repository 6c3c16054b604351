"""When the softmax weight of a losing key is exactly 0: the one rule, for designs, engines, views and proofs.

A head computes scores s_j = k_j . q, multiplies them by a temperature, and takes exp(t_j - t_max), t_j = temperature * s_j.

Lemma. Let eta be the smallest positive number of the format, u = eps / 2 its rounding unit, and let key j lose by `lead`:
s_max - s_j >= lead(...) for the exact scores. Then the weight of key j is exactly 0.

    scores        with n roundings, and terms of the absolute total A, a score is off by n eps A, or exact (`summation`)
    products      temperature * s is exact for a power of two; by another number it is off by u |t| <= eps temperature A
    difference    t_j - t_max is off by a factor 1 + u
    exponential   exp(x) is rounded to 0 where it is below eta / 2, that is where x < -ln(2 / eta)

So t_j - t_max <= -ln(2 / eta) (1 + 4 eps) is enough: one of the eight units is for the difference. The others leave a factor
exp(-3 eps ln(2 / eta)) for an exponential that is off by its last places, and for the roundings of this rule, which is
computed in float64. Two scores may be off in opposite directions. tests/test_softmax.py compares with real softmaxes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from punchcard.card.formats import FORMATS, NumberFormat
from punchcard.transformer.grids import grid_of_number
from punchcard.transformer.summation import are_exact, rounding_error

SLACK = 4
"""So many eps more than ln(2 / eta) must temperature * lead be, in proportion."""


@dataclass(frozen=True)
class Scores:
    """What is known of the scores of a head.

    largest    no sum of the absolute values of the terms of a score is larger
    roundings  how many roundings a score has, one after the other; 0 where it is exact
    grid       a power of two of which all terms are multiples, or 0
    """

    largest: float
    roundings: int = 0
    grid: float = 0.0

    def error(self, limits: NumberFormat) -> float:
        """How far a computed score may be from the exact one."""
        if not self.roundings or are_exact(self.largest, self.grid, limits.significand):
            return 0.0
        return rounding_error(self.largest, self.roundings, limits.eps) if self.roundings * limits.eps <= 0.5 else math.inf


def hard_product(dtype: str) -> float:
    """The least temperature * lead of computed scores at which a weight is exactly 0: ln(2 / eta), with slack."""
    limits = FORMATS[dtype]
    return (math.log(2.0) - math.log(limits.tiny) - math.log(limits.eps)) * (1 + SLACK * limits.eps)


def hard_lead(dtype: str, temperature: float, scores: Scores) -> float:
    """By how much an exact score must lead so that the weight of another is exactly 0.

    Infinite where no lead is enough: at no positive temperature, and where scores, or their products with it, may overflow.
    """
    limits = FORMATS[dtype]
    if not temperature > 0 or not max(temperature, 1.0) * max(scores.largest, 1.0) <= limits.max:
        return math.inf
    rounded = 0.0 if grid_of_number(temperature) == temperature else 2 * limits.eps * scores.largest
    return hard_product(dtype) / temperature + 2 * scores.error(limits) + rounded
