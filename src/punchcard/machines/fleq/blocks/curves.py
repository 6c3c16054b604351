"""Functions of one number that one softmax evaluates, entry by entry on matrices.

A column that holds an entry x asks with a score for each live key. A curve says who is live, what the scores are, what is
taken from the keys, and what is made of the mean. With the cells 1 and 0 as keys, at the scores s and 0, the weights are
sigmoid(s) and the rest:

    sigmoid    s = x
    tanh       s = 2 x; then 2 . - 1
    exp        s = x - t, value e^t: for x - t far below 0, sigmoid is the exponential itself
    positive   s = G x with a huge G: 0, 1/2 or 1; then 2 relu(. - 1/2)

With a table's columns as keys the mean is any smooth function (see `table`). In all designs each entry (g, i) of a matrix
has a column of the scratchpad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from punchcard.machines.fleq.blocks.block import Block, Scale
from punchcard.machines.fleq.blocks.enclosure import REFERENCE_UNIT, Enclosure, round_up, within
from punchcard.machines.fleq.blocks.lemmas import Lemma, LemmaWorkspace, find, mix
from punchcard.machines.fleq.blocks.table import Table
from punchcard.machines.fleq.blocks.transport import Share, Transport, copies_of, not_copy, outputs
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace
from punchcard.machines.fleq.functions import Array, Function, Smooth
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, Rows, gated, relu, stack

DEAD_ZONE = 2.0**-60
"""Where `positive` has no meaning: between 0 and this part of the range."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of one number. Curves with the same name are the same.

    query       what a column asks with its entry x, where `asking` is 1; all is 0 elsewhere
    enclosure   the error over all operands within the domain and the range, for the limit of values and the unit roundoff
    finish      what is made of the mean
    factor      times which the cell 1 gives its value
    constants   what is in a table's columns, in a row for each name: the keys, and `value`. Without one the cells are live
    sides       2: the query is made of relu(x) and relu(-x), one of which is 0, instead of x
    """

    name: str
    query: Callable[[Expression, Expression], Expression]
    enclosure: Callable[[float, float], Enclosure]
    finish: Callable[[Expression, Expression], Expression] = lambda mean, one: mean
    factor: float = 1.0
    constants: Mapping[str, Array] = field(default_factory=dict)
    sides: int = 1
    table: Table | None = None

    @property
    def terms(self) -> int:
        """The columns of its table."""
        return len(self.constants["value"]) if self.constants else 0

    def key_and_value(self, unit: Rows, table: Callable[[str], Rows]) -> tuple[Expression, Expression]:
        """Of the live columns: the table's, whose rows are known by name, or the cell 1, where `unit` is 1.

        The cell of zeros gives nothing: all columns that ask for nothing find it.
        """
        if not self.constants:
            return unit, self.factor * unit
        return stack(*(table(name) for name in self.constants if name != "value")), table("value")

    def best_score(self, limit: float) -> float:
        """What the best score of a column that asks is at least, for operands within ±limit.

        Of two sides, each may be anything within the limit as far as an engine can tell.
        """
        if not self.constants:
            return 0.0
        slopes = sum(np.abs(rows) for name, rows in self.constants.items() if name not in ("offset", "value"))
        return float(np.max(self.constants["offset"] - slopes * limit))


SIGMOIDS = Curve("sigmoids", query=lambda x, asking: x, enclosure=lambda limit, unit: Enclosure(
    # exp, sum, division, and the two of the reference; the score itself is exact
    0.0, 6 * unit + 2 * REFERENCE_UNIT, within(limit)))
TANGENTS = Curve("tangents", query=lambda x, asking: 2 * x, enclosure=lambda limit, unit: Enclosure(
    0.0, 2 * (6 * unit + 2 * REFERENCE_UNIT), within(limit)), finish=lambda mean, one: 2 * mean - one)


def exponential(name: str, high: float, unit: float) -> Curve:
    """e^x for x up to `high`: e^t sigmoid(x - t), which is e^x (1 - e^(x - t) + ...), with e^(x - t) below the roundoff."""
    shift = high + math.ceil(-math.log(unit)) + 1
    top = math.exp(high)

    def enclosure(limit: float, unit: float) -> Enclosure:
        """e^t sigmoid(x - t) = e^x / (1 + e^(x - t)): below e^x by the part e^(high - t) at most."""
        return Enclosure(round_up(top * math.exp(high - shift)), round_up(top * unit * (limit + shift + 9)),
                         f"[-{limit:g}, {high:g}]")

    return Curve(name, lambda x, asking: x - shift * asking, enclosure, factor=math.exp(shift))


def positive(limit: float) -> Curve:
    """1 where x > 0, else 0, exactly; but for x between 0 and `DEAD_ZONE` times the range, where it is in between.

    The weight of the cell 1 is 1 where G x is above 38 (the other weight is then rounded away), 1/2 at 0 and less below.
    """
    zone = DEAD_ZONE * limit
    steepness = 2.0 ** math.ceil(math.log2(64 / zone))
    return Curve("signs", query=lambda x, asking: steepness * x, enclosure=lambda limit, unit: Enclosure(
        0.0, 0.0, f"{within(limit)} without 0 < x < {zone:.3g}"), finish=lambda mean, one: relu(2 * mean - one))


def tabulated(name: str, table: Table, smooth: Smooth, odd_unit: float | None = None) -> Curve:
    """A table: a column asks with x and 1, the table's columns answer with slope and offset, and give their value.

    With the roundoff as `odd_unit`, a table of positive operands is for both signs: f(-x) = -f(x). It is there twice, once
    for relu(x) and with the other sign for relu(-x). A column of the wrong side is kept out by a score that falls by P for
    each unit of the other part, which is exactly 0 on the right side.
    """
    constants = {"slope": table.slopes, "offset": table.offsets, "value": table.values}
    if odd_unit is not None:
        # at the least operand, the best offset of the wrong side is below the best score, 0 or more, by what rounds away
        fall = (float(table.offsets.max()) + 2 * math.ceil(-math.log(odd_unit))) / table.low
        against = np.full_like(table.slopes, -fall)
        constants = {
            "plus": np.concatenate([table.slopes, against]), "minus": np.concatenate([against, table.slopes]),
            "offset": np.tile(table.offsets, 2), "value": np.concatenate([table.values, -table.values]),
        }
    return Curve(name, stack, lambda limit, unit: table.enclosure(smooth, unit), constants=constants,
                 sides=1 if odd_unit is None else 2, table=table)


class Entries(Transport):
    """Copy (g, i) of column i of a keeps its entry g, and computes the curve of it.

    The results of a lane's d columns are entries of one column: each is in its own row, d times as large, and they are
    averaged when they are written.
    """

    soft = True

    def __init__(self, curve: Curve) -> None:
        self.curve, self.name = curve, f"curve_{curve.name}"
        self.live_constants = not curve.terms

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        return copies_of(d, d) + tuple(ScratchColumn("term", k, 0) for k in range(self.curve.terms)) + outputs(d)

    def asks(self, column: ScratchColumn, d: int) -> bool:
        return column.kind == "copy" and column.index < d

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
