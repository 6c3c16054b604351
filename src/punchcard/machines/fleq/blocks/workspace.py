"""The workspace of function blocks in the compact FLEQ machine: columns of the scratchpad, and rows by name.

The scratchpad has several columns, each of which reads one column of one operand. A block says which columns it needs:

    copy    (g, i)   column i of operand a, once for each copy g
    output  (i)      column i of operand b; results are here unless a block says otherwise
    term    (k)      column 0 of operand a, once for each term k of a sum
    plus, minus (g)  column 0 of operand a, once for each entry g and sign

Blocks reach their rows by name through a `Workspace`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from punchcard.card.layout import Layout
from punchcard.transformer.expression import Rows, rows

Kind = Literal["copy", "output", "term", "plus", "minus"]


@dataclass(frozen=True)
class ScratchColumn:
    """A column of the scratchpad: its kind and number, and the operand's column (lane) that it reads."""

    kind: Kind
    index: int
    lane: int

    @property
    def operand(self) -> Literal["a", "b"]:
        return "b" if self.kind == "output" else "a"


@dataclass(frozen=True)
class Constant:
    """Rows that never change: a value for every column of the scratchpad."""

    name: str
    size: int
    of: Callable[[ScratchColumn], list[float]]


@dataclass(frozen=True)
class Workspace:
    """What a block sees: sizes, scales and rows by name.

    size      d, the most columns and rows of an operand
    gate      closes formulas over data;  big  decides hard matches and keeps columns out of a soft one
    reach     the largest entry of a product;  unit  the number format's roundoff
    one       1 in every column of the scratchpad, 0 elsewhere
    operand   what this column has read;  left  the column of a beside it (see `Beside`);  result  what will be written
    deep      for each of the d rows: 0 where operand a has that row, 1 beyond its height
    over      the same for the result
    """

    layout: Layout
    size: int
    gate: float
    big: float
    reach: float
    unit: float

    @property
    def one(self) -> Rows:
        return self.rows("scratch")

    @property
    def operand(self) -> Rows:
        return self.rows("operand")

    @property
    def left(self) -> Rows:
        return self.rows("left")

    @property
    def result(self) -> Rows:
        return self.rows("result")

    @property
    def deep(self) -> Rows:
        return self.rows("deep")

    @property
    def over(self) -> Rows:
        return self.rows("over")

    def rows(self, name: str) -> Rows:
        return rows(self.layout, name)

    def off(self, name: str) -> Rows:
        """0 when the function (or the transport) of this name is called, else 1."""
        return self.rows(f"off.{name}")


def one_hot(size: int, place: int | None) -> list[float]:
    """1 at a place, or nowhere."""
    return [float(i == place) for i in range(size)]


def all_but(size: int, place: int | None) -> list[float]:
    """0 at a place, 1 everywhere else: the gate of a one-hot row."""
    return [float(i != place) for i in range(size)]
