"""How a head of a pretrained model's shape finds the column so many places back.

Rotary positions turn pair j of a head's dimensions by f_j a position. With a constant key, and a constant query that is
turned back by k positions, a column at distance d scores

    sum of w_j cos(f_j (d - k))        which is largest at d = k

The frequencies are the base's. Which pairs are used, and their weights, is chosen here: so that the right distance leads
any other in the whole context by as much as possible, and so that a column which looks back beyond the beginning of the
text finds others before itself. The slowest pair hardly turns: it compares what columns hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import FusionError
from punchcard.transformer.expression import Array

LEAST_SHARE = 1 / 64
"""The lead must be this share of the largest score at least, so that even the roundings of bfloat16 do not reach it."""
STILL = 0.5
"""The cosine of what the slowest pair turns in the whole context, at least."""
TILTS = (0.0, 0.25, 0.5, 1.0)
"""Weights of pairs are f^-tilt."""
FIXED = (1, 2, 3, 4, 8)
"""Distances that heads look back whatever the column holds."""


@dataclass(frozen=True)
class Distances:
    """Distances by turning pairs.

    first         the first pair that is used
    frequencies   of the pairs that are used;  weights  of each
    context       positions;  most_back  the largest distance that is looked for
    """

    first: int
    frequencies: tuple[float, ...]
    weights: tuple[float, ...]
    context: int
    most_back: int

    @property
    def pairs(self) -> slice:
        return slice(self.first, self.first + len(self.frequencies))

    @property
    def total(self) -> float:
        """The largest score."""
        return sum(self.weights)

    def kernel(self, away: Array | NDArray[np.int64]) -> Array:
        """What a column scores that is so far away from the one that is looked for."""
        return np.asarray(np.cos(np.outer(away, self.frequencies)) @ np.array(self.weights))

    @cached_property
    def lead(self) -> float:
        """By how much the right distance leads any other in the context."""
        away = np.concatenate([np.arange(-self.most_back, 0), np.arange(1, self.context)])
        return self.total - float(self.kernel(away).max())

    @cached_property
    def early_lead(self) -> float:
        """Where no column is so far back: by how much some other column leads the one that asks."""
        near = self.kernel(np.arange(self.most_back + 1))
        fixed = [near[k - 1] - near[k] for k in FIXED if 1 < k <= self.most_back]
        return float(min(fixed + [near[1] - near[k] for k in range(2, self.most_back + 1)]))

    @property
    def share(self) -> float:
        """What both leads are at least, of the largest score."""
        return min(self.lead, self.early_lead) / self.total

    def query(self, back: int) -> NDArray[np.complex128]:
        """The query for `back` places, one complex number for each pair."""
        return np.asarray(np.array(self.weights) * np.exp(-1j * back * np.array(self.frequencies)))


def distances(frequencies: Sequence[float], context: int, most_back: int) -> Distances:
    """The best choice of pairs and weights; a base in which no choice is good enough is refused."""
    slowest = frequencies[-1] * (context - 1)
    if slowest >= np.pi or np.cos(slowest) < STILL:
        raise FusionError(f"the base has {context} positions, in which its slowest rotary pair turns by {slowest:.2f}: it "
                          "must stay below 1.04; use a base with a larger rope_theta, or set max_position_embeddings lower")
    found = [Distances(first, tuple(chosen), tuple(float(f**-tilt) for f in chosen), context, most_back)
             for first in range(min(2, len(frequencies))) for last in range(first + 3, min(first + 12, len(frequencies)))
             for chosen in [frequencies[first:last]] for tilt in TILTS]
    best = max(found, key=lambda each: each.share, default=None)
    if best is None or best.share < LEAST_SHARE:
        share = "no pairs" if best is None else f"{best.share:.4f}"
        raise FusionError(f"the base's heads have {len(frequencies)} rotary pairs, with which the right place of {context} "
                          f"leads by {share} of a score: {LEAST_SHARE:.4f} are needed; use a base with larger heads")
    return best
