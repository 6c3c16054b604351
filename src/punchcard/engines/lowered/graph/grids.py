"""Grids of nodes: of the few values of one, and of products. What a grid is: see `transformer/grids.py`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from punchcard.transformer.grids import grid_of_number


def grid_of(values: Iterable[float]) -> float:
    """The largest power of two that divides every one of a few values; 1 where all are 0."""
    found = min(map(grid_of_number, values))
    return found if found < math.inf else 1.0


def product_of_grids(one: float, other: float) -> float:
    """The grid of products: where it is too small for a number, the smallest number, since 0 says that none is known."""
    return one * other or (math.ulp(0.0) if one and other else 0.0)
