"""Several functions in one block, chosen by an indicator in the data: the lemma of section 6.1 as it is stated.

    f(x, e) = f_j(x) = c_j0 + sum_k c_jk sigmoid(a_jk . x + b_jk)         for e = e_j, the j-th unit vector

x is column 0 of operand a, a number or a vector; e is column 0 of operand b. All functions share the m terms' columns, or
the m heads: the key is made from e and the query from x, so the score is sum_j e_j (a_jk . x + b_jk), and what is taken is
e_j. So the data choose, and nothing is switched: no gate, no branch, and the program is the same for every choice.

A constant is one more term with the score 0: its sigmoid is 1/2, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from punchcard.errors import FitError
from punchcard.machines.fleq.blocks.block import Block, Scale
from punchcard.machines.fleq.blocks.enclosure import Enclosure
from punchcard.machines.fleq.blocks.lemmas import Lemma, LemmaWorkspace, find, mix
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum, TermColumns, score_gate
from punchcard.machines.fleq.blocks.transport import Share
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace
from punchcard.machines.fleq.functions import Function
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, Rows, gated, relu, stack


class Several:
    """N sums of m terms each, over vectors, side by side: a_jk, b_jk and c_jk.

    Each constant is the last of its terms. Shorter sums are filled up with zeros.
    """

    def __init__(self, fits: Sequence[SigmoidSum]) -> None:
        widths = {fit.entries for fit in fits}
        if len(widths) != 1:
            raise FitError(f"functions of vectors of {sorted(widths)} entries in one block: all must take as many")
        self.choices, self.terms, self.entries = len(fits), max(fit.terms for fit in fits) + 1, widths.pop()
        self.directions = np.zeros((self.choices, self.terms, self.entries))
        self.biases, self.coefficients = np.zeros((2, self.choices, self.terms))
        for j, fit in enumerate(fits):
            self.directions[j, : fit.terms], self.biases[j, : fit.terms] = fit.directions, fit.biases
            self.coefficients[j, : fit.terms], self.coefficients[j, -1] = fit.coefficients, 2 * fit.constant

    def scores(self, x: Expression, one: Expression) -> list[Expression]:
        """For every function, the scores of its terms, one below the other."""
        return [x.through(a) + one.through(b[:, None]) for a, b in zip(self.directions, self.biases, strict=True)]


class ChosenTerms(TermColumns):
    """Term column k asks output column 0, which holds the indicator, with its N scores; live is the cell 0 beside it."""

    def __init__(self, name: str, sums: Several) -> None:
        super().__init__(f"chosen_{name}", sums.terms, max(sums.entries, sums.choices))
        self.sums = sums

    def largest_score(self, limit: float) -> float:
        """Any entry of the indicator may be as large as the range, for an engine that knows no better."""
        reach = np.abs(self.sums.directions).sum(axis=2) * limit + np.abs(self.sums.biases)
        return float(reach.sum(axis=0).max()) * max(1.0, limit)

    def live(self, column: ScratchColumn) -> bool:
        return column.kind == "output" and column.lane == 0

    def constants(self, d: int) -> tuple[Constant, ...]:
        return (*super().constants(d), Constant("not_first_output", 1, lambda c: [float(not self.live(c))]))

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return tuple((f"{self.name}_{row}", self.sums.choices) for row in ("score", "choice", "weight"))

    def units(self, d: int) -> int:
        return 2 * self.sums.choices * self.sums.terms

    def prepare(self, work: Workspace) -> Part:
        """N scores in every term column, and the indicator in output column 0."""
        off, x = work.off(self.name), work.operand
        closed, gate = off + work.rows(self.mask), score_gate(work)
        scores = (gated(s, closed, gate).total() for s in self.sums.scores(x[: self.sums.entries], work.one))
        choice = gated(x[: self.sums.choices], off + work.rows("not_first_output"), work.gate)
        return assign(self._row(work, "score"), stack(*scores)) + assign(self._row(work, "choice"), choice)

    def shares(self, work: Workspace) -> list[Share]:
        """The cell 1 is kept out: beside the indicator only the cell 0 has a share."""
        score, choice, weight = (self._row(work, row) for row in ("score", "choice", "weight"))
        return [Share(stack(score, -work.big * work.rows(f"active.{self.name}")), stack(choice, work.rows("unit")),
                      choice, weight)]

    def finish(self, work: Workspace, off: Expression) -> Expression:
        """m sum_j c_jk e_j sigmoid(...) in term column k; the m columns are averaged when they are written."""
        return mixed(self.sums, self._row(work, "weight"), off + work.rows(self.mask), work.gate)

    def _row(self, work: Workspace, row: str) -> Rows:
        return work.rows(f"{self.name}_{row}")


def mixed(sums: Several, weight: Rows, closed: Expression, gate: float) -> Expression:
    """m sum_j c_jk weight_j in term column k, which `closed`, a row for each term, tells."""
    shares = [gated(weight[j].repeat(sums.terms), closed, gate).total(sums.terms * c)
              for j, c in enumerate(sums.coefficients)]
    return sum(shares[1:], start=shares[0])


class ChosenTermsLemma(Lemma):
    """The corollary with an indicator: 3 layers, 1 head, m columns.

    1. Column k takes x, column 0 of a, and makes its N scores; column d keeps the indicator, column 0 of b, as the key.
    2. It finds column d and the column of zeros. 3. Column 2 d takes the sum of the m columns.
    """

    depth = 3

    def __init__(self, sums: Several) -> None:
        self.sums, self.terms = sums, sums.terms

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": self.sums.entries, "asking": 1, "share": 1,
                **dict.fromkeys(("score", "choice", "weight"), self.sums.choices)}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        m, off, one = self.terms, work.not_called, work.one
        copy, asking, share, score, choice, weight = self.own(work)
        term, shut, first = work.rows("term")[:m], off + work.rows("not_term")[:m], work.rows("b_lane")[0]
        scores = (gated(s, shut, score_gate(work)).total() for s in self.sums.scores(copy, one))
        not_live = work.rows("outside") - work.rows("sink") + one - first
        return [
            find(term.total(), work.rows("a_lane")[0], work.own("x")[: copy.size], copy)
            + assign(score, stack(*scores))
            + assign(choice, kept_choice(work, self.sums))
            + assign(asking, relu(term.total() - off)),
            mix(stack(score, -work.big * asking), stack(choice, not_live), choice, weight)
            + assign(share, mixed(self.sums, weight, shut, work.gate)),
            find(work.rows("c_lane")[0], term.total(), share, work.own("result")[:1], winners=m),
        ]


class ChosenHeadsLemma(Lemma):
    """The lemma (sums of sigmoids) itself: 3 layers and m heads, for N functions together.

    1. Column d, which holds the indicator, takes x. 2. In head k it finds itself with the score
    sum_j e_j (a_jk . x + b_jk) + log(n - 1), and every other column with 0; V brings sum_j c_jk e_j. 3. Column 2 d takes
    the sum.
    """

    depth = 3

    def __init__(self, sums: Several) -> None:
        self.sums, self.heads = sums, sums.terms

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": self.sums.entries, "ask": 1, "choice": self.sums.choices, "sum": 1}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        asks, sums = work.rows("b_lane")[0], self.sums
        copy, ask, choice, total = self.own(work)
        soft = Part()
        for k in range(sums.terms):
            key = stack(choice.through(sums.directions[:, k].T), choice.total(sums.biases[:, k]), asks)
            value = choice.total(sums.coefficients[:, k])
            soft += mix(stack(copy, ask, math.log(work.columns - 1) * ask), key, value, total)
        return [
            find(asks, work.rows("a_lane")[0], work.own("x")[: copy.size], copy)
            + assign(ask, relu(asks - work.not_called))
            + assign(choice, kept_choice(work, sums)),
            soft,
            find(work.rows("c_lane")[0], asks, total, work.own("result")[:1]),
        ]


def kept_choice(work: LemmaWorkspace, sums: Several) -> Expression:
    """The indicator, in column d alone: in part b the other columns are 0, in part a they hold x."""
    return gated(work.own("x")[: sums.choices], work.not_called + work.rows("not_b"), work.gate)


class ChosenFunction(Block):
    """f_j(x) for the j that an indicator in the data names; `fits` are the sums of sigmoids of the f_j.

    `head_each` is the lemma with m heads, in the paper's design.
    """

    def __init__(self, function: Function, fits: Sequence[SigmoidSum], *, head_each: bool = False) -> None:
        if not fits:
            raise FitError(f"function {function.name!r} of no fits: it chooses among at least one")
        self.function, self.fits, self.sums = function, tuple(fits), Several(fits)
        self.transport = ChosenTerms(function.name, self.sums)
        self.lemma = ChosenHeadsLemma(self.sums) if head_each else ChosenTermsLemma(self.sums)

    def enclosure(self, scale: Scale) -> Enclosure:
        """Of the worst choice: what the fit is off by, and its rounding, twice for the product with the indicator."""
        return max((fit.enclosure(None, 2 * scale.unit) for fit in self.fits), key=lambda found: found.error)
