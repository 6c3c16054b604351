"""Sums of sigmoids of a number or a vector, and the layers that compute them.

    constant + sum_k c_k sigmoid(x . a_k + b_k)

Two live keys with scores s and 0 have the weights sigmoid(s) and the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from punchcard.errors import SizeError
from punchcard.machines.fleq.blocks.enclosure import (
    SATURATED,
    Enclosure,
    Number,
    Piece,
    enclose,
    flint,
    most,
    round_up,
    sigmoid_of,
)
from punchcard.machines.fleq.blocks.lemmas import Lemma, LemmaWorkspace, find, mix
from punchcard.machines.fleq.blocks.transport import Share, Transport, outputs
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace, all_but
from punchcard.machines.fleq.functions import Array, Smooth, sigmoid
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, gated, relu, stack

FIT_MARGIN = 1.25
"""A fit's error is the largest on a grid; between two of its points a smooth function's may be a little larger."""
VECTOR_MARGIN = 2.0
"""Random points of a cube miss the worst one by more than a grid of a line does."""


@dataclass(frozen=True, eq=False)
class SigmoidSum:
    """A sum for a number x, with the range it was fitted on.

    `directions` are the a_k, a row for each term and a column for each entry of x; of a number, a list will do. `error` is
    the largest absolute error on points that were used neither to fit nor to choose (but for the two ends of a range);
    `margin` is what the worst point of all may be larger by.
    """

    directions: Array
    biases: Array
    coefficients: Array
    constant: float
    low: float
    high: float
    error: float = math.nan
    margin: float = FIT_MARGIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "directions", np.reshape(self.directions, (len(self.biases), -1)))

    def __call__(self, x: ArrayLike) -> Array:
        points = np.asarray(x, dtype=np.float64)
        return np.asarray(self.constant + sigmoid(points[..., None] * self.weights + self.biases) @ self.coefficients)

    @property
    def weights(self) -> Array:
        """The slopes of the terms."""
        return self.directions[:, 0]

    @property
    def terms(self) -> int:
        return len(self.coefficients)

    @property
    def entries(self) -> int:
        return int(self.directions.shape[1])

    @property
    def truncation(self) -> float:
        """The largest difference from the function that it approximates."""
        return self.margin * self.error

    @property
    def magnitude(self) -> float:
        """sum |c_k|: times the rounding of one sigmoid, this is the rounding error of the sum."""
        return float(np.abs(self.coefficients).sum())

    @property
    def over(self) -> str:
        """Where it holds, in words."""
        return f"[{self.low:g}, {self.high:g}]"

    def largest_score(self, limit: float) -> float:
        """The largest |x . a_k + b_k| for entries of x within ±limit."""
        return float(np.max(np.abs(self.directions).sum(axis=1) * limit + np.abs(self.biases)))

    def scores(self, x: Expression, one: Expression) -> Expression:
        """x . a_k + b_k for every term, one below the other."""
        return x.through(self.directions) + one.through(self.biases[:, None])

    def rounding(self) -> float:
        """Its largest rounding error in units of roundoff, to first order."""
        return _rounding(self)

    def enclosure(self, smooth: Smooth | None, unit: float) -> Enclosure:
        """Its error as an approximation of its function, over the whole range.

        `smooth` is that function on intervals. Of one that is not known there: as far as it was measured.
        """
        if smooth is None:
            return Enclosure(self.truncation, unit * self.rounding(), self.over, proven=False)
        return _enclosure(self, smooth, unit)


@dataclass(frozen=True, eq=False)
class VectorSum(SigmoidSum):
    """A sum for a vector x, with the cube it was fitted on."""

    margin: float = VECTOR_MARGIN
    rounded: float | None = None
    """Its rounding error in units of roundoff, where that is known better than term by term."""

    def __call__(self, x: ArrayLike) -> Array:
        """The values at points whose entries are the last axis."""
        points = np.asarray(x, dtype=np.float64)
        return np.asarray(self.constant + sigmoid(points @ self.directions.T + self.biases) @ self.coefficients)

    @property
    def over(self) -> str:
        return f"{super().over}^{self.entries}"

    def rounding(self) -> float:
        """Each term at its own worst point, in units of roundoff: the sum's worst point is no worse than all of these.

        A score is off by d + 1 units of |a| . |x| + |b| (there are d products in it), which the sigmoid passes on by its
        slope. The sigmoid and its products are off by seven units, and a sum of m terms, in any order, by one for each.
        """
        if self.rounded is not None:
            return self.rounded
        spread = np.abs(self.directions).sum(axis=1) * max(abs(self.low), abs(self.high))
        nearest = np.maximum(0.0, np.abs(self.biases) - spread)  # the least |score| that a term may have
        slope = sigmoid(nearest) * (1 - sigmoid(nearest))
        score = (self.entries + 1) * (spread + np.abs(self.biases))
        units = slope * score + (7 + self.terms) * sigmoid(spread + self.biases)
        return float(units @ np.abs(self.coefficients)) + (2 + self.terms) * abs(self.constant)


@cache
def _rounding(total: SigmoidSum) -> float:
    return round_up(most(_units(total), total.low, total.high))


def _units(total: SigmoidSum) -> Piece:
    """The rounding error at a point, in units of roundoff.

    The score w x + b is off by two units of |w x| + |b|, which the sigmoid passes on by its slope s (1 - s). The
    sigmoid and its products are off by seven units of c s at most, and a sum of m terms, in any order, by one for each.
    """
    terms, arb = _numbers(total), flint().arb

    def units(x: Number) -> Number:
        found = arb(abs(total.constant)) * (2 + len(terms))
        for w, b, c in terms:
            s = sigmoid_of(w * x + b)
            found = found + abs(c) * (s * (1 - s) * 2 * (abs(w * x) + abs(b)) + (7 + len(terms)) * s)
        return found

    return lambda a, b: (units, 0.0)


@cache
def _enclosure(total: SigmoidSum, smooth: Smooth, unit: float) -> Enclosure:
    terms, arb = _numbers(total), flint().arb

    def on_piece(a: float, b: float) -> tuple[Smooth, float]:
        """Sigmoids that are 0 or 1 on the whole piece are constants there, but for e^-80."""
        ends = np.array([[a], [b]]) * total.weights + total.biases
        off = 1e-12 * (np.abs(total.weights) * max(abs(a), abs(b)) + np.abs(total.biases))
        high, low = ends.min(axis=0) - off > SATURATED, ends.max(axis=0) + off < -SATURATED
        constant = sum((terms[k][2] for k in np.flatnonzero(high)), arb(total.constant))
        live = [terms[k] for k in np.flatnonzero(~(high | low))]
        slack = float(np.abs(total.coefficients[high | low]).sum()) * math.exp(1 - SATURATED)

        def difference(x: Number) -> Number:
            found = constant - smooth(x)
            for w, b, c in live:
                found = found + c * sigmoid_of(w * x + b)
            return found

        return difference, slack

    key = total.weights, total.biases, total.coefficients, np.array([total.constant])
    return enclose(on_piece, _units(total), total.low, total.high, unit, key)


def _numbers(total: SigmoidSum) -> list[tuple[Number, Number, Number]]:
    """The terms as exact numbers."""
    arb, columns = flint().arb, (total.weights, total.biases, total.coefficients)
    return [(arb(float(w)), arb(float(b)), arb(float(c))) for w, b, c in zip(*columns, strict=True)]


def score_gate(work: Workspace) -> float:
    """Closes a score, which may be larger than any value: B exceeds all of them, by its choice."""
    return max(work.gate * 2.0**20, work.big)


class TermColumns(Transport):
    """A column for each of m terms: all of them read column 0 of a, and ask."""

    soft = True
    live_constants = True

    def __init__(self, name: str, terms: int, longest: int) -> None:
        self.name, self.terms, self.longest = name, terms, longest

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        if self.longest > d:
            raise SizeError(f"{self.name!r} takes a vector of {self.longest} entries, a machine with size={d} has columns "
                            f"of {d}: build it with size={self.longest} or more")
        return tuple(ScratchColumn("term", k, 0) for k in range(self.terms)) + outputs(d)

    def asks(self, column: ScratchColumn, d: int) -> bool:
        return column.kind == "term" and column.index < self.terms

    def constants(self, d: int) -> tuple[Constant, ...]:
        return (Constant(self.mask, self.terms, lambda c: all_but(self.terms, c.index if c.kind == "term" else None)),)

    @property
    def mask(self) -> str:
        """The rows that are 0 for a column's own term."""
        return f"not_term_of_{self.terms}"


