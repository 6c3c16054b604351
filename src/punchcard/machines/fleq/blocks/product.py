"""a^T b by a softmax made linear, with keys A and -A and no anchors.

Output column n asks with q = column n of b. Live are 2 d columns: (+, j) with key +a_j and (-, j) with key -a_j,
where a_j is column j of a (0 beyond its width). With z_j = a_j . q and scores +-c z_j,

    d / c * (e^(c z_j) - e^(-c z_j)) / (sum over k of e^(c z_k) + e^(-c z_k))
        = d / c * sinh(c z_j) / sum_k cosh(c z_k) = z_j (1 + c^2 z_j^2 / 6 - c^2 mean(z^2) / 2 + O(c^4)).

The denominator is even in c, so only even errors are left, and they go away by extrapolation: heads with scores h c
and value weights w_h / h c, where the w_h sum to 1 and cancel the powers c^2, c^4, ... one after the other.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from punchcard.machines.fleq.blocks.transport import Share, Transport, copies_of, output_lanes, outputs
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace, all_but
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, gated, relu, stack

EXTRAPOLATION = {1: (1.0,), 2: (4 / 3, -1 / 3), 3: (3 / 2, -3 / 5, 1 / 10)}
"""Weights w_h of heads h = 1, 2, ...: Richardson's extrapolation in c^2 over c, 2 c, 3 c."""


REMAINDER = {1: 1 / 2, 2: 4 * 5 / 24, 3: 36 * 61 / 720}
"""The first error that `heads` heads leave is this times (c z)^(2 heads) z: |sum_h w_h h^(2 heads)| times a coefficient.

The coefficients of sinh(x_j) / x_j / mean cosh(x_k) for |x_k| <= x are largest where x_j is small and the others are
x: those of 1 / cosh(x), which are 1/2, 5/24, 61/720.
"""


def truncation(reach: float, c: float, heads: int) -> float:
    """Largest error of the linearised softmax in exact arithmetic, for products up to `reach`.

    The factor 1.1 covers the higher powers.
    """
    return float(1.1 * REMAINDER[heads] * (c * reach) ** (2 * heads) * reach)


def rounding(c: float, heads: int, unit: float) -> float:
    """Largest rounding error.

    Each of the two weights is about 1 / 2 d with a relative error of some units, times d / h c.
    """
    return 4 * unit / c * sum(abs(w) / (h + 1) for h, w in enumerate(EXTRAPOLATION[heads]))


def worst_rounding(reach: float, c: float, heads: int, unit: float, size: int) -> float:
    """Largest rounding error, with every operation at its worst and sums in any order.

    A weight is an exponential, a division and a product: 4 units. The denominator, the values and the sum of heads are
    common to both weights, so they are units of the product itself.
    """
    soft = math.fsum(abs(w) / (h + 1) * math.exp(2 * (h + 1) * c * reach) for h, w in enumerate(EXTRAPOLATION[heads]))
    common = (2 * size + 4 + heads) * reach * math.fsum(abs(w) for w in EXTRAPOLATION[heads])
    return float(unit * (4 / c * soft + common))


def best_c(reach: float, heads: int, unit: float) -> float:
    """The power of two that makes truncation and rounding together smallest."""
    return min((2.0**-k for k in range(-40, 60)), key=lambda c: truncation(reach, c, heads) + rounding(c, heads, unit))


