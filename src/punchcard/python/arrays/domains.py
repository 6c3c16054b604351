"""Sizes of the machine that a program asks for: its range, and the domains of fitted functions.

Compound are taken from a run in NumPy, with head room, and rounded outwards to a coarse grid: so other arguments of the
same size ask for the same machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from punchcard.machines.fleq.blocks.block import (
    Block,
    EntrywiseProduct,
    LaneProduct,
    MatrixProduct,
    ScaledProduct,
)
from punchcard.machines.fleq.functions import ENTRYWISE, HADAMARD, MUL, SCALE, Function, fitted_function
from punchcard.python.arrays.dry_run import Extent

HEAD_ROOM = 1.5
LEAST_RANGE = 2.0
"""Loops count from -1 or less to 1, and a product should not be below what it is compared with."""
MARGIN, SINGLE_MARGIN = 2.0**-36, 2.0**-12
"""Numbers that differ by less than this part of the range may be told apart wrongly: the errors of both may be as large."""


def range_for(largest: float) -> float:
    """The least power of two that leaves head room above the largest value."""
    return max(LEAST_RANGE, 2.0 ** math.ceil(math.log2(max(largest * HEAD_ROOM, 1e-6))))


def dead_zone(limit: float, *, single: bool = False) -> float:
    """Numbers that differ by less than this cannot be compared; `single`: in float32."""
    return (SINGLE_MARGIN if single else MARGIN) * limit


def functions_for(domains: Mapping[str, Extent]) -> dict[str, Function]:
    """The functions that depend on a domain, by the name that operations have."""
    return {name: fitted_function(name, *_domain(name, extent)) for name, extent in domains.items()}


def _domain(name: str, extent: Extent) -> tuple[float, float]:
    """Ends on a coarse grid, a quarter beyond what occurred."""
    low, high, size = extent.values.low, extent.values.high, extent.values.magnitude
    if name == "inverse":
        return down(extent.near / 1.25), up(1.25 * size)
    if name == "log":
        return down(low / 1.25), up(1.25 * high)
    if name == "sqrt":
        return (down(low / 1.25) if low > 0 else 0.0), up(1.25 * max(high, 1e-6))
    if name == "exp":
        return -up(1.25 * -low) if low < 0 else 0.0, math.ceil(2 * high + 0.25) / 2 if high > 0 else 0.5
    reach = up(1.25 * max(size, 0.1))
    return -reach, reach


def up(x: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below x."""
    power = math.floor(math.log10(x))
    return next(float(f"{lead}e{power}") for lead in (1, 2, 5, 10) if float(f"{lead}e{power}") >= x)


def down(x: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above x."""
    power = math.floor(math.log10(x))
    return next(float(f"{lead}e{power}") for lead in (5, 2, 1, 0.5) if float(f"{lead}e{power}") <= x)


def blocks_for(names: tuple[str, ...], limit: float, heads: int) -> list[Block]:
    """Blocks of a machine for these functions: products for results within the range and no further."""
    products: list[Block] = [MatrixProduct(MUL, heads, limit), EntrywiseProduct(HADAMARD, heads, limit),
                             ScaledProduct(SCALE, heads, limit), LaneProduct(ENTRYWISE, heads, limit)]
    return [block for block in products if block.name in names]
