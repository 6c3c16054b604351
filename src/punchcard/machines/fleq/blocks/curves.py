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
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from punchcard.machines.fleq.blocks.enclosure import Enclosure, round_up
from punchcard.machines.fleq.blocks.table import Table
from punchcard.machines.fleq.functions import Array, Smooth
from punchcard.transformer.expression import Expression, Rows, relu, stack

REFERENCE_UNIT = 2.0**-53
"""The unit roundoff of float64, in which references are computed."""
DEAD_ZONE = 2.0**-60
"""Where `positive` has no meaning: between 0 and this part of the range."""


@dataclass(frozen=True)
class Keys:
    """Rows of the live columns: 1 in the cell that holds 1, and the table's own, by name.

    The cell of zeros gives nothing: all columns that ask for nothing find it.
    """

    unit: Rows
    table: Callable[[str], Rows]


def within(limit: float) -> str:
    """The range of operands, in words."""
    return f"[-{limit:g}, {limit:g}]"


class Curve(ABC):
    """A function of one number. Curves with the same name are the same."""

    name: str
    terms: int = 0
    """The columns of its table; without one the cells 1 and 0 are live."""
    constants: Mapping[str, Array] = MappingProxyType({})
    """What is in the table's columns, in a row for each name; it never changes."""
    sides: int = 1
    """2: the query is made of relu(x) and relu(-x), one of which is 0, instead of x."""

    @abstractmethod
    def query(self, x: Expression, asking: Expression) -> Expression:
        """What a column asks, where `asking` is 1; all is 0 elsewhere."""

    def key(self, keys: Keys) -> Expression:
        return keys.unit

    def value(self, keys: Keys) -> Expression:
        return keys.unit

    def finish(self, mean: Expression, one: Expression) -> Expression:
        return mean

    def best_score(self, limit: float) -> float:
        """What the best score of a column that asks is at least, for operands within ±limit."""
        return 0.0

    @abstractmethod
    def enclosure(self, limit: float, unit: float) -> Enclosure:
        """The error over all operands within the domain and the range."""


class Sigmoid(Curve):
    name = "sigmoids"

    def query(self, x: Expression, asking: Expression) -> Expression:
        return x

    def enclosure(self, limit: float, unit: float) -> Enclosure:
        """exp, sum, division, and the two of the reference; the score itself is exact."""
        return Enclosure(0.0, 6 * unit + 2 * REFERENCE_UNIT, within(limit))


class Tanh(Curve):
    """2 sigmoid(2 x) - 1."""

    name = "tangents"

    def query(self, x: Expression, asking: Expression) -> Expression:
        return 2 * x

    def finish(self, mean: Expression, one: Expression) -> Expression:
        return 2 * mean - one

    def enclosure(self, limit: float, unit: float) -> Enclosure:
        return Enclosure(0.0, 2 * (6 * unit + 2 * REFERENCE_UNIT), within(limit))


class Exponential(Curve):
    """e^x for x up to `high`: e^t sigmoid(x - t), which is e^x (1 - e^(x - t) + ...), with e^(x - t) below the roundoff."""

    def __init__(self, name: str, high: float, unit: float) -> None:
        self.name, self.high = name, high
        self.shift = high + math.ceil(-math.log(unit)) + 1

    def query(self, x: Expression, asking: Expression) -> Expression:
        return x - self.shift * asking

    def value(self, keys: Keys) -> Expression:
        return math.exp(self.shift) * keys.unit

    def enclosure(self, limit: float, unit: float) -> Enclosure:
        """e^t sigmoid(x - t) = e^x / (1 + e^(x - t)): below e^x by the part e^(high - t) at most."""
        high = math.exp(self.high)
        return Enclosure(round_up(high * math.exp(self.high - self.shift)), round_up(high * unit * (limit + self.shift + 9)),
                         f"[-{limit:g}, {self.high:g}]")


class Positive(Curve):
    """1 where x > 0, else 0, exactly; but for x between 0 and `DEAD_ZONE` times the range, where it is in between.

    The weight of the cell 1 is 1 where G x is above 38 (the other weight is then rounded away), 1/2 at 0 and less below.
    """

    name = "signs"

    def __init__(self, limit: float) -> None:
        self.steepness = 2.0 ** math.ceil(math.log2(64 / (DEAD_ZONE * limit)))

    def query(self, x: Expression, asking: Expression) -> Expression:
        return self.steepness * x

    def finish(self, mean: Expression, one: Expression) -> Expression:
        return relu(2 * mean - one)

    def enclosure(self, limit: float, unit: float) -> Enclosure:
        return Enclosure(0.0, 0.0, f"{within(limit)}, but for its dead zone")


class Tabulated(Curve):
    """A table: a column asks with x and 1, the table's columns answer with slope and offset, and give their value."""

    def __init__(self, name: str, table: Table, smooth: Smooth) -> None:
        self.name, self.table, self.smooth = name, table, smooth
        self.terms = len(table.values)
        self.constants = {"slope": table.slopes, "offset": table.offsets, "value": table.values}

    def query(self, x: Expression, asking: Expression) -> Expression:
        return stack(x, asking)

    def key(self, keys: Keys) -> Expression:
        return stack(keys.table("slope"), keys.table("offset"))

    def value(self, keys: Keys) -> Expression:
        return keys.table("value")

    def best_score(self, limit: float) -> float:
        return float(np.max(self.table.offsets - np.abs(self.table.slopes) * limit))

    def enclosure(self, limit: float, unit: float) -> Enclosure:
        return self.table.enclosure(self.smooth, unit)


class OddTable(Tabulated):
    """A table of positive operands, for both signs: f(-x) = -f(x).

    The table is there twice, once for relu(x) and with the other sign for relu(-x). A column of the wrong side is
    kept out by a score that falls by P for each unit of the other part, which is exactly 0 on the right side.
    """

    sides = 2

    def __init__(self, name: str, table: Table, smooth: Smooth, unit: float) -> None:
        super().__init__(name, table, smooth)
        self.terms *= 2
        # at the least operand, the best offset of the wrong side is below the best score, 0 or more, by what rounds away
        fall = (float(table.offsets.max()) + 2 * math.ceil(-math.log(unit))) / table.low
        against = np.full_like(table.slopes, -fall)
        self.constants = {
            "plus": np.concatenate([table.slopes, against]), "minus": np.concatenate([against, table.slopes]),
            "offset": np.tile(table.offsets, 2), "value": np.concatenate([table.values, -table.values]),
        }

    def key(self, keys: Keys) -> Expression:
        return stack(keys.table("plus"), keys.table("minus"), keys.table("offset"))

    def best_score(self, limit: float) -> float:
        """Of the two parts, each may be anything within the limit as far as an engine can tell."""
        slopes = np.abs(self.constants["plus"]) + np.abs(self.constants["minus"])
        return float(np.max(self.constants["offset"] - slopes * limit))
