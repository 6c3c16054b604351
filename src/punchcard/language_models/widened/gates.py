"""Hidden units of a gated feed-forward layer with SiLU, as formulas over named coordinates.

A unit adds silu(s gate) up / s to a coordinate, for s = SHARPNESS. silu(x) = x / (1 + exp(-x)) is x where exp(-x) is below
the last bit of 1, and exactly 0 where exp(-x) is infinite. So with a gate of 1/2 or more, or -1/2 or less, a unit adds
exactly relu(gate) up. Two units make a step, of which both ends are flat, so that what a number is off by is left behind:

    x above a limit, apart by `gap`     gates z + 1/2 and z - 1/2, z = (x - limit) 2 / gap: their difference is 1 or 0
    all n of some 0/1 literals hold     the same for their sum, which is n, or n - 1 and less: z is 2, or -2 and less

A number may be off by 3/4 of the gap, the sum of literals by 3/8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from punchcard.transformer.expression import Expression, Rows

SHARPNESS = 256.0
HALF = 0.5
Target = tuple[Rows, float]
"""A coordinate, and what it gets of a unit's value."""


@dataclass(frozen=True)
class Unit:
    """One hidden unit: its gate, the factor of what passes, and how much of that each coordinate gets."""

    gate: Expression
    up: Expression
    into: tuple[Target, ...]


class Gates:
    """Units over the rows of a layout, of which `one` is 1 in every column."""

    def __init__(self, one: Rows) -> None:
        self.one = one

    def step(self, number: Expression, limit: float, gap: float, value: Expression, *into: Target) -> list[Unit]:
        """Adds a value where a number is above a limit. It is never closer to the limit than `gap`."""
        z = (2 / gap) * (number - limit * self.one)
        return [Unit(z + HALF * self.one, value, into),
                Unit(z - HALF * self.one, value, tuple((to, -factor) for to, factor in into))]

    def where(self, literals: Sequence[Expression], value: Expression, *into: Target) -> list[Unit]:
        """Adds a value where all literals are 1."""
        return self.step(self._sum(literals), len(literals) - HALF, HALF, value, *into)

    def excess(
        self, number: Expression, limit: float, literals: Sequence[Expression], largest: float, *into: Target,
    ) -> Unit:
        """Adds relu(number - limit) where all literals are 1, for a number that is never above `largest`."""
        missing = len(literals) * self.one - self._sum(literals)
        return Unit(number - limit * self.one - (largest + 1) * missing, self.one, into)

    def always(self, value: Expression, *into: Target) -> Unit:
        """Adds a value in every column."""
        return Unit(self.one, value, into)

    def _sum(self, literals: Sequence[Expression]) -> Expression:
        total = 0.0 * self.one
        for literal in literals:
            total = total + literal
        return total
