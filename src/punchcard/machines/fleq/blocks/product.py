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
from dataclasses import dataclass, replace
from typing import ClassVar

from punchcard.machines.fleq.blocks.lemmas import Lemma, LemmaWorkspace, find, mix
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


def extrapolated(heads: int, c: float, factor: float) -> list[tuple[float, float]]:
    """For each head h the factors h c of its scores and w_h factor / h c of its values."""
    return [((h + 1) * c, w * factor / ((h + 1) * c)) for h, w in enumerate(EXTRAPOLATION[heads])]


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
        product = work.rows(f"{self.name}_product")
        return [Share(score * query, key, factor * value, product) for score, factor in extrapolated(self.heads, c, d)]

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


@dataclass(frozen=True)
class AnchorScales:
    """c, C and D of the paper's linearised softmax: keys A and anchors, 1 + c x for e^(c x).

    Live are the d columns of a with scores c z_j, and d anchors with score C. With D = d e^C + d the weight of column j
    times D is

        e^(c z_j) D / (sum_k e^(c z_k) + d e^C) = (1 + c z_j + (c z_j)^2 / 2 + ...) (1 - c mean(z) / (e^C + 1) + ...),

    so (D w_j - 1) / c = z_j + c z_j^2 / 2 - mean(z) e^-C + ... The error is of first order in c, since nothing cancels
    it. A large C keeps the second term away, but the score c z_j - C is then rounded to about C units, which is C units /
    c in z_j. (The print's value matrix n e^C and its denominator do not fit each other; this D makes exactly 0 of z = 0.)
    """

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
    """a^T b as the paper has it: copy 0 holds the keys, copy 1 serves as anchors."""

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


class MirrorProductLemma(Lemma):
    """a^T b with keys A and -A and no anchors: 2 layers, and 1, 2 or 3 heads by extrapolation.

    1. Column d + i takes column i of a, for the key -a_i; column i has the key +a_i. Column 2 d + i takes column i of b.
    2. Column 2 d + i asks with column i of b.
    """

    depth = 2
    masks_height = True
    diagonal = False
    scalar = False
    """Whether a is a scalar, which each live column holds in its own row."""

    def __init__(self, heads: int = 1, reach: float | None = None) -> None:
        self.heads = heads
        self.reach = reach

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": d, "key": d, "query": d, "asking": 1, "axis": d, "product": d}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        d, off, gate = work.size, work.not_called, work.gate
        c = best_c(self.reach or work.reach, self.heads, work.unit)
        copy, key, query, asking, axis, product = self.own(work)
        plus, minus = (work.rows(f"not_{x}_lane" if self.diagonal else f"not_{x}") for x in "ab")
        # columns i and d + i both take column i of a, or column 0; column 2 d + i takes column i of b
        a_lane, b_lane, c_lane = (work.rows(f"{x}_lane") for x in "abc")
        asked, first = ((a_lane + b_lane).total(), a_lane[0]) if self.diagonal else (a_lane + b_lane, a_lane)
        held, shut = (copy[0].repeat(d), off + work.over) if self.scalar else (copy, off)
        prepare = (
            find(stack(asked, c_lane), stack(first, b_lane), work.own("x")[:d], copy)
            + assign(key, gated(held, shut + plus, gate) - gated(held, shut + minus, gate))
            # columns outside the scratchpad have taken averages, and must not ask with them
            + assign(query, gated(copy, off + work.rows("not_c") + work.rows("outside"), gate))
            + assign(asking, relu(work.rows("in_c") - off))
            + assign(axis, gated(a_lane - b_lane, off, gate))
        )
        soft = Part()
        for score, factor in extrapolated(self.heads, c, d):
            soft += mix(stack(score * query, -work.big * asking), stack(key, work.rows("not_ab")), factor * axis, product)
        return [prepare, soft + assign(work.own("result"), gated(product, off + work.over, gate))]


class DiagonalProductLemma(MirrorProductLemma):
    """Rows scaled by a vector a: columns g and d + g take column 0 of a and keep entry g, with either sign."""

    diagonal = True


class ScaledProductLemma(DiagonalProductLemma):
    """A scalar times a matrix: columns g and d + g keep the scalar in row g, with either sign."""

    masks_height = False
    scalar = True


class LaneProductLemma(MirrorProductLemma):
    """The entrywise product of matrices: 3 layers, d^2 columns (g, i).

    1. Column (g, i) takes column i of a and of b, and keeps the entries x = a_(g i) and y = b_(g i). 2. It finds itself
    with score c x y and the column of zeros with score 0: the weights differ by an odd function of c, as with mirrored
    keys. 3. Column 2 d + i takes the sum of the columns (0, i), ..., (d - 1, i).
    """

    depth = 3
    masks_height = False
    by_entry = True

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"left": d, "right": d, "entry": 1, "other": 1, "product": 1, "spread": d}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        d, off, gate, shut = work.size, work.not_called, work.gate, work.rows("not_grid_group")
        left, right, entry, other, product, spread = self.own(work)
        lane, group, one, sink = (work.rows(n) for n in ("grid_lane", "grid_group", "scratch", "sink"))
        c = best_c(self.reach or work.reach, self.heads, work.unit)
        own = stack(one.repeat(d) - lane, one.repeat(d) - group, work.rows("outside") - sink)
        kept = off + shut + work.rows("outside")  # the column of zeros has taken averages, as all that ask for nothing
        soft = Part()
        for score, factor in extrapolated(self.heads, c, 2):
            soft += mix(stack(score * entry, -work.big * stack(lane, group, lane.total())), stack(other, own),
                        factor * (one - sink), product)
        return [
            find(lane, work.rows("a_lane"), work.own("x")[:d], left)
            + find(lane, work.rows("b_lane"), work.own("x")[:d], right)
            + assign(entry, gated(left, kept, gate).total()) + assign(other, gated(right, kept, gate).total()),
            soft + assign(spread, gated(product.repeat(d), off + shut + work.over, gate)),
            find(work.rows("c_lane"), lane, d * spread, work.own("result")[:d], winners=d),
        ]


class AnchoredProductLemma(Lemma):
    """Lemma (matrix multiplication) as the paper has it: 2 layers, 1 head, with anchors (see `AnchorScales`).

    1. Column d + i asks with column i of b; live are the columns of a, and as anchors the columns 2 d .. 3 d - 1.
    2. Column 2 d + i takes the product from column d + i.
    """

    depth = 2
    masks_height = True

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"product": d, "moved": d}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        # The block's rows x are 0 while it is off, but its constants are not: they would move values of other columns into
        # its own rows. Those are cleared at the end of the loop and never leave it, since `result` is gated.
        x, in_b = work.own("x")[: work.size], work.rows("in_b")
        scales = anchor_scales(work.size, work.reach, work.unit)
        product, moved = self.own(work)
        return [
            mix(stack(scales.c * x, scales.anchor * in_b, -work.big * in_b),
                stack(x, work.rows("in_c"), work.rows("not_ac")), scales.factor / scales.c * work.rows("a_lane"), product)
            + assign(product, product - 1 / scales.c * in_b),
            find(work.rows("c_lane"), work.rows("b_lane"), product, moved)
            + assign(work.own("result"), gated(moved, work.not_called + work.over, work.gate)),
        ]
