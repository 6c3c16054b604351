"""Matching by address: the scores of ±1 position encodings, and a key that outranks a column's own.

Encodings of L bits score L with themselves and at most L - 2 with each other. A *store key* lets one head do two things
at once: with a factor 1/2 <= f < 1, the key f * position + pointer scores

    L          in the scratchpad, for the column that its pointer names,
    f L        in the column itself,
    L - 2      at most, in the scratchpad for any other column,
    f (L - 2)  at most, in any other column,

as long as the scratchpad's own position rows are 0. So the column that the pointer names takes from the scratchpad, and
every other column from itself. f = (L - 1) / L makes the first two gaps 1; a power of two near it, f = 1 - 2^-k, makes all
scores exact, at a gap of at least 2/3.
"""

from __future__ import annotations

from punchcard.primitives.read import ADDRESS_GAP

__all__ = ["ADDRESS_GAP", "store_factor", "store_gap"]


def store_factor(length: int) -> float:
    """f = 1 - 2^-k with the largest gap for encodings of `length` bits."""
    return max((1 - 2.0**-k for k in range(1, 8)), key=lambda factor: _gap(factor, length))


def store_gap(length: int) -> float:
    """The least difference between the best score of a store key and any other."""
    return _gap(store_factor(length), length)


def _gap(factor: float, length: int) -> float:
    own = factor * length
    return min(length - own, own - (length - 2), own - factor * (length - 2))
