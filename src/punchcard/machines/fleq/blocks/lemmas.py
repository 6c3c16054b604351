"""The function blocks of the paper's design: each lemma as its own few layers, in rows of its own.

A block works in the scratchpad's columns 0 .. s - 1. Its rows `x` hold column i of operand a in column i and column i
of operand b in column d + i, for i < d (0 beyond the operand's width, and in all other columns). After its layers its
rows `result` hold column i of the result in column 2 d + i. All its rows are 0 while another function is called, so
it can do nothing then. Columns that ask for nothing take an average of everything; what they took is never looked at,
and is cleared at the end of the loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from punchcard.machines.fleq.blocks.workspace import Workspace
from punchcard.machines.fleq.functions import Array
from punchcard.transformer.build import Part, assign, attend
from punchcard.transformer.expression import Expression, Rows, gated, stack


@dataclass(frozen=True)
class LemmaWorkspace(Workspace):
    """What a lemma sees besides: the name of its block, all columns of the card, and these rows.

    a_lane, b_lane, c_lane      one-hot of i in columns i, d + i, 2 d + i;   not_a_lane, ...  1 minus that
    grid_lane, grid_group       for column g d + i < d^2: one-hot of i and of g;   not_grid_group
    term                        one-hot of k in column k, for sums of sigmoids
    """

    name: str
    columns: int

    def own(self, name: str) -> Rows:
        """Rows of this block alone."""
        return self.rows(f"{self.name}_{name}")

    @property
    def not_called(self) -> Rows:
        """0 when the block's function is called, else 1."""
        return self.off(self.name)


class Lemma(ABC):
    """The layers of a block, and what they need."""

    depth: int
    heads: int = 1
    terms: int = 1
    """Columns with a number of their own that it needs, as the terms of a sum have."""
    by_entry: bool = False
    """Whether it has a column (g, i) for each entry of an operand."""
    constants: Mapping[str, Array] = MappingProxyType({})
    """Rows of its own that never change: what is in the columns 0, 1, ... of the scratchpad."""
    masks_height: bool = False
    """Whether rows beyond the height of operand a are taken out of both operands before the first layer."""

    def rows(self, d: int, height: int) -> dict[str, int]:
        """Rows of its own besides x and result: names and sizes."""
        return {}

    def own(self, work: LemmaWorkspace) -> list[Rows]:
        """These rows, in their order."""
        return [work.own(name) for name in self.rows(work.size, 0)]

    def columns(self, d: int) -> int:
        """s: the columns it needs."""
        return max(3 * d, self.terms, d * d if self.by_entry else 0)

    @abstractmethod
    def layers(self, work: LemmaWorkspace) -> list[Part]:
        """The layers, first to last; there are `depth` of them."""


def find(query: Expression, key: Expression, value: Expression, into: Rows, winners: int = 1) -> Part:
    """A hard match of one-hot rows, which score 1 with themselves and 0 with each other; so many may win, and share.

    In the bookkeeping of exact weights only a power of two of them is known: others are not exact.
    """
    exact = winners if winners & (winners - 1) == 0 else 1
    return attend(query=query, key=key, value=value, into=into, gap=1.0, winners=exact)


def mix(query: Expression, key: Expression, value: Expression, into: Rows) -> Part:
    """A soft match: weights are the softmax of the scores as they are."""
    return attend(query=query, key=key, value=value, into=into, gap=1.0, temperature=1.0)


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
        taken = self.own(work)
        second = taken[1] if self.operands == 2 else 0 * taken[0]
        result = gated(self.formula(work, taken[0], second), work.not_called, work.gate)
        rest = work.own("result")[result.size :]
        moves = [find(work.rows("c_lane"), work.rows(lane), work.own("x"), into)
                 for lane, into in zip(("a_lane", "b_lane"), taken, strict=False)]
        return [*moves, assign(work.own("result"), stack(result, 0 * rest) if rest.size else result)]


class TransposeLemma(Lemma):
    """Lemma (transpose): 4 layers, 1 head, d^2 columns (g, i).

    1. Column (g, i) takes column i of a, and keeps its entry g: a_(g i).
    2. Column (g, i) takes from column (i, g): a_(i g), and puts it into row g.
    3. Column (g, i) takes the sum of columns (0, i), ..., (d - 1, i), an average times d: column i of the transpose.
    4. Column 2 d + i takes it from column (0, i).
    """

    depth = 4
    by_entry = True

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": d, "entry": 1, "swapped": 1, "spread": d, "turned": d}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        d, shut = work.size, work.not_called + work.rows("not_grid_group")
        copy, entry, swapped, spread, turned = self.own(work)
        lane, group = work.rows("grid_lane"), work.rows("grid_group")
        return [
            find(lane, work.rows("a_lane"), work.own("x")[:d], copy) + assign(entry, gated(copy, shut, work.gate).total()),
            find(stack(group, lane), stack(lane, group), entry, swapped)
            + assign(spread, gated(swapped.repeat(d), shut, work.gate)),
            find(lane, lane, d * spread, turned, winners=d),
            find(work.rows("c_lane"), work.rows("first_group_lane"), turned, work.own("result")[:d]),
        ]