class Product(Transport):
    """Full columns of a: z = a^T q, from copies 0 and 1."""

    kind = "product"
    soft = True

    def __init__(self, heads: int = 1, reach: float | None = None) -> None:
        """`reach` is the largest product that c is chosen for, by default the machine's."""
        self.heads = heads
        self.reach = reach
        self.name = f"{self.kind}{heads}"

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        return copies_of(2, d) + outputs(d)

    def asks(self, column: ScratchColumn, d: int) -> bool:
        return column.kind == "output"

    def live(self, column: ScratchColumn) -> bool:
        return column.kind == "copy" and column.index < 2

    def sign(self, column: ScratchColumn) -> int:
        """+1 or -1 for a live column, else 0."""
        return (1, -1)[column.index] if self.live(column) else 0

    def axis(self, column: ScratchColumn) -> int:
        """Which entry of the result a live column contributes to."""
        return column.lane

    def constants(self, d: int) -> tuple[Constant, ...]:
        def masked(sign: int) -> Constant:
            return Constant(f"{self.name}_not_{'plus' if sign > 0 else 'minus'}", self.mask_rows(d),
                            lambda c: self.mask(c, d) if self.sign(c) == sign else [1.0] * self.mask_rows(d))

        def axis(c: ScratchColumn) -> list[float]:
            return [float(self.sign(c) * (self.sign(c) != 0 and i == self.axis(c))) for i in range(d)]

        not_output = Constant("not_output", 1, lambda c: [float(c.kind != "output")])
        return masked(+1), masked(-1), not_output, Constant(f"{self.name}_axis", d, axis)

    def mask_rows(self, d: int) -> int:
        return 1

    def mask(self, column: ScratchColumn, d: int) -> list[float]:
        """Gate of a live column's key, one row for all entries or one for each."""
        return [0.0]

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return tuple((f"{self.name}_{part}", d) for part in ("key", "query", "value", "product"))

    def prepare(self, work: Workspace) -> Part:
        return self.keys(work, work.operand[: work.size], work.deep)

    def keys(self, work: Workspace, key: Expression, beyond: Expression) -> Part:
        """`key` in the live columns with either sign, 0 in the rows `beyond` the height; b's column asks."""
        off, x = work.off(self.name), work.operand[: work.size]
        shut = off + beyond
        plus, minus = work.rows(f"{self.name}_not_plus"), work.rows(f"{self.name}_not_minus")
        key = gated(key, shut + plus, work.gate) - gated(key, shut + minus, work.gate)
        return (assign(work.rows(f"{self.name}_key"), key)
                + assign(work.rows(f"{self.name}_query"), gated(x, off + work.rows("not_output"), work.gate))
                + assign(work.rows(f"{self.name}_value"), gated(work.rows(f"{self.name}_axis"), off, work.gate)))

    def shares(self, work: Workspace) -> list[Share]:
        d, c = work.size, best_c(self.reach or work.reach, self.heads, work.unit)
        query, key, value = (work.rows(f"{self.name}_{part}") for part in ("query", "key", "value"))
        return [
            Share((h + 1) * c * query, key, w * d / ((h + 1) * c) * value, work.rows(f"{self.name}_product"))
            for h, w in enumerate(EXTRAPOLATION[self.heads])
        ]

    def finish(self, work: Workspace, off: Expression) -> Expression:
        """The product within the result's height: beyond it, the weights of + and - cancel but for rounding."""
        return gated(work.rows(f"{self.name}_product"), off + work.over, work.gate)


class DiagonalProduct(Product):
    """Rows scaled: z_g = a_g q_g for a vector a, from columns (plus, g) and (minus, g) that keep only entry g of a."""

    kind = "diagonal"
    lanes: ClassVar[bool] = False
    """Whether each output column has keys of its own."""

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        lanes = range(d if self.lanes else 1)
        plus, minus = (tuple(ScratchColumn(kind, g, i) for g in range(d) for i in lanes) for kind in ("plus", "minus"))
        return plus + minus + outputs(d)

    def live(self, column: ScratchColumn) -> bool:
        return column.kind in ("plus", "minus") and (self.lanes or column.lane == 0)

    def sign(self, column: ScratchColumn) -> int:
        return {"plus": 1, "minus": -1}[column.kind] if self.live(column) else 0

    def axis(self, column: ScratchColumn) -> int:
        return column.index

    def mask_rows(self, d: int) -> int:
        return d

    def mask(self, column: ScratchColumn, d: int) -> list[float]:
        return all_but(d, column.index)


class Lanes(DiagonalProduct):
    """Entry by entry for matrices: the keys of lane i, made of column i of a, are for output column i alone."""

    kind = "lanes"
    lanes = True

    def constants(self, d: int) -> tuple[Constant, ...]:
        other = Constant("not_key_lane", d, lambda c: all_but(d, c.lane if self.live(c) else None))
        return (*super().constants(d), output_lanes(d), other)

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return (*super().scratch_rows(d), (f"{self.name}_lane", d))

    def prepare(self, work: Workspace) -> Part:
        return super().prepare(work) + assign(work.rows(f"{self.name}_lane"),
                                               relu(work.rows("output_lane") - work.off(self.name)))

    def shares(self, work: Workspace) -> list[Share]:
        # Other lanes are kept out by -B. A B for the own one would be beside the small scores and round them.
        lane, key = -work.big * work.rows(f"{self.name}_lane"), work.rows("not_key_lane")
        return [replace(share, query=stack(share.query, lane), key=stack(share.key, key)) for share in super().shares(work)]


class Scaled(DiagonalProduct):
    """A scalar times a matrix: z_g = a_0 q_g. Columns (plus, g) and (minus, g) keep the scalar in row g."""

    kind = "scaled"

    def prepare(self, work: Workspace) -> Part:
        return self.keys(work, work.operand[0].repeat(work.size), work.over)
