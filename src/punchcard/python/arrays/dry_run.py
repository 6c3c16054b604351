"""The intermediate form run in NumPy: how large values get, which domains functions need, and whether the program ends.

It runs before the machine with the arguments of the call. From it come the range, a size of the machine, and the
domains of fitted functions; what would be wrong on the machine is refused here, at its line of the source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from punchcard.errors import ConvergenceError
from punchcard.python.arrays.ir import (
    Array,
    CodeRegion,
    Condition,
    Const,
    If,
    Leave,
    Loop,
    Moves,
    Negation,
    Op,
    Operand,
    Pointer,
    Ref,
    Register,
    SourcePlace,
    Statement,
    Test,
    walk,
)
from punchcard.python.arrays.operation_builder import EXACT, LIMITED, computed
from punchcard.python.intervals import Interval

MOST_STATEMENTS = 5_000_000
NONE = Interval(math.inf, -math.inf)


@dataclass
class Extent:
    """The entries that something had: from the least to the largest, and the least distance from 0."""

    values: Interval[float] = NONE
    near: float = math.inf

    def take(self, value: Array) -> None:
        self.values |= Interval(float(value.min()), float(value.max()))
        self.near = min(self.near, float(np.abs(value).min()))


@dataclass
class Ran:
    """What a run found: values by register, the largest value and its line, operands of fitted functions by name.

    closest    the least difference that a comparison of real numbers met, where the machine's numbers
               may be off, and its line
    """

    values: dict[Register, Array]
    largest: float = 0.0
    where: SourcePlace | None = None
    domains: dict[str, Extent] = field(default_factory=dict)
    closest: tuple[float, SourcePlace] | None = None
    closest_of_all: tuple[float, SourcePlace] | None = None
    """The same for all comparisons."""
    operations: int = 0


def dry_run(code: list[Statement], given: Mapping[Register, Array]) -> Ran:
    """Run code from the values of the parameters."""
    largest = max((float(np.abs(v).max()) for v in given.values()), default=0.0)
    run = _Run(Ran(dict(given), largest), inexact(code))
    for statement in walk(code):  # constants of branches that are not taken are on the card, too
        if isinstance(statement, Op | Moves):
            operands = statement.operands if isinstance(statement, Op) else [value for _, value in statement.pairs]
            for operand in operands:
                if isinstance(operand, Const):
                    run.size(operand.value, statement.line)
    run.statements(code)
    for statement in walk(code):  # functions of branches that are not taken must be there, too
        if isinstance(statement, Op) and statement.function in LIMITED:
            run.ran.domains.setdefault(statement.function, Extent(Interval.point(1.0), 1.0))
    return run.ran


def inexact(code: list[Statement]) -> set[Register]:
    """Registers whose values the machine may have errors in."""
    statements = list(walk(code))
    ops = [statement for statement in statements if isinstance(statement, Op)]
    pairs = [pair for statement in statements if isinstance(statement, Moves) for pair in statement.pairs]
    found: set[Register] = set()
    size = -1
    while len(found) > size:
        size = len(found)
        for op in ops:
            if op.function not in EXACT or any(isinstance(o, Ref) and o.register in found for o in op.operands):
                found.add(op.target)
        found |= {target for target, value in pairs if isinstance(value, Ref) and value.register in found}
    return found


class _Run:
    def __init__(self, ran: Ran, inexact: set[Register]) -> None:
        self.ran, self.inexact = ran, inexact
        self.rounds: dict[int, int] = {}

    def value(self, operand: Operand) -> Array:
        if isinstance(operand, Const):
            return operand.value
        found = self.ran.values[operand.register]
        return found.T if operand.flipped else found

    def statements(self, code: list[Statement]) -> CodeRegion | None:
        """Do statements in order; the block that is left, if one is."""
        for statement in code:
            self.ran.operations += 1
            if isinstance(statement, Op):
                self._operation(statement)
            elif isinstance(statement, Moves):
                new = [(target, self.value(value)) for target, value in statement.pairs]
                self.ran.values.update(new)
            else:
                left = self._control(statement)
                if left is not None:
                    return left
        return None

    def _control(self, statement: If | Loop | CodeRegion | Leave) -> CodeRegion | None:
        if isinstance(statement, Leave):
            return statement.block
        if isinstance(statement, CodeRegion):
            left = self.statements(statement.body)
            return None if left is statement else left
        if isinstance(statement, If):
            return self.statements(statement.then if self.holds(statement.condition) else statement.other)
        return self._loop(statement)

    def holds(self, condition: Condition) -> bool:
        if isinstance(condition, Test):
            self.statements(condition.work)
            return bool(self.value(condition.flag)[0, 0] > 0.5)
        if isinstance(condition, Negation):
            return not self.holds(condition.inner)
        return (any if condition.any else all)(self.holds(part) for part in condition.parts)

    def _loop(self, loop: Loop) -> CodeRegion | None:
        self.statements(loop.before)
        count: float = math.inf
        if isinstance(loop.count, int):
            count = loop.count
        elif loop.count is not None:
            count = round(float(self.value(loop.count)[0, 0]))
        index, made = float(loop.start), 0
        while made < count:
            self.rounds[id(loop)] = made
            if loop.index is not None:
                self.ran.values[loop.index] = np.array([[index]])
                self.size(self.ran.values[loop.index], loop.line)
            left = self.statements(loop.body)
            if left is not None:
                return left
            made, index = made + 1, index + loop.step
            if self.ran.operations > MOST_STATEMENTS:
                raise ConvergenceError(f"{loop.line}: the loop does not end within {MOST_STATEMENTS:,} operations")
        return None

    def _operation(self, op: Op) -> None:
        values = [self.value(operand) for operand in op.operands]
        index = op.index
        if isinstance(index, Pointer):
            index = index.offset + self.rounds[id(index.loop)]
            if index >= values[0].shape[1]:
                op.line.source.fail(op.line.node,
                                    f"index {index} of an axis of {values[0].shape[1]} entries, which are counted "
                                    "from 0")
        result = computed(op.function, values, index)
        if op.function in LIMITED:
            self.ran.domains.setdefault(op.function, Extent()).take(values[0])
        if op.function == "positive":
            least = float(np.abs(values[0]).min())
            if self.ran.closest_of_all is None or least < self.ran.closest_of_all[0]:
                self.ran.closest_of_all = least, op.line
            if op.target in self.inexact and (self.ran.closest is None or least < self.ran.closest[0]):
                self.ran.closest = least, op.line
        self.size(result, op.line, op)
        self.ran.values[op.target] = result

    def size(self, value: Array, line: SourcePlace, op: Op | None = None) -> None:
        largest = float(np.abs(value).max())
        if not largest <= 1e12:
            what = "values grow beyond 1e12" if largest > 1e12 else "not a number"
            if op is not None and op.function in LIMITED:
                what = f"{'1 / x' if op.function == 'inverse' else op.function} of a number that it is not defined for"
            line.source.fail(line.node, f"{what} in this line", "the machine needs values in a range that it can hold")
        if largest > self.ran.largest:
            self.ran.largest, self.ran.where = largest, line
