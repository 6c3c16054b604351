"""How rows of bits are written, and the gates of a layer: what of an instruction's kind is absent for each alternative."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

from punchcard.card.layout import Layout
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.isa import Instruction
from punchcard.primitives.literals import absent, bits_where
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, Rows, relu, rows

Class = TypeVar("Class", bound=Hashable)


def appear(target: Rows, bits: Expression, one: Expression) -> Part:
    """Rows that are 0 become ±1 bits, from 0 and 1."""
    return assign(target, target + 2 * bits - one)


def rewrite(target: Rows, bits: Expression) -> Part:
    """±1 bits of the scratchpad become others, from 0 and 1: b = 2 relu(b) - one is taken away. One unit a bit."""
    return assign(target, target + 2 * bits - 2 * relu(target))


def vanish(target: Rows, one: Expression) -> Part:
    """±1 bits of the scratchpad become 0. One unit a bit."""
    return assign(target, target + one - 2 * relu(target))


def replace_where(target: Rows, bits: Expression, closed: Sequence[Expression], one: Expression) -> Part:
    """±1 bits become others, from 0 and 1, where one of several gates is open; `bits` is 0 where all are closed."""
    formula = target + 2 * bits
    for missing in closed:
        formula = formula - 2 * bits_where(target, missing, one)
    return assign(target, formula)


class Gates:
    """Alternatives by the kind of the instruction."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.decoder, self.kind, self.one = sizes.decoder, rows(layout, "kind"), rows(layout, "inside")

    def each(self, sort: Callable[[Instruction], Class | None]) -> Iterator[tuple[Class, Expression]]:
        """Classes of instructions, each with what is absent for it; a class may come several times. One of all is open."""
        for name, cubes in self.decoder.classes(sort).items():
            for cube in cubes:
                yield name, absent(self.kind, cube, self.one)
