"""Functions of one number that one softmax evaluates, entry by entry on matrices.

A column that holds an entry x asks with a score for each live key. A curve says who is live, what the scores are, what is
taken from the keys, and what is made of the mean. With the cells 1 and 0 as keys, at the scores s and 0, the weights are
sigmoid(s) and the rest:

    sigmoid    s = x
    tanh       s = 2 x; then 2 . - 1
    exp        s = x - t, value e^t: for x - t far below 0, sigmoid is the exponential itself
    positive   s = G x with a huge G: 0, 1/2 or 1; then 2 relu(. - 1/2)

With a table's columns as keys the mean is any smooth function (see `table`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from punchcard.machines.fleq.blocks.enclosure import Enclosure, round_up
from punchcard.machines.fleq.blocks.table import Table
from punchcard.machines.fleq.functions import Array, Smooth
from punchcard.transformer.expression import Expression, Rows, relu, stack

REFERENCE_UNIT = 2.0**-53
"""The unit roundoff of float64, in which references are computed."""
DEAD_ZONE = 2.0**-60
"""Where `positive` has no meaning: between 0 and this part of the range."""


def within(limit: float) -> str:
    """The range of operands, in words."""
    return f"[-{limit:g}, {limit:g}]"


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
    steepness = 2.0 ** math.ceil(math.log2(64 / (DEAD_ZONE * limit)))
    return Curve("signs", query=lambda x, asking: steepness * x, enclosure=lambda limit, unit: Enclosure(
        0.0, 0.0, f"{within(limit)}, but for its dead zone"), finish=lambda mean, one: relu(2 * mean - one))


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
