"""The weights of a layer as exact fractions, and by how much a head's winner must win."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from punchcard.errors import ProofError
from punchcard.transformer.expression import Array
from punchcard.transformer.softmax import Scores, hard_lead
from punchcard.transformer.weights import NAMES, LayerArrays, sparse_rows

Row = list[tuple[int, Fraction]]
NEVER = Fraction(1 << 64)
"""A lead that no score has."""


def least_lead(dtype: str, temperature: float, largest: float) -> Fraction:
    """By how much a score must lead so that nothing is left of another. That scores are exact is a claim of its own."""
    lead = hard_lead(dtype, temperature, Scores(largest))
    return Fraction(lead) if math.isfinite(lead) else NEVER


def _largest(key: Array, query: Array, sizes: Array) -> float:
    """The largest score of entries up to these sizes."""
    return float((np.abs(key.astype(np.float64)) @ sizes) @ (np.abs(query.astype(np.float64)) @ sizes))


class Layer:
    """The weights of a layer as exact fractions."""

    def __init__(self, arrays: LayerArrays, dtype: str, sizes: Array) -> None:
        for name in NAMES:
            if not np.isfinite(getattr(arrays, name)).all():
                raise ProofError(f"the weights {name!r} have an entry that is not finite: there is nothing to prove")
        self.heads = [
            HeadWeights(sparse_rows(key, Fraction), sparse_rows(query, Fraction), sparse_rows(value, Fraction),
                        least_lead(dtype, float(temperature), _largest(key, query, sizes)))
            for key, query, value, temperature in zip(arrays.key, arrays.query, arrays.value, arrays.temperature,
                                                      strict=True)
        ]
        self.w1, self.w2 = sparse_rows(arrays.w1, Fraction), sparse_rows(arrays.w2, Fraction)
        self.b1 = [Fraction(float(b)) for b in arrays.b1.ravel()]
        self.b2 = [Fraction(float(b)) for b in arrays.b2.ravel()]


@dataclass(frozen=True)
class HeadWeights:
    """K, Q and V, and by how much a winner must win so that nothing is left of the others."""

    key: list[Row]
    query: list[Row]
    value: list[Row]
    gap: Fraction
