"""Structured code to instructions in a row: loops count, conditions branch, moves copy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from punchcard.python.arrays import ir
from punchcard.python.arrays.ir import Const, Operand, Register
from punchcard.python.arrays.linear_code import Instr, Item, JumpTarget, Loc, MovePointers, StorageSlot
from punchcard.python.arrays.orientation import Orientation, way

ONE, ZERO = Const.of(1.0), Const.of(0.0)


class Linearizer:
    """Writes instructions. Digits of loop counters go from 1 - base to 1, within the range."""

    def __init__(self, orientation: Orientation, limit: float) -> None:
        self.orientation, self.base = orientation, max(2, int(limit) + 1)
        self.items: list[Item] = []
        self.ends: dict[int, JumpTarget] = {}
        self.depth = 0
        self.registers = 0

    # Places

    def loc(self, operand: Operand, turned: bool) -> Loc:
        """Where an operand is stored the way round that is wanted."""
        if isinstance(operand, Const):
            return Loc(operand.flip if turned else operand)
        return Loc(StorageSlot(operand.register, way(operand.register, turned != operand.flipped)))

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
        stored = self.orientation.ways(op.target)
        primary = way(op.target, self.orientation.primary.get(op, False))
        target = Loc(StorageSlot(op.target, primary))
        if op.function == "matmul":
            left, right = self.loc(op.operands[0], True), self.loc(op.operands[1], False)
            self.write(op.line, "mul", [right, left] if primary else [left, right], target)
        elif op.function == "column":
            whole = self.loc(op.operands[0], False)
            self.write(op.line, "copy", [_column(whole, op.index)], target)
        elif op.function == "update":
            self.write(op.line, "copy", [self.loc(op.operands[0], False)], target)
            self.write(op.line, "copy", [self.loc(op.operands[1], False)], _column(target, op.index))
        elif op.function == "scale":
            self._scale(op, primary, target)
        else:
            self.write(op.line, op.function, [self.loc(operand, primary) for operand in op.operands], target)
        for turned in stored:
            if turned != primary:
                self.write(op.line, "transpose", [target], Loc(StorageSlot(op.target, turned)))

    def _scale(self, op: ir.Op, primary: bool, target: Loc) -> None:
        """A number times a matrix. Twice and minus are exact."""
        scalar, other = self.loc(op.operands[0], False), self.loc(op.operands[1], primary)
        factor = op.operands[0].single if isinstance(op.operands[0], Const) else None
        if factor == 2.0:
            self.write(op.line, "add", [other, other], target)
        elif factor == -1.0:
            self.write(op.line, "sub", [Loc(Const.of(np.zeros(other.shape))), other], target)
        else:
            self.write(op.line, "mul" if other.shape == (1, 1) else "scale", [scalar, other], target)

    def _moves(self, moves: ir.Moves) -> None:
        """All at once: a slot is written when nothing reads its old value any more; a circle goes through a new slot."""
        pairs: list[tuple[StorageSlot, Loc]] = []
        missing: list[StorageSlot] = []
        for register, value in moves.pairs:
            for turned in self.orientation.ways(register):
                target = StorageSlot(register, way(register, turned))
                if not self.orientation.has(value, turned):
                    missing.append(target)
                elif self.loc(value, turned).holder != target:
                    pairs.append((target, self.loc(value, turned)))
        while pairs:
            free = next((pair for pair in pairs if not any(source.holder == pair[0] for _, source in pairs)), None)
            if free is None:
                target = pairs[0][0]
                kept = Loc(StorageSlot(self._register(target.register.rows, target.register.columns), target.turned))
                self.write(moves.line, "copy", [Loc(target)], kept)
                pairs = [(t, kept if source.holder == target else source) for t, source in pairs]
                continue
            pairs.remove(free)
            self.write(moves.line, "copy", [free[1]], Loc(free[0]))
        for slot in missing:
            self.write(moves.line, "transpose", [Loc(StorageSlot(slot.register, not slot.turned))], Loc(slot))

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
        """Go to a label where a condition holds, or with when=False where it does not; else go on."""
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
        flag = self.loc(test.flag, False)
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
            self.write(loop.line, "copy", [Loc(Const.of(float(loop.start)))], Loc(StorageSlot(loop.index)))
        digits = self._start_counting(loop, done)
        self.items += [MovePointers(loop, self.depth, rewind=True), top]
        self.depth += 1
        self.statements(loop.body)
        self.items.append(MovePointers(loop, self.depth, rewind=False))
        if loop.index is not None:
            index = Loc(StorageSlot(loop.index))
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
            digit = Loc(StorageSlot(self._register(name="n")))
            count = self.loc(loop.count, False)
            self.write(loop.line, "sub", [Loc(ONE), count], digit, flag=count, goto=done)
            return [digit]
        left = loop.count - 1
        found: list[Loc] = []
        while left or not found:
            left, value = divmod(left, self.base)
            found.append(Loc(StorageSlot(self._register(name="n"))))
            self.write(loop.line, "copy", [Loc(Const.of(-value))], found[-1])
        return found


def _column(whole: Loc, index: int | ir.Pointer | None) -> Loc:
    """A column of a place. The only column of a constant or a slot may be all of it."""
    if isinstance(index, ir.Pointer):
        return Loc(whole.holder, None, index)
    return whole if whole.shape[1] == 1 else Loc(whole.holder, index)


def linearize(
    code: list[ir.Statement], orientation: Orientation, parameters: Mapping[str, Register], limit: float
) -> tuple[list[Item], dict[StorageSlot, str]]:
    """The instructions, and the slots that hold parameters when they begin."""
    flat = Linearizer(orientation, limit)
    first_line = next(statement.line for statement in ir.walk(code) if not isinstance(statement, ir.CodeRegion))
    given: dict[StorageSlot, str] = {}
    for name, register in parameters.items():
        first, *others = orientation.ways(register)
        slot = StorageSlot(register, way(register, first))
        given[slot] = name
        for turned in others:
            flat.write(first_line, "transpose", [Loc(slot)], Loc(StorageSlot(register, turned)))
    flat.statements(code)
    return flat.items, given
