"""The function blocks of the paper's design: each lemma as its own few layers, in rows of its own.

A block works in the scratchpad's columns 0 .. s - 1. Its rows `x` hold column i of operand a in column i and column i
of operand b in column d + i, for i < d (0 beyond the operand's width, and in all other columns). After its layers its
rows `result` hold column i of the result in column 2 d + i. All its rows are 0 while another function is called, so
it can do nothing then. Columns that ask for nothing take an average of everything; what they took is never looked at,
and is cleared at the end of the loop.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from punchcard.machines.fleq.blocks.anchors import anchor_scales
from punchcard.machines.fleq.blocks.fit import SigmoidTerms
from punchcard.machines.fleq.blocks.product import EXTRAPOLATION, best_c
from punchcard.machines.fleq.blocks.sigmoids import score_gate, scores
from punchcard.machines.fleq.functions import Array
from punchcard.transformer.build import Part, assign, attend
from punchcard.transformer.expression import Expression, Rows, gated, relu, stack

MATCH_GAP = 1.0
"""One-hot rows score 1 with themselves and 0 with each other."""


@dataclass(frozen=True)
class LemmaWorkspace:
    """What a lemma sees: sizes, scales and rows by name.

    one        1 in every column of the scratchpad
    a_lane, b_lane, c_lane      one-hot of i in columns i, d + i, 2 d + i;   not_a_lane, ...  1 minus that
    grid_lane, grid_group       for column g d + i < d^2: one-hot of i and of g;   not_grid_group
    term                        one-hot of k in column k, for sums of sigmoids
    """

    rows_of: Callable[[str], Rows]
    name: str
    size: int
    gate: float
    big: float
    reach: float
    unit: float
    off: Rows
    deep: Rows
    over: Rows
    columns: int

    def rows(self, name: str) -> Rows:
        return self.rows_of(name)

    def own(self, name: str) -> Rows:
        """Rows of this block alone."""
        return self.rows_of(f"{self.name}_{name}")

    @property
    def one(self) -> Rows:
        return self.rows("scratch")


class Lemma(ABC):
    """The layers of a block, and what they need."""

    depth: int
    heads: int = 1
    terms: int = 1
    """Columns with a number of their own that it needs, as the terms of a sum have."""
    constants: Mapping[str, Array] = MappingProxyType({})
    """Rows of its own that never change: what is in the columns 0, 1, ... of the scratchpad."""
    masks_height: bool = False
    """Whether rows beyond the height of operand a are taken out of both operands before the first layer."""

    def rows(self, d: int, height: int) -> dict[str, int]:
        """Rows of its own besides x and result: names and sizes."""
        return {}

    def columns(self, d: int) -> int:
        """s: the columns it needs."""
        return 3 * d

    @abstractmethod
    def layers(self, work: LemmaWorkspace) -> list[Part]:
        """The layers, first to last; there are `depth` of them."""


def hand_over(work: LemmaWorkspace, asks: str, key: str, value: Expression, into: Rows, winners: int = 1) -> Part:
    """Columns whose one-hot rows `asks` match the one-hot rows `key` of others take `value` from them."""
    return attend(query=work.rows(asks), key=work.rows(key), value=value, into=into, gap=MATCH_GAP, winners=winners)


class ElementwiseLemma(Lemma):
    """Lemmas (addition) and (subtraction), 3 layers and 1 head; corollary (percentage), of one operand, 2 layers.

    Column 2 d + i takes column i, then column d + i of the second operand, then applies the formula.
    """

    def __init__(self, formula: Callable[[LemmaWorkspace, Expression, Expression], Expression], operands: int = 2) -> None:
        self.formula, self.operands = formula, operands
        self.depth = 1 + operands

    def rows(self, d: int, height: int) -> dict[str, int]:
        return dict.fromkeys(("first", "second")[: self.operands], height)

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        x, first = work.own("x"), work.own("first")
        second = work.own("second") if self.operands == 2 else 0 * first
        result = gated(self.formula(work, first, second), work.off, work.gate)
        rest = work.own("result")[result.size :]
        taken = [hand_over(work, "c_lane", "a_lane", x, first)]
        if self.operands == 2:
            taken.append(hand_over(work, "c_lane", "b_lane", x, work.own("second")))
        return [*taken, assign(work.own("result"), stack(result, 0 * rest) if rest.size else result)]


class AnchoredProductLemma(Lemma):
    """Lemma (matrix multiplication) as the paper has it: 2 layers, 1 head, with anchors (see `anchors`).

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
        soft = attend(
            query=stack(scales.c * x, scales.anchor * in_b, -work.big * in_b),
            key=stack(x, work.rows("in_c"), work.rows("not_ac")),
            value=scales.factor / scales.c * work.rows("a_lane"), into=work.own("product"), gap=1.0, temperature=1.0,
        )
        product, moved = work.own("product"), work.own("moved")
        return [
            soft + assign(product, product - 1 / scales.c * in_b),
            hand_over(work, "c_lane", "b_lane", product, moved)
            + assign(work.own("result"), gated(moved, work.off + work.over, work.gate)),
        ]


