"""The lemma of widening: RMSNorm of a widened column is that of the base, times a factor that is bounded.

Let x be the d base coordinates of a column, D all coordinates, and c the square sum of the added ones. With the weights
w' = w sqrt(d / D) and e' = d e / D,

    w' x / sqrt((|x|^2 + c) / D + e')  =  w x / sqrt(|x|^2 / d + e)  *  1 / sqrt(1 + c / (|x|^2 + d e))

so for 0 <= c <= C the base's coordinates differ by a factor between 1 - C / (2 d e) and 1, whatever x is. The added
coordinates are so small that C / (2 d e) is below a quarter of the last bit of float32: the factor is 1 there. Small numbers
lose nothing, since they are in coordinates of their own.

In front of the base a column has its token's embedding x_t in the base coordinates. The ballast sqrt(M - |x_t|^2), with M
the largest |x_t|^2, gives all columns the same square sum M. So RMSNorm divides all by the same number there, and what was
written is read as it is. The last front layer takes the ballast away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from punchcard.card.formats import FORMATS

SHARE = 2.0**-2
"""C / (2 d e) is at most this share of a rounding unit of float32, for the numbers."""
LIMIT = 2.0**20
"""No number in an added coordinate is larger in size."""
LEFT = 4.0
"""What is left of the ballast when it is taken away, in units of eps: a norm, two products, two sums, each rounded."""


@dataclass(frozen=True)
class WidenedNorm:
    """Sizes of a widened norm: d and D, the base's epsilon e, and the largest square sum of an embedding."""

    base: int
    width: int
    epsilon: float
    largest: float

    @property
    def amplitude(self) -> float:
        """What a number is multiplied by in an added coordinate: a power of two."""
        allowed = SHARE * FORMATS["float32"].eps / 2 * 2 * self.base * self.epsilon
        return 2.0 ** math.floor(math.log2(math.sqrt(allowed / (self.width - self.base)) / LIMIT))

    @property
    def change(self) -> float:
        """How far a base coordinate may be from the base's, as a share: C / (2 d e). Of the ballast, roundings are left."""
        numbers = (self.width - self.base) * (LIMIT * self.amplitude) ** 2
        ballast = self.largest * (LEFT * FORMATS["float32"].eps) ** 2
        return (numbers + ballast) / (2 * self.base * self.epsilon)

    @property
    def widened_epsilon(self) -> float:
        return self.base * self.epsilon / self.width

    @property
    def shrink(self) -> float:
        """What the base's norm weights are multiplied by."""
        return math.sqrt(self.base / self.width)

    @property
    def reading(self) -> float:
        """The norm weight with which a front layer reads a number from its coordinate."""
        return math.sqrt(self.largest / self.width + self.widened_epsilon) / self.amplitude
