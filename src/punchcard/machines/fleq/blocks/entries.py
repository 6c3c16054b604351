"""Curves of every entry of a matrix, in all designs: a column of the scratchpad for each entry (g, i).

In the compact design copy (g, i) of column i of a keeps its entry g. The results of a lane's d columns are entries of one
column: each is in its own row, d times as large, and they are averaged when they are written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from punchcard.machines.fleq.blocks.block import Block, Scale
from punchcard.machines.fleq.blocks.curves import Curve
from punchcard.machines.fleq.blocks.enclosure import Enclosure
from punchcard.machines.fleq.blocks.lemmas import Lemma, LemmaWorkspace, find, mix
from punchcard.machines.fleq.blocks.transport import Share, Transport, copies_of, not_copy, outputs
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace
from punchcard.machines.fleq.functions import Array, Function
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, gated, relu, stack


class Entries(Transport):
    """Copy (g, i) computes the curve of entry g of column i."""

    soft = True

    def __init__(self, curve: Curve) -> None:
        self.curve, self.name = curve, f"curve_{curve.name}"
        self.live_constants = not curve.terms

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        return copies_of(d, d) + tuple(ScratchColumn("term", k, 0) for k in range(self.curve.terms)) + outputs(d)

    def asks(self, column: ScratchColumn, d: int) -> bool:
        return column.kind == "copy" and column.index < d

    def gives(self, column: ScratchColumn, d: int) -> bool:
        return self.asks(column, d)

    def live(self, column: ScratchColumn) -> bool:
        return column.kind == "term" and column.index < self.curve.terms

    def constants(self, d: int) -> tuple[Constant, ...]:
        table = self.curve.constants
        return (not_copy(d), *(Constant(f"{self.name}_{row}", 1, self._standing(values)) for row, values in table.items()))

    def _standing(self, values: Array) -> Callable[[ScratchColumn], list[float]]:
        return lambda column: [float(values[column.index])] if self.live(column) else [0.0]

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return ((f"{self.name}_x", self.curve.sides), (f"{self.name}_mean", 1))

    def units(self, d: int) -> int:
        return 2 * d

    def prepare(self, work: Workspace) -> Part:
        closed = work.off(self.name) + work.rows("not_copy")
        entry = (gated(part, closed, work.gate).total() for part in parts(work.operand[: work.size], self.curve.sides))
        return assign(work.rows(f"{self.name}_x"), stack(*entry))

    def shares(self, work: Workspace) -> list[Share]:
        query = self.curve.query(work.rows(f"{self.name}_x"), work.rows(f"active.{self.name}"))
        key, value = self.curve.key_and_value(work.rows("unit"), lambda row: work.rows(f"{self.name}_{row}"))
        return [Share(query, key, work.size * value, work.rows(f"{self.name}_mean"))]

    def finish(self, work: Workspace, off: Expression) -> Expression:
        """Entry g of the result, d times, in column (g, i)."""
        d, closed = work.size, off + work.over + work.rows("not_copy")
        # The head has multiplied by d, not this formula: a factor that is not a power of two could not be seen to cancel
        # when the row is cleared.
        return gated(self.curve.finish(work.rows(f"{self.name}_mean"), d * work.one).repeat(d), closed, work.gate)


def parts(x: Expression, sides: int) -> tuple[Expression, ...]:
    """x, or its positive and its negative part."""
    return (x,) if sides == 1 else (relu(x), relu(-x))


class EntriesLemma(Lemma):
    """A curve of every entry: 3 layers, 1 head, d^2 columns (g, i), or as many as the table has.

    1. Column (g, i) takes column i of a and keeps its entry g. 2. It asks the live columns: the column that holds 1 and
    the column of zeros, or the columns 0, 1, ... of the table. 3. Column 2 d + i takes the sum of the columns (0, i), ...,
    (d - 1, i), which hold entry g in row g.
    """

    depth = 3

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        live = {"live": np.ones(curve.terms)} if curve.terms else {}
        self.constants = {**curve.constants, **live}

    def columns(self, d: int) -> int:
        return max(3 * d, d * d, self.curve.terms)

    def rows(self, d: int, height: int) -> dict[str, int]:
        return {"copy": d, "entry": self.curve.sides, "asking": 1, "mean": 1, "spread": d}

    def layers(self, work: LemmaWorkspace) -> list[Part]:
        d, off, gate = work.size, work.not_called, work.gate
        shut, lane = off + work.rows("not_grid_group"), work.rows("grid_lane")
        key, value = self.curve.key_and_value(work.rows("unit"), work.own)
        copy, entry, asking, mean, spread = self.own(work)
        not_live: Expression = work.rows("not_constant")
        if self.curve.terms:
            not_live = work.rows("outside") + work.one - work.own("live")
        entries = (gated(part, shut, gate).total() for part in parts(copy, self.curve.sides))
        return [
            find(lane, work.rows("a_lane"), work.own("x")[:d], copy)
            + assign(entry, stack(*entries)) + assign(asking, relu(lane.total() - off)),
            mix(stack(self.curve.query(entry, asking), -work.big * asking), stack(key, not_live), value, mean)
            + assign(spread, gated(self.curve.finish(mean, work.one).repeat(d), shut + work.over, gate)),
            find(work.rows("c_lane"), lane, d * spread, work.own("result")[:d], winners=d),
        ]


class EntriesFunction(Block):
    """A curve of every entry of a matrix."""

    def __init__(self, function: Function, curve: Curve) -> None:
        self.function, self.curve = function, curve
        self.transport = Entries(curve)
        self.lemma = EntriesLemma(curve)

    def enclosure(self, scale: Scale) -> Enclosure:
        """The curve's, and that of averaging d columns."""
        return self.curve.enclosure(scale.range, scale.unit).plus(scale.averaging)