class TransposeLemma(Lemma):
    """Lemma (transpose): 4 layers, 1 head, d^2 columns (g, i).

    1. Column (g, i) takes column i of a, and keeps its entry g: a_(g i).
    2. Column (g, i) takes from column (i, g): a_(i g), and puts it into row g.
    3. Column (g, i) takes the sum of columns (0, i), ..., (d - 1, i), an average times d: column i of the transpose.
    4. Column 2 d + i takes it from column (0, i).
    """

    depth = 4

    def columns(self, d: int) -> int:
        return max(3 * d, d * d)

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": d, "entry": 1, "swapped": 1, "spread": d, "turned": d}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        d, off, shut = work.size, work.off, work.rows("not_grid_group")
        copy, entry, swapped, spread, turned = (work.own(n) for n in ("copy", "entry", "swapped", "spread", "turned"))
        kept = gated(copy, off + shut, work.gate).total()
        placed = gated(swapped.repeat(d), off + shut, work.gate)
        lane, group = work.rows("grid_lane"), work.rows("grid_group")
        return [
            hand_over(work, "grid_lane", "a_lane", work.own("x")[:d], copy) + assign(entry, kept),
            attend(query=stack(group, lane), key=stack(lane, group), value=entry, into=swapped, gap=MATCH_GAP)
            + assign(spread, placed),
            attend(query=lane, key=lane, value=d * spread, into=turned, gap=MATCH_GAP, winners=power_of_two(d)),
            attend(query=work.rows("c_lane"), key=work.rows("first_group_lane"), value=turned,
                   into=work.own("result")[:d], gap=MATCH_GAP),
        ]