class Terms(TermColumns):
    """A sum of m sigmoids: term column k computes sigmoid(x . a_k + b_k), by the cells 1 and 0 as live keys."""

    def __init__(self, name: str, fit: SigmoidSum) -> None:
        super().__init__(f"terms_{name}", fit.terms, fit.entries)
        self.fit = fit

    def largest_score(self, limit: float) -> float:
        return self.fit.largest_score(limit)

    def units(self, d: int) -> int:
        return 2 * self.terms

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return ((f"{self.name}_score", 1), (f"{self.name}_weight", 1))

    def prepare(self, work: Workspace) -> Part:
        """The score x . a_k + b_k in term column k."""
        scores = self.fit.scores(work.operand[: self.longest], work.one)
        closed = work.off(self.name) + work.rows(self.mask)
        return assign(work.rows(f"{self.name}_score"), gated(scores, closed, score_gate(work)).total())

    def shares(self, work: Workspace) -> list[Share]:
        unit = work.rows("unit")
        return [Share(work.rows(f"{self.name}_score"), unit, unit, work.rows(f"{self.name}_weight"))]

    def finish(self, work: Workspace, off: Expression) -> Expression:
        """m c_k sigmoid(x . a_k + b_k) + constant in term column k; the m columns are averaged when they are written."""
        closed = off + work.rows(self.mask)
        weight = work.rows(f"{self.name}_weight").repeat(self.terms)
        terms = relu(weight - work.gate * closed).total(self.terms * self.fit.coefficients)
        return terms + self.fit.constant * relu(work.one.repeat(self.terms) - work.gate * closed).total()


