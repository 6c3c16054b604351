"""The paper's linearised softmax: keys A and anchors, 1 + c x for e^(c x).

Live are the d columns of a with scores c z_j, and d anchors with score C. With D = d e^C + d the weight of column j
times D is

    e^(c z_j) D / (sum_k e^(c z_k) + d e^C) = (1 + c z_j + (c z_j)^2 / 2 + ...) (1 - c mean(z) / (e^C + 1) + ...),

so (D w_j - 1) / c = z_j + c z_j^2 / 2 - mean(z) e^-C + ... The error is of first order in c, since nothing cancels
it. A large C keeps the second term away, but the score c z_j - C is then rounded to about C units, which is C units /
c in z_j. (The print's value matrix n e^C and its denominator do not fit each other; this D makes exactly 0 of z = 0.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from punchcard.machines.fleq.blocks.product import Product
from punchcard.machines.fleq.blocks.transport import Share
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace
from punchcard.transformer.expression import Expression, gated, stack


@dataclass(frozen=True)
class AnchorScales:
    """c, C and D."""

    c: float
    anchor: float
    factor: float

    def bound(self, reach: float, unit: float) -> float:
        """Truncation of first order, the anchors' share, and rounding, for products up to `reach`."""
        return self.c * reach**2 + 2 * reach * math.exp(-self.anchor) + 4 * (self.anchor + 1) * unit / self.c


def anchor_scales(size: int, reach: float, unit: float) -> AnchorScales:
    """C = log(1 / unit) / 2, and the power of two for c that makes the error smallest."""
    anchor = float(round(-math.log(unit) / 2))
    factor = size * (math.exp(anchor) + 1)
    return min((AnchorScales(2.0**-k, anchor, factor) for k in range(60)), key=lambda s: s.bound(reach, unit))


class AnchoredProduct(Product):
    """The same, as a transport of the compact machine: copy 0 holds the keys, copy 1 serves as anchors."""

    kind = "anchored"

    def sign(self, column: ScratchColumn) -> int:
        return 1 if column.kind == "copy" and column.index == 0 else 0

    def constants(self, d: int) -> tuple[Constant, ...]:
        is_anchor = Constant("anchor", 1, lambda c: [float(c.kind == "copy" and c.index == 1)])
        return (*super().constants(d), is_anchor)

    def shares(self, work: Workspace) -> list[Share]:
        scales = anchor_scales(work.size, work.reach, work.unit)
        query, key, value = (work.rows(f"{self.name}_{part}") for part in ("query", "key", "value"))
        return [Share(
            stack(scales.c * query, scales.anchor * work.rows(f"active.{self.name}")), stack(key, work.rows("anchor")),
            scales.factor / scales.c * value, work.rows(f"{self.name}_product"),
        )]

    def finish(self, work: Workspace, off: Expression) -> Expression:
        """(D w_j - 1) / c in the output columns, within the result's height."""
        scales = anchor_scales(work.size, work.reach, work.unit)
        product = work.rows(f"{self.name}_product") - 1 / scales.c * work.rows(f"active.{self.name}")
        return gated(product, off + work.over, work.gate)
