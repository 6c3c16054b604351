"""Which way round each register is stored: as it is, transposed, or both.

The machine's product is mul(P, Q) = P^T Q. So a @ b needs a stored transposed and b as it is, and gives its result
either way round, since mul(Q, P) is the transpose. An operation entry by entry wants all operands the same way round.
A transpose is spent only where a register is wanted both ways. What products and columns want is fixed; the rest
follows it, from the results back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from punchcard.python.arrays.ir import Const, Loop, Moves, Op, Operand, Ref, Register, Statement, walk

FIXED = ("matmul", "column", "update")
"""Operations that want their operands one way round, whichever way their result is wanted."""


@dataclass
class Orientation:
    """`stored`: for each register the slots that are wanted, the transposed one last. `primary`: the slot that an operation
    computes.
    """

    stored: dict[Register, list[Ref]] = field(default_factory=dict)
    primary: dict[Op, Ref] = field(default_factory=dict)

    def slots(self, register: Register) -> list[Ref]:
        return self.stored.get(register) or [Ref(register)]

    def has(self, operand: Operand) -> bool:
        return isinstance(operand, Const) or operand in self.stored.get(operand.register, ())

    def want(self, operand: Operand) -> bool:
        """Ask for an operand; whether that is new."""
        if isinstance(operand, Const) or self.has(operand):
            return False
        slots = self.stored.setdefault(operand.register, [])
        slots.insert(len(slots) if operand.flipped else 0, operand)
        return True


def turned(operand: Operand, slot: Ref) -> Operand:
    """An operand the way round that a slot has its register."""
    return operand.flip if slot.flipped else operand


def wanted(op: Op, result: Ref) -> list[Operand]:
    """The operands as an operation needs them stored, where its result is computed so."""
    if op.function == "matmul":
        return [op.operands[0].flip, op.operands[1]]
    if op.function in FIXED:
        return list(op.operands)
    same = [turned(operand, result) for operand in op.operands]
    return [op.operands[0], same[1]] if op.function == "scale" else same


def choose_orientation(code: list[Statement], results: Iterable[Register]) -> Orientation:
    """The ways round for all registers of a program."""
    found = Orientation()
    statements = list(walk(code))
    ops = [s for s in statements if isinstance(s, Op)]
    moves = [pair for s in statements if isinstance(s, Moves) for pair in s.pairs]
    while True:
        while _propagate(found, ops, moves):
            pass
        if not _settle(found, ops, moves, results):
            break
    for loop in (s for s in statements if isinstance(s, Loop)):
        if loop.index is not None:
            found.want(Ref(loop.index))
    return found


def _propagate(found: Orientation, ops: list[Op], moves: list[tuple[Register, Operand]]) -> bool:
    """What results want of their operands; whether anything was new."""
    changed = False
    for op in ops:
        stored, as_it_is = found.stored.get(op.target, []), Ref(op.target)
        if op.function == "matmul":
            found.primary[op] = stored[0] if stored else as_it_is
        elif op.function in FIXED:
            found.primary[op] = as_it_is
            if stored:
                found.want(as_it_is)
        elif stored and found.primary.get(op) not in stored:
            found.primary[op] = min(stored, key=lambda slot: _lacking(found, op, slot))
        if op in found.primary:
            for operand in wanted(op, found.primary[op]):
                changed |= found.want(operand)
    for target, value in moves:
        values = [turned(value, slot) for slot in found.stored.get(target, ())]
        if isinstance(value, Ref) and value.register.level > target.level:  # out of a loop one way is enough
            values = values[:1] if not any(map(found.has, values)) else []
        for each in values:
            changed |= found.want(each)
    return changed


def _lacking(found: Orientation, op: Op, result: Ref) -> int:
    """How many operands are not stored the way that is needed for this result."""
    return sum(not found.has(operand) for operand in wanted(op, result))


def _settle(found: Orientation, ops: list[Op], moves: list[tuple[Register, Operand]], results: Iterable[Register]) -> bool:
    """A way for one register that nothing has asked for yet; whether there was one."""
    for op in reversed(ops):
        if op.target not in found.stored:
            as_it_is = Ref(op.target)
            slots = [as_it_is] if op.function in FIXED else [as_it_is, as_it_is.flip]
            return found.want(min(slots, key=lambda slot: _lacking(found, op, slot)))
    for target in (*(target for target, _ in moves), *results):
        if target not in found.stored:
            return found.want(Ref(target))
    return False