class TermsLemma(Lemma):
    """Corollary (sums of sigmoids, one head): 3 layers, 1 head, m columns, the terms in the dimension.

    1. Column k takes x, column 0 of a, and makes the score x . a_k + b_k. 2. It finds the column that holds 1 with that
    score and the column of zeros with score 0. (Without the second, which the print leaves out, the softmax over a single
    column gives 1.) 3. Column 2 d takes the sum of the m columns.
    """

    depth = 3

    def __init__(self, fit: SigmoidSum) -> None:
        self.fit, self.terms = fit, fit.terms

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": self.fit.entries, "score": 1, "asking": 1, "weight": 1, "share": 1}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        m, off, one, unit = self.terms, work.not_called, work.one, work.rows("unit")
        copy, score, asking, weight, share = self.own(work)
        term, shut = work.rows("term")[:m], off + work.rows("not_term")[:m]
        terms = gated(weight.repeat(m), shut, work.gate).total(m * self.fit.coefficients)
        return [
            find(term.total(), work.rows("a_lane")[0], work.own("x")[: copy.size], copy)
            + assign(score, gated(self.fit.scores(copy, one), shut, score_gate(work)).total())
            + assign(asking, relu(term.total() - off)),
            mix(stack(score, -work.big * asking), stack(unit, work.rows("not_constant")), unit, weight)
            + assign(share, terms + gated(self.fit.constant * one, off, work.gate)),
            find(work.rows("c_lane")[0], term.total(), share, work.own("result")[:1], winners=m),
        ]


class HeadsLemma(Lemma):
    """Lemma (sums of sigmoids): 3 layers and m heads, a term a head.

    1. Column d takes x, column 0 of a. 2. In head k, column d finds the column that holds 1 with score x . a_k + b_k +
    log(n - 1), every other column with score 0: n - 1 of them, so the weight of the first is sigmoid(x . a_k + b_k). (The
    print has - log(3 d - 1); n is the number of all columns.) 3. Column 2 d takes the sum.
    """

    depth = 3

    def __init__(self, fit: SigmoidSum) -> None:
        self.fit, self.heads = fit, fit.terms

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": self.fit.entries, "ask": 1, "sum": 1}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        fit, unit, asks = self.fit, work.rows("unit"), work.rows("b_lane")[0]
        copy, ask, total = self.own(work)
        soft = Part()
        for a, b, coefficient in zip(fit.directions, fit.biases, fit.coefficients, strict=True):
            score = copy.total(a) + (float(b) + math.log(work.columns - 1)) * ask
            soft += mix(score, unit, float(coefficient) * unit, total)
        return [
            find(asks, work.rows("a_lane")[0], work.own("x")[: copy.size], copy)
            + assign(ask, relu(asks - work.not_called)),
            soft + assign(total, total + fit.constant * ask),
            find(work.rows("c_lane")[0], asks, total, work.own("result")[:1]),
        ]
