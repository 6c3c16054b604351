"""Curves of every entry of a matrix, in both designs: a column of the scratchpad for each entry (g, i).

In the compact design copy (g, i) of column i of a keeps its entry g. The results of a lane's d columns are entries of one
column: each is in its own row, d times as large, and they are averaged when they are written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from punchcard.machines.fleq.blocks.bench import Bench, Constant, ScratchColumn
from punchcard.machines.fleq.blocks.block import Block, Scale
from punchcard.machines.fleq.blocks.curves import Curve, Keys
from punchcard.machines.fleq.blocks.lemmas import MATCH_GAP, Lemma, LemmaBench, hand_over, power_of_two
from punchcard.machines.fleq.blocks.transport import Share, Transport, copies_of, not_copy, outputs
from punchcard.machines.fleq.functions import Array, Function
from punchcard.transformer.build import Part, assign, attend
from punchcard.transformer.expression import Expression, relu, stack
from punchcard.transformer.gate import gated


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
        signs = ((f"{self.name}_not_plus", 1), (f"{self.name}_not_minus", 1)) if self.curve.odd else ()
        return ((f"{self.name}_x", 1), (f"{self.name}_mean", 1), *signs)

    def units(self, d: int) -> int:
        return (6 if self.curve.odd else 2) * d

    def prepare(self, bench: Bench) -> Part:
        d, closed = bench.size, bench.off(self.name) + bench.rows("not_copy")
        x = bench.operand[:d]
        if not self.curve.odd:
            return assign(bench.rows(f"{self.name}_x"), gated(x, closed, bench.gate).total())
        part = assign(bench.rows(f"{self.name}_x"), gated(relu(x) + relu(-x), closed, bench.gate).total())
        for name, sign in (("not_plus", x), ("not_minus", -x)):
            here = bench.rows(f"asks_{self.name}")
            part += assign(bench.rows(f"{self.name}_{name}"), here - reaches(sign, bench.one, self.curve.odd, closed,
                                                                             bench.gate))
        return part

    def shares(self, bench: Bench) -> list[Share]:
        keys = Keys(bench.rows("unit"), lambda row: bench.rows(f"{self.name}_{row}"))
        query = self.curve.query(bench.rows(f"{self.name}_x"), bench.rows(f"active.{self.name}"))
        return [Share(query, self.curve.key(keys), self.curve.value(keys), bench.rows(f"{self.name}_mean"))]

    def finish(self, bench: Bench, off: Expression) -> Expression:
        """Entry g of the result, d times, in column (g, i)."""
        d, closed = bench.size, off + bench.over + bench.rows("not_copy")
        result = self.curve.finish(bench.rows(f"{self.name}_mean"), bench.one).repeat(d)
        if not self.curve.odd:
            return d * gated(result, closed, bench.gate)
        plus, minus = (gated(result, closed + bench.rows(f"{self.name}_{name}"), bench.gate)
                       for name in ("not_plus", "not_minus"))
        return d * plus - d * minus


def reaches(x: Expression, one: Expression, least: float, closed: Expression, gate: float) -> Expression:
    """The sum over the rows of x of 1 where x >= least, 0 where x <= 0, but for closed ones: exactly, for x up to 2^52."""
    steps = relu(1 / least * x) - relu(1 / least * x - one.repeat(x.size))
    return gated(steps, closed, gate).total()


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
        signs = {"not_plus": 1, "not_minus": 1} if self.curve.odd else {}
        return {"copy": d, "entry": 1, "asking": 1, "mean": 1, "spread": d} | signs

    def layers(self, bench: LemmaBench) -> list[Part]:
        d, off, gate, shut = bench.size, bench.off, bench.gate, bench.rows("not_grid_group")
        copy, entry, asking, mean, spread = (bench.own(n) for n in ("copy", "entry", "asking", "mean", "spread"))
        keys = Keys(bench.rows("unit"), bench.own)
        not_live: Expression = bench.rows("not_constant")
        if self.curve.terms:
            not_live = bench.rows("outside") + bench.one - bench.own("live")
        grid = bench.rows("grid_lane").total()
        size = relu(copy) + relu(-copy) if self.curve.odd else copy
        first = (hand_over(bench, "grid_lane", "a_lane", bench.own("x")[:d], copy)
                 + assign(entry, gated(size, off + shut, gate).total()) + assign(asking, relu(grid - off)))
        result, closed = self.curve.finish(mean, bench.one).repeat(d), off + shut + bench.over
        made = gated(result, closed, gate)
        if self.curve.odd:
            for name, sign in (("not_plus", copy), ("not_minus", -copy)):
                first += assign(bench.own(name), grid - reaches(sign, bench.one, self.curve.odd, off + shut, gate))
            plus, minus = (gated(result, closed + bench.own(name), gate) for name in ("not_plus", "not_minus"))
            made = plus - minus
        return [
            first,
            attend(query=stack(self.curve.query(entry, asking), -bench.big * asking),
                   key=stack(self.curve.key(keys), not_live), value=self.curve.value(keys), into=mean, gap=1.0, temperature=1.0)
            + assign(spread, made),
            attend(query=bench.rows("c_lane"), key=bench.rows("grid_lane"), value=d * spread, into=bench.own("result")[:d],
                   gap=MATCH_GAP, winners=power_of_two(d)),
        ]


class EntriesFunction(Block):
    """A curve of every entry of a matrix."""

    def __init__(self, function: Function, curve: Curve) -> None:
        self.function, self.curve = function, curve
        self.transport: Entries = Entries(curve)
        self.lemma = EntriesLemma(curve)

    def finish(self, bench: Bench, off: Expression) -> Expression:
        return self.transport.finish(bench, off)

    def bound(self, scale: Scale) -> float:
        """The curve's, and that of averaging d columns where d is not a power of two."""
        averaging = 0.0 if scale.size & (scale.size - 1) == 0 else 4 * scale.unit * scale.range
        return self.curve.bound(scale.range, scale.unit) + averaging
