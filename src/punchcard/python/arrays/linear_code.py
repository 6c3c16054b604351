"""Instructions in a row, with slots for variables: between the intermediate form and the program.

A slot is a register stored one way round. It becomes a variable of the program, which other slots of its shape may share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from punchcard.python.arrays.ir import Const, Loop, Pointer, Register, SourcePlace


@dataclass(frozen=True)
class StorageSlot:
    """A register, stored as it is or transposed."""

    register: Register
    turned: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.register.rows, self.register.columns
        return (columns, rows) if self.turned else (rows, columns)


Holder: TypeAlias = StorageSlot | Const


@dataclass(frozen=True)
class Loc:
    """All of a slot or a constant, or one column of it: a fixed one, or one that a pointer leads to."""

    holder: Holder
    column: int | None = None
    pointer: Pointer | None = None

    @property
    def slot(self) -> StorageSlot | None:
        return self.holder if isinstance(self.holder, StorageSlot) else None

    @property
    def part(self) -> bool:
        return self.column is not None or self.pointer is not None

    @property
    def shape(self) -> tuple[int, int]:
        holder = self.holder
        rows, columns = holder.shape if isinstance(holder, StorageSlot) else (holder.rows, holder.columns)
        return (rows, 1) if self.part else (rows, columns)


@dataclass(eq=False)
class JumpTarget:
    """A place that instructions branch to."""


@dataclass(eq=False)
class Instr:
    """target = function(operands); if flag <= 0 goto goto. `depth` is how many loops are around it."""

    line: SourcePlace
    function: str | None = None
    operands: list[Loc] = field(default_factory=list)
    target: Loc | None = None
    flag: Loc | None = None
    goto: JumpTarget | None = None
    depth: int = 0

    def reads(self) -> list[StorageSlot]:
        """Slots whose values it needs; a part that is written needs the rest of its slot."""
        found = [loc.slot for loc in self.operands if loc.slot is not None]
        if self.flag is not None and self.flag.slot is not None:
            found.append(self.flag.slot)
        if self.target is not None and self.target.part and self.target.slot is not None:
            found.append(self.target.slot)
        return found

    @property
    def writes(self) -> StorageSlot | None:
        return None if self.target is None else self.target.slot

    @property
    def branch(self) -> Instr:
        """Its branch alone."""
        return Instr(self.line, flag=self.flag, goto=self.goto, depth=self.depth)

    @property
    def is_copy(self) -> bool:
        return self.function == "copy" and not self.operands[0].part and self.target is not None and not self.target.part


@dataclass(eq=False)
class MovePointers:
    """All pointers that move on with a loop: at the end of a round they do so, before the loop they `rewind`."""

    loop: Loop
    depth: int
    rewind: bool


Item: TypeAlias = Instr | JumpTarget | MovePointers