class MirrorProductLemma(Lemma):
    """a^T b with keys A and -A and no anchors: 2 layers, and 1, 2 or 3 heads by extrapolation (see `product`).

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
        d = work.size
        c = best_c(self.reach or work.reach, self.heads, work.unit)
        copy, key, query, asking, axis, product = (
            work.own(n) for n in ("copy", "key", "query", "asking", "axis", "product"))
        off, gate = work.off, work.gate
        not_plus, not_minus = ("not_a_lane", "not_b_lane") if self.diagonal else ("not_a", "not_b")
        plus, minus = work.rows(not_plus), work.rows(not_minus)
        held, shut = (copy[0].repeat(d), off + work.over) if self.scalar else (copy, off)
        prepare = (
            self._bring(work, copy)
            + assign(key, gated(held, shut + plus, gate) - gated(held, shut + minus, gate))
            # columns outside the scratchpad have taken averages, and must not ask with them
            + assign(query, gated(copy, off + work.rows("not_c") + work.rows("outside"), gate))
            + assign(asking, relu(work.rows("in_c") - off))
            + assign(axis, gated(work.rows("a_lane") - work.rows("b_lane"), off, gate))
        )
        soft = Part()
        for h, w in enumerate(EXTRAPOLATION[self.heads]):
            soft += attend(
                query=stack((h + 1) * c * query, -work.big * asking), key=stack(key, work.rows("not_ab")),
                value=w * d / ((h + 1) * c) * axis, into=product, gap=1.0, temperature=1.0,
            )
        return [prepare, soft + assign(work.own("result"), gated(product, off + work.over, gate))]

    def _bring(self, work: LemmaWorkspace, copy: Rows) -> Part:
        """Columns i and d + i both take column i of a, column 2 d + i takes column i of b."""
        a, b, c = (work.rows(f"{x}_lane") for x in "abc")
        return attend(query=stack(a + b, c), key=stack(a, b), value=work.own("x")[: work.size], into=copy, gap=MATCH_GAP)


class DiagonalProductLemma(MirrorProductLemma):
    """Rows scaled by a vector a: columns g and d + g take column 0 of a and keep entry g, with either sign."""

    diagonal = True

    def _bring(self, work: LemmaWorkspace, copy: Rows) -> Part:
        a, b, c = (work.rows(f"{x}_lane") for x in "abc")
        return attend(query=stack((a + b).total(), c), key=stack(a[0], b), value=work.own("x")[: work.size], into=copy,
                      gap=MATCH_GAP)


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

    def columns(self, d: int) -> int:
        return max(3 * d, d * d)

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"left": d, "right": d, "entry": 1, "other": 1, "product": 1, "spread": d}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        d, off, gate, shut = work.size, work.off, work.gate, work.rows("not_grid_group")
        left, right, entry, other, product, spread = (
            work.own(n) for n in ("left", "right", "entry", "other", "product", "spread"))
        lane, group, one, sink = (work.rows(n) for n in ("grid_lane", "grid_group", "scratch", "sink"))
        c = best_c(self.reach or work.reach, self.heads, work.unit)
        own = stack(one.repeat(d) - lane, one.repeat(d) - group, work.rows("outside") - sink)
        kept = off + shut + work.rows("outside")  # the column of zeros has taken averages, as all that ask for nothing
        soft = Part()
        for h, w in enumerate(EXTRAPOLATION[self.heads]):
            soft += attend(
                query=stack((h + 1) * c * entry, -work.big * stack(lane, group, lane.total())), key=stack(other, own),
                value=2 * w / ((h + 1) * c) * (one - sink), into=product, gap=1.0, temperature=1.0,
            )
        return [
            hand_over(work, "grid_lane", "a_lane", work.own("x")[:d], left)
            + hand_over(work, "grid_lane", "b_lane", work.own("x")[:d], right)
            + assign(entry, gated(left, kept, gate).total()) + assign(other, gated(right, kept, gate).total()),
            soft + assign(spread, gated(product.repeat(d), off + shut + work.over, gate)),
            attend(query=work.rows("c_lane"), key=work.rows("grid_lane"), value=d * spread, into=work.own("result")[:d],
                   gap=MATCH_GAP, winners=power_of_two(d)),
        ]


class TermsLemma(Lemma):
    """Corollary (sums of sigmoids, one head): 3 layers, 1 head, m columns, the terms in the dimension.

    1. Column k takes x, column 0 of a, and makes the score x . a_k + b_k. 2. It finds the column that holds 1 with that
    score and the column of zeros with score 0. (Without the second, which the print
       leaves out, the softmax over a single column gives 1.)
    3. Column 2 d takes the sum of the m columns.
    """

    depth = 3

    def __init__(self, fit: SigmoidTerms) -> None:
        self.fit = fit
        self.terms, self.entries = (int(size) for size in fit.directions.shape)

    def columns(self, d: int) -> int:
        return max(3 * d, self.terms)

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": self.entries, "score": 1, "asking": 1, "weight": 1, "share": 1}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        m, off, one = self.terms, work.off, work.one
        copy, score, asking, weight, share = (work.own(n) for n in ("copy", "score", "asking", "weight", "share"))
        term, shut, unit = work.rows("term")[:m], work.rows("not_term")[:m], work.rows("unit")
        forms = scores(self.fit, copy, one)
        terms = gated(weight.repeat(m), off + shut, work.gate).total(m * self.fit.coefficients)
        everywhere = gated(self.fit.constant * one, off, work.gate)
        return [
            attend(query=term.total(), key=work.rows("a_lane")[0], value=work.own("x")[: self.entries], into=copy,
                   gap=MATCH_GAP)
            + assign(score, gated(forms, off + shut, score_gate(work.gate, work.big)).total())
            + assign(asking, relu(term.total() - off)),
            attend(query=stack(score, -work.big * asking), key=stack(unit, work.rows("not_constant")), value=unit,
                   into=weight, gap=1.0, temperature=1.0)
            + assign(share, terms + everywhere),
            attend(query=work.rows("c_lane")[0], key=term.total(), value=share, into=work.own("result")[:1],
                   gap=MATCH_GAP, winners=power_of_two(m)),
        ]


class HeadsLemma(Lemma):
    """Lemma (sums of sigmoids): 3 layers and m heads, a term a head.

    1. Column d takes x, column 0 of a. 2. In head k, column d finds the column that holds 1 with score x . a_k + b_k +
    log(n - 1), every other column with score 0: n - 1 of
       them, so the weight of the first is sigmoid(x . a_k + b_k). (The print has - log(3 d - 1); n is the number of all
       columns.)
    3. Column 2 d takes the sum.
    """

    depth = 3

    def __init__(self, fit: SigmoidTerms) -> None:
        self.fit = fit
        self.heads, self.entries = (int(size) for size in fit.directions.shape)

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": self.entries, "ask": 1, "sum": 1}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        off, unit = work.off, work.rows("unit")
        copy, ask, total = (work.own(n) for n in ("copy", "ask", "sum"))
        soft = Part()
        for a, b, coefficient in zip(self.fit.directions, self.fit.biases, self.fit.coefficients, strict=True):
            score = copy.total(a) + (float(b) + math.log(work.columns - 1)) * ask
            soft += attend(query=score, key=unit, value=float(coefficient) * unit, into=total, gap=1.0, temperature=1.0)
        asks = work.rows("b_lane")[0]
        return [
            attend(query=asks, key=work.rows("a_lane")[0], value=work.own("x")[: self.entries], into=copy, gap=MATCH_GAP)
            + assign(ask, relu(asks - off)),
            soft + assign(total, total + self.fit.constant * ask),
            attend(query=work.rows("c_lane")[0], key=asks, value=total, into=work.own("result")[:1], gap=MATCH_GAP),
        ]


def power_of_two(count: int) -> int:
    """Winners of a head, for the bookkeeping of exact weights: only powers of two are exact."""
    return count if count & (count - 1) == 0 else 1
