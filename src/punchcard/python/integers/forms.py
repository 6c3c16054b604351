"""Sums of cells and constants, which is what SUBLEQ computes best: every term of a sum costs one instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Form:
    """A sum: how often each cell counts, a number, and how often the address of each label counts.

    `passing`: a cell in it may be changed by what is computed next, so that it has to be copied before.
    """

    terms: Mapping[str, int] = field(default_factory=dict)
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
    def cell(self) -> str | None:
        """The cell that the sum is, where it is one."""
        if len(self.terms) == 1 and not self.number and not self.addresses:
            (name, count), = self.terms.items()
            return name if count == 1 else None
        return None

    @property
    def has_constant(self) -> bool:
        return bool(self.number or self.addresses)

    def constant(self, sign: int = 1) -> str:
        """The constant part as an operand: the address of a cell that holds it."""
        return "=" + self.constant_sum(sign)

    def constant_sum(self, sign: int = 1) -> str:
        parts = []
        for label, count in self.addresses.items():
            parts += [("+" if count * sign > 0 else "-") + label] * abs(count)
        if self.number or not parts:
            parts.append(f"{self.number * sign:+d}")
        return "".join(parts).removeprefix("+")

    def plus(self, other: Form, factor: int = 1) -> Form:
        terms, addresses = dict(self.terms), dict(self.addresses)
        for mine, others in ((terms, other.terms), (addresses, other.addresses)):
            for name, count in others.items():
                mine[name] = mine.get(name, 0) + factor * count
                if not mine[name]:
                    del mine[name]
        return Form(terms, self.number + factor * other.number, addresses, self.passing or other.passing)

    def times(self, factor: int) -> Form:
        return Form({}, passing=self.passing).plus(self, factor) if factor else Form()

    def lists(self) -> tuple[list[str], list[str]]:
        """The cells that are added and those that are subtracted, each as often as it counts."""
        added = [name for name, count in self.terms.items() for _ in range(count)]
        taken = [name for name, count in self.terms.items() for _ in range(-count)]
        return added, taken


def cell(name: str, *, passing: bool = False) -> Form:
    return Form({name: 1}, passing=passing)


def constant(value: int) -> Form:
    return Form({}, value)


def address(label: str) -> Form:
    return Form({}, 0, {label: 1})
