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


@dataclass
class Orientation:
    """`stored`: for each register the ways it is stored, True for transposed. `primary`: the way an operation computes."""

    stored: dict[Register, set[bool]] = field(default_factory=dict)
    primary: dict[Op, bool] = field(default_factory=dict)

    def ways(self, register: Register) -> list[bool]:
        return sorted(self.stored.get(register, {False}))

    def has(self, operand: Operand, turned: bool) -> bool:
        """Whether an operand is there this way round."""
        return isinstance(operand, Const) or (
            way(operand.register, turned != operand.flipped) in self.stored.get(operand.register, ()))


def way(register: Register, turned: bool) -> bool:
    """A number has one way only."""
    return turned and not (register.rows == register.columns == 1)


def wanted(op: Op, turned: bool) -> Iterable[tuple[Operand, bool]]:
    """Operands with the way round that an operation needs them stored, where its result is computed so."""
    if op.function == "matmul":
        a, b = op.operands
        yield a, True
        yield b, False
    elif op.function in ("column", "update"):
        for operand in op.operands:
            yield operand, False
    elif op.function == "scale":
        yield op.operands[0], False
        yield op.operands[1], turned
    else:
        for operand in op.operands:
            yield operand, turned


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
            found.stored.setdefault(loop.index, set()).add(False)
    return found


def _want(found: Orientation, operand: Operand, turned: bool) -> bool:
    if isinstance(operand, Const) or found.has(operand, turned):
        return False
    found.stored.setdefault(operand.register, set()).add(way(operand.register, turned != operand.flipped))
    return True


def _propagate(found: Orientation, ops: list[Op], moves: list[tuple[Register, Operand]]) -> bool:
    """What results want of their operands; whether anything was new."""
    changed = False
    for op in ops:
        stored = found.stored.get(op.target, set())
        if op.function in ("matmul", "column", "update"):
            if op.function == "matmul" and stored:
                found.primary[op] = min(stored)
            elif op.function != "matmul":
                found.primary[op] = False
                if stored == {True}:
                    found.stored[op.target].add(False)
            fixed = True
        else:
            fixed = bool(stored)
            if stored and found.primary.get(op) not in stored:
                found.primary[op] = min(stored, key=lambda turned: (_lacking(found, op, turned), turned))
        if fixed:
            for operand, turned in wanted(op, found.primary.get(op, False)):
                changed |= _want(found, operand, turned)
    for target, value in moves:
        ways = found.ways(target) if found.stored.get(target) else []
        if isinstance(value, Ref) and value.register.level > target.level:  # out of a loop one way is enough
            ways = ways[:1] if not any(found.has(value, turned) for turned in ways) else []
        for turned in ways:
            changed |= _want(found, value, turned)
    return changed


def _lacking(found: Orientation, op: Op, turned: bool) -> int:
    """How many operands are not stored the way that is needed for this result."""
    return sum(not found.has(operand, each) for operand, each in wanted(op, turned))


def _settle(found: Orientation, ops: list[Op], moves: list[tuple[Register, Operand]], results: Iterable[Register]) -> bool:
    """A way for one register that nothing has asked for yet; whether there was one."""
    for op in reversed(ops):
        if not found.stored.get(op.target):
            turned = min((False, True), key=lambda t: (_lacking(found, op, t), t))
            found.stored[op.target] = {way(op.target, turned and op.function not in ("matmul", "column", "update"))}
            return True
    for target in (*(target for target, _ in moves), *results):
        if not found.stored.get(target):
            found.stored[target] = {False}
            return True
    return False
