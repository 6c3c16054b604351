"""What the formulas of all layers share: how rows of bits are written, gates by the instruction's kind, and branches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
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
    return assign(target, sum((-2 * bits_where(target, missing, one) for missing in closed), target + 2 * bits))


class LayerFormulas:
    """The formulas of a layer, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.sizes, self.layout, self.one = sizes, layout, rows(layout, "inside")
        self.kind, self.word, self.immediate, self.counter, self.x, self.y = (
            rows(layout, name) for name in ("kind", "word", "immediate", "counter", "x", "y"))

    def rows(self, *names: str) -> Rows:
        return rows(self.layout, *names)

    def _refusal(self) -> Expression:
        """What is absent of what an instruction needs to be executed."""
        return absent(self.rows("flag.lawful", "flag.aligned", "flag.reached"), {0: 1, 1: 1, 2: 1}, self.one)

    def _unlawful(self) -> Expression:
        """1 where the word is not an instruction: it may be of any kind."""
        return absent(self.rows("flag.lawful"), {0: 1}, self.one)

    def gates(self, sort: Callable[[Instruction], Class | None]) -> Iterator[tuple[Class, Expression]]:
        """Classes of instructions, each with what is absent for it; a class may come several times. One of all is open."""
        for name, cubes in self.sizes.decoder.classes(sort).items():
            for cube in cubes:
                yield name, absent(self.kind, cube, self.one)

    def open_for(self, is_wanted: Callable[[Instruction], bool]) -> list[Expression]:
        """What is absent for the instruction to be a wanted one."""
        return [closed for wanted, closed in self.gates(is_wanted) if wanted]

    def total(self, sort: Callable[[Instruction], Class | None],
              formula: Callable[[Class, Expression], Expression | None]) -> Expression:
        """The sum of a formula over classes of instructions, each given what is absent for it; None adds nothing."""
        found = (formula(name, closed) for name, closed in self.gates(sort))
        return sum((each for each in found if each is not None), 0.0 * self.one)


class BranchFormula(NamedTuple):
    """A branch: by equality, or with signs; and whether it is taken where the comparison does not hold."""

    equality: bool
    signed: bool
    turned: bool


BRANCHES = {
    "beq": BranchFormula(True, False, False), "bne": BranchFormula(True, False, True),
    "blt": BranchFormula(False, True, False), "bge": BranchFormula(False, True, True),
    "bltu": BranchFormula(False, False, False), "bgeu": BranchFormula(False, False, True),
}


class NextCounter(LayerFormulas):
    """The formulas of the next program counter."""

    following: Expression
    target: Expression

    def _way(self, instruction: Instruction) -> BranchFormula | str:
        """Where an instruction continues."""
        return BRANCHES.get(instruction.name) or {isa.JAL: "jump", isa.JALR: "register jump"}.get(instruction.opcode, "on")

    @abstractmethod
    def _holds(self, branch: BranchFormula, closed: Expression) -> Expression:
        """1 where the comparison of a branch holds and nothing is absent, else 0."""

    @abstractmethod
    def _reference(self, closed: Expression) -> Expression:
        """x + immediate, without its lowest bit, where nothing is absent."""

    def _next(self) -> Expression:
        return self.total(self._way, self._goes_on)

    def _goes_on(self, way: Hashable, closed: Expression) -> Expression:
        """The next program counter by a way, where nothing is absent."""
        if isinstance(way, BranchFormula):
            return self._where(way, True, self.target, closed) + self._where(way, False, self.following, closed)
        if way == "register jump":
            return self._reference(closed)
        return bits_where(self.target if way == "jump" else self.following, closed, self.one)

    def _where(self, branch: BranchFormula, taken: bool, bits: Expression, closed: Expression) -> Expression:
        """The bits where a branch is taken, or where it is not, and nothing is absent; else 0."""
        holds = self._holds(branch, closed + 0.5 * (self.one - bits))
        return holds if branch.turned != taken else bits_where(bits, closed, self.one) - holds

    def _misses(self, sort: Callable[[Instruction], Hashable], refusal: Expression) -> Expression:
        """1 where a branch is taken to an address that is not a multiple of four: that is bit 1 of its immediate."""
        return sum((self._where(way, True, self.immediate[1], closed + refusal)
                    for way, closed in self.gates(sort) if isinstance(way, BranchFormula)), 0.0 * self.one)
