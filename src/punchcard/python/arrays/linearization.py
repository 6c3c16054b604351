"""Structured code to instructions in a row: loops count, conditions branch, moves copy.

An instruction computes with slots, which become variables of the program; slots of one shape may share a variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from punchcard.python.arrays import ir
from punchcard.python.arrays.ir import Const, Operand, Ref, Register
from punchcard.python.arrays.orientation import Orientation, turned, wanted

ONE = Const.of(1.0)


@dataclass(frozen=True)
class Loc:
    """All of a slot or a constant, or one column of it: a fixed one, or one that a pointer leads to."""

    holder: Operand
    column: int | None = None
    pointer: ir.Pointer | None = None

    @property
    def slot(self) -> Ref | None:
        return self.holder if isinstance(self.holder, Ref) else None

    @property
    def part(self) -> bool:
        return self.column is not None or self.pointer is not None

    @property
    def shape(self) -> tuple[int, int]:
        return (self.holder.rows, 1) if self.part else self.holder.shape


@dataclass(eq=False)
class JumpTarget:
    """A place that instructions branch to."""


@dataclass(eq=False)
class Instr:
    """target = function(operands); if flag <= 0 goto goto. `depth` is how many loops are around it."""

    line: ir.SourcePlace
    function: str | None = None
    operands: list[Loc] = field(default_factory=list)
    target: Loc | None = None
    flag: Loc | None = None
    goto: JumpTarget | None = None
    depth: int = 0

    def reads(self) -> list[Ref]:
        """Slots whose values it needs; a part that is written needs the rest of its slot."""
        found = [loc.slot for loc in self.operands if loc.slot is not None]
        if self.flag is not None and self.flag.slot is not None:
            found.append(self.flag.slot)
        if self.target is not None and self.target.part and self.target.slot is not None:
            found.append(self.target.slot)
        return found

    @property
    def writes(self) -> Ref | None:
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

    loop: ir.Loop
    depth: int
    rewind: bool


Item: TypeAlias = Instr | JumpTarget | MovePointers


class Linearizer:
    """Writes instructions. Digits of loop counters go from 1 - base to 1, within the range."""

    def __init__(self, orientation: Orientation, limit: float) -> None:
        self.orientation, self.base = orientation, max(2, int(limit) + 1)
        self.items: list[Item] = []
        self.ends: dict[int, JumpTarget] = {}
        self.depth = 0
        self.registers = 0

    def _register(self, rows: int = 1, columns: int = 1, name: str = "") -> Register:
        """A register that the code does not have."""
        self.registers -= 1
        return Register(self.registers, rows, columns, name=name)

    def write(self, line: ir.SourcePlace, function: str | None, operands: list[Loc], target: Loc | None = None, *,
              flag: Loc | None = None, goto: JumpTarget | None = None) -> None:
        self.items.append(Instr(line, function, operands, target, flag, goto, self.depth))

    # Operations

    def statements(self, code: list[ir.Statement]) -> None:
        for statement in code:
            if isinstance(statement, ir.Op):
                self._operation(statement)
            elif isinstance(statement, ir.Moves):
                self._moves(statement)
            elif isinstance(statement, ir.Leave):
                self.write(statement.line, None, [], goto=self._end(statement.block))
            elif isinstance(statement, ir.CodeRegion):
                self.statements(statement.body)
                self.items.append(self._end(statement))
            elif isinstance(statement, ir.If):
                self._if(statement)
            else:
                self._loop(statement)

    def _end(self, block: ir.CodeRegion) -> JumpTarget:
        return self.ends.setdefault(id(block), JumpTarget())

    def _operation(self, op: ir.Op) -> None:
        primary = self.orientation.primary.get(op, Ref(op.target))
        target, operands = Loc(primary), [Loc(operand) for operand in wanted(op, primary)]
        if op.function == "matmul":
            self.write(op.line, "mul", operands[::-1] if primary.flipped else operands, target)
        elif op.function == "column":
            self.write(op.line, "copy", [_column(operands[0], op.index)], target)
        elif op.function == "update":
            self.write(op.line, "copy", operands[:1], target)
            self.write(op.line, "copy", operands[1:], _column(target, op.index))
        elif op.function == "scale":
            self._scale(op, operands, target)
        else:
            self.write(op.line, op.function, operands, target)
        for slot in self.orientation.slots(op.target):
            if slot != primary:
                self.write(op.line, "transpose", [target], Loc(slot))

    def _scale(self, op: ir.Op, operands: list[Loc], target: Loc) -> None:
        """A number times a matrix. Twice and minus are exact."""
        scalar, other = operands
        factor = op.operands[0].single if isinstance(op.operands[0], Const) else None
        if factor == 2.0:
            self.write(op.line, "add", [other, other], target)
        elif factor == -1.0:
            self.write(op.line, "sub", [Loc(Const.of(np.zeros(other.shape))), other], target)
        else:
            self.write(op.line, "mul" if other.shape == (1, 1) else "scale", [scalar, other], target)

    def _moves(self, moves: ir.Moves) -> None:
        """All at once: a slot is written when nothing reads its old value any more; a circle goes through a new slot."""
        pairs: list[tuple[Ref, Operand]] = []
        missing: list[Ref] = []
        for register, value in moves.pairs:
            for slot in self.orientation.slots(register):
                source = turned(value, slot)
                if not self.orientation.has(source):
                    missing.append(slot)
                elif source != slot:
                    pairs.append((slot, source))
        while pairs:
            free = next((pair for pair in pairs if not any(source == pair[0] for _, source in pairs)), None)
            if free is None:
                target = pairs[0][0]
                kept = Ref(self._register(target.register.rows, target.register.columns), target.flipped)
                self.write(moves.line, "copy", [Loc(target)], Loc(kept))
                pairs = [(slot, kept if source == target else source) for slot, source in pairs]
                continue
            pairs.remove(free)
            self.write(moves.line, "copy", [Loc(free[1])], Loc(free[0]))
        for slot in missing:
            self.write(moves.line, "transpose", [Loc(slot.flip)], Loc(slot))

    # Branches

    def _if(self, statement: ir.If) -> None:
        then, other = statement.then, statement.other
        if len(other) == 1 and isinstance(other[0], ir.Leave):
            self.jump(statement.condition, self._end(other[0].block), when=False)
            self.statements(then)
        elif len(then) == 1 and isinstance(then[0], ir.Leave):
            self.jump(statement.condition, self._end(then[0].block), when=True)
            self.statements(other)
        else:
            otherwise, end = JumpTarget(), JumpTarget()
            self.jump(statement.condition, otherwise, when=False)
            self.statements(then)
            self.write(statement.line, None, [], goto=end)
            self.items.append(otherwise)
            self.statements(other)
            self.items.append(end)

    def jump(self, condition: ir.Condition, target: JumpTarget, *, when: bool) -> None:
        """Go to a label where a condition holds, or with when=False where it does not; else continue."""
        if isinstance(condition, ir.Negation):
            self.jump(condition.inner, target, when=not when)
        elif isinstance(condition, ir.Test):
            self.statements(condition.work)
            self._test(condition, target, when=when)
        elif condition.any == when:
            for part in condition.parts:
                self.jump(part, target, when=when)
        else:
            skip = JumpTarget()
            for part in condition.parts[:-1]:
                self.jump(part, skip, when=not when)
            self.jump(condition.parts[-1], target, when=when)
            self.items.append(skip)

    def _test(self, test: ir.Test, target: JumpTarget, *, when: bool) -> None:
        if isinstance(test.flag, Const):
            if (float(test.flag.value[0, 0]) > 0.5) == when:
                self.write(test.line, None, [], goto=target)
            return
        flag = Loc(test.flag)
        if not when:
            self.write(test.line, None, [], flag=flag, goto=target)
            return
        skip = JumpTarget()
        self.write(test.line, None, [], flag=flag, goto=skip)
        self.write(test.line, None, [], goto=target)
        self.items.append(skip)

    # Loops

    def _loop(self, loop: ir.Loop) -> None:
        self.statements(loop.before)
        top, done = JumpTarget(), JumpTarget()
        if loop.index is not None:
            self.write(loop.line, "copy", [Loc(Const.of(float(loop.start)))], Loc(Ref(loop.index)))
        digits = self._start_counting(loop, done)
        self.items += [MovePointers(loop, self.depth, rewind=True), top]
        self.depth += 1
        self.statements(loop.body)
        self.items.append(MovePointers(loop, self.depth, rewind=False))
        if loop.index is not None:
            index = Loc(Ref(loop.index))
            self.write(loop.line, "add", [index, Loc(Const.of(float(loop.step)))], index)
        if loop.count is None:
            self.write(loop.line, None, [], goto=top)
        for number, digit in enumerate(digits):
            self.write(loop.line, "add", [digit, Loc(ONE)], digit, flag=digit, goto=top)
            if number + 1 < len(digits):
                self.write(loop.line, "copy", [Loc(Const.of(1 - self.base))], digit)
        self.depth -= 1
        self.items.append(done)

    def _start_counting(self, loop: ir.Loop, done: JumpTarget) -> list[Loc]:
        """The digits of the rounds that are left after the first, each with a minus; the least digit first."""
        if loop.count is None:
            return []
        if not isinstance(loop.count, int):
            digit = Loc(Ref(self._register(name="n")))
            count = Loc(loop.count)
            self.write(loop.line, "sub", [Loc(ONE), count], digit, flag=count, goto=done)
            return [digit]
        left = loop.count - 1
        found: list[Loc] = []
        while left or not found:
            left, value = divmod(left, self.base)
            found.append(Loc(Ref(self._register(name="n"))))
            self.write(loop.line, "copy", [Loc(Const.of(-value))], found[-1])
        return found


def _column(whole: Loc, index: int | ir.Pointer | None) -> Loc:
    """A column of a place. The only column of a constant or a slot may be all of it."""
    if isinstance(index, ir.Pointer):
        return Loc(whole.holder, None, index)
    return whole if whole.shape[1] == 1 else Loc(whole.holder, index)


def linearize(
    code: list[ir.Statement], orientation: Orientation, parameters: Mapping[str, Register], limit: float
) -> tuple[list[Item], dict[Ref, str]]:
    """The instructions, and the slots that hold parameters when they begin."""
    flat = Linearizer(orientation, limit)
    first_line = next(statement.line for statement in ir.walk(code) if not isinstance(statement, ir.CodeRegion))
    given: dict[Ref, str] = {}
    for name, register in parameters.items():
        first, *others = orientation.slots(register)
        given[first] = name
        for other in others:
            flat.write(first_line, "transpose", [Loc(first)], Loc(other))
    flat.statements(code)
    return flat.items, given
