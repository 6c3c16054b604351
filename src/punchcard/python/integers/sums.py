"""Sums of cells and constants, which is what SUBLEQ computes best: every term of a sum costs one instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from punchcard.machines.von_neumann.languages.asq import items as asq
from punchcard.machines.von_neumann.languages.asq.items import Expression

Z, P, Q, R, U, V, ERROR = map(asq.scratch, ("z", "p", "q", "r", "u", "v", "error"))
"""Scratch cells: `$z` is 0 between instructions, the others are operands and results of routines."""
PORT = asq.number(-1)


@dataclass(frozen=True)
class CellSum:
    """A sum: how often each cell counts, a number, and how often the address of each label counts.

    A cell is the expression of its address. `passing`: a cell in it may be changed by what is computed next, so that it has
    to be copied before.
    """

    terms: Mapping[Expression, int] = field(default_factory=dict)
    number: int = 0
    addresses: Mapping[str, int] = field(default_factory=dict)
    passing: bool = False

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def known(self) -> int | None:
        return self.number if not self.terms and not self.addresses else None

    @property
    def cell(self) -> Expression | None:
        """The cell that the sum is, or None if it is more than one."""
        if len(self.terms) == 1 and not self.number and not self.addresses:
            (place, count), = self.terms.items()
            return place if count == 1 else None
        return None

    @property
    def has_constant(self) -> bool:
        return bool(self.number or self.addresses)

    def constant_operand(self, sign: int = 1) -> Expression:
        """The address of a cell that holds the constant part."""
        return asq.constant(self.constant_part(sign))

    def constant_part(self, sign: int = 1) -> Expression:
        parts = [part for label, count in self.addresses.items() for part in asq.name(label, count * sign)]
        return (*parts, *asq.number(self.number * sign)) if self.number or not parts else tuple(parts)

    def plus(self, other: CellSum, factor: int = 1) -> CellSum:
        terms, addresses = dict(self.terms), dict(self.addresses)
        for place, count in other.terms.items():
            terms[place] = terms.get(place, 0) + factor * count
        for label, count in other.addresses.items():
            addresses[label] = addresses.get(label, 0) + factor * count
        return CellSum({place: count for place, count in terms.items() if count}, self.number + factor * other.number,
                       {label: count for label, count in addresses.items() if count}, self.passing or other.passing)

    def times(self, factor: int) -> CellSum:
        return CellSum({}, passing=self.passing).plus(self, factor) if factor else CellSum()

    def lists(self) -> tuple[list[Expression], list[Expression]]:
        """The cells that are added and those that are subtracted, each as often as it counts."""
        added = [place for place, count in self.terms.items() for _ in range(count)]
        taken = [place for place, count in self.terms.items() for _ in range(-count)]
        return added, taken


def cell(place: Expression, *, passing: bool = False) -> CellSum:
    return CellSum({place: 1}, passing=passing)


def constant(value: int) -> CellSum:
    return CellSum({}, value)


def address(label: str) -> CellSum:
    return CellSum({}, 0, {label: 1})


def literal(value: int) -> Expression:
    """The address of a cell that holds a number."""
    return asq.constant(asq.number(value))
