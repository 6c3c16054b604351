"""The intermediate form run in NumPy: how large values get, which domains functions need, and whether the program ends.

It runs before the machine with the arguments of the call. From it come the range, a size of the machine, and the
domains of fitted functions; what would be wrong on the machine is refused here, at its line of the source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from punchcard.errors import ConvergenceError, shortened
from punchcard.python.arrays import ir
from punchcard.python.arrays.ir import Array, Const, Operand, Ref, Register
from punchcard.python.arrays.operation_builder import EXACT, LIMITED, computed
from punchcard.python.intervals import Interval
from punchcard.python.limits import MOST_RUN_WORK, MOST_STATEMENTS, Limits, Refusal

NONE = Interval(math.inf, -math.inf)


@dataclass
class Extent:
    """The entries that something had: from the least to the largest, and the least distance from 0."""

    values: Interval[float] = NONE
    near: float = math.inf

    def take(self, value: Array) -> None:
        self.values |= Interval(float(value.min()), float(value.max()))
        self.near = min(self.near, float(np.abs(value).min()))

    def domain(self, name: str) -> tuple[float, float]:
        """Where a function is fitted: a quarter beyond what occurred, with ends on a coarse grid, so that other
        arguments of the same size ask for the same machine.
        """
        low, high, size = self.values.low, self.values.high, self.values.magnitude
        if name == "inverse":
            return down(self.near / 1.25), up(1.25 * size)
        if name == "log":
            return down(low / 1.25), up(1.25 * high)
        if name == "sqrt":
            return (down(low / 1.25) if low > 0 else 0.0), up(1.25 * max(high, 1e-6))
        if name == "exp":
            return -up(1.25 * -low) if low < 0 else 0.0, math.ceil(2 * high + 0.25) / 2 if high > 0 else 0.5
        reach = up(1.25 * max(size, 0.1))
        return -reach, reach


def up(x: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below x."""
    power = math.floor(math.log10(x))
    return next(float(f"{lead}e{power}") for lead in (1, 2, 5, 10) if float(f"{lead}e{power}") >= x)


def down(x: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above x."""
    power = math.floor(math.log10(x))
    return next(float(f"{lead}e{power}") for lead in (5, 2, 1, 0.5) if float(f"{lead}e{power}") <= x)


class NumpyRun:
    """A run: values by register, the largest value and its line, operands of fitted functions by name.

    closest           the least difference that a comparison met, where the machine's numbers may be off, and its line
    closest_of_all    the same for all comparisons
    operations        how many were made
    """

    def __init__(self, code: list[ir.Statement], given: Mapping[Register, Array]) -> None:
        self.values, self.inexact = dict(given), inexact(code)
        self.largest = max((float(np.abs(value).max()) for value in given.values()), default=0.0)
        self.where: ir.SourcePlace | None = None
        self.domains: dict[str, Extent] = {}
        self.closest: tuple[float, ir.SourcePlace] | None = None
        self.closest_of_all: tuple[float, ir.SourcePlace] | None = None
        self.operations, self.limits = 0, Limits(MOST_RUN_WORK)
        self._rounds: dict[int, int] = {}
        for statement in ir.walk(code):  # constants of branches that are not taken are on the card, too
            if isinstance(statement, ir.Op | ir.Moves):
                operands = statement.operands if isinstance(statement, ir.Op) else [value for _, value in statement.pairs]
                for operand in operands:
                    if isinstance(operand, Const):
                        self._size(operand.value, statement.line)
        self._statements(code)
        for statement in ir.walk(code):  # functions of branches that are not taken must be there, too
            if isinstance(statement, ir.Op) and statement.function in LIMITED:
                self.domains.setdefault(statement.function, Extent(Interval.point(1.0), 1.0))

    def _value(self, operand: Operand) -> Array:
        if isinstance(operand, Const):
            return operand.value
        found = self.values[operand.register]
        return found.T if operand.flipped else found

    def _statements(self, code: list[ir.Statement]) -> ir.CodeRegion | None:
        """Do statements in order; the block that is left, if one is."""
        for statement in code:
            self.operations += 1
            left: ir.CodeRegion | None = None
            if isinstance(statement, ir.Op):
                self._operation(statement)
            elif isinstance(statement, ir.Moves):
                self.values.update([(target, self._value(value)) for target, value in statement.pairs])
            elif isinstance(statement, ir.Leave):
                left = statement.block
            elif isinstance(statement, ir.CodeRegion):
                left = self._statements(statement.body)
                left = None if left is statement else left
            elif isinstance(statement, ir.If):
                left = self._statements(statement.then if self._holds(statement.condition) else statement.other)
            else:
                left = self._loop(statement)
            if left is not None:
                return left
        return None

    def _holds(self, condition: ir.Condition) -> bool:
        if isinstance(condition, ir.Test):
            self._statements(condition.work)
            return bool(self._value(condition.flag)[0, 0] > 0.5)
        if isinstance(condition, ir.Negation):
            return not self._holds(condition.inner)
        return (any if condition.any else all)(self._holds(part) for part in condition.parts)

    def _loop(self, loop: ir.Loop) -> ir.CodeRegion | None:
        self._statements(loop.before)
        count: float = math.inf
        if isinstance(loop.count, int):
            count = loop.count
        elif loop.count is not None:
            count = round(float(self._value(loop.count)[0, 0]))
        made = 0
        if MOST_STATEMENTS < count < math.inf and not any(isinstance(inner, ir.Leave) for inner in ir.walk(loop.body)):
            loop.line.fail(f"a loop of {shortened(loop.count)} rounds: a program of arrays makes at most "
                           f"{MOST_STATEMENTS:,} operations", "use fewer rounds")
        while made < count:
            self._rounds[id(loop)] = made
            if loop.index is not None:
                self.values[loop.index] = np.array([[float(loop.start + made * loop.step)]])
                self._size(self.values[loop.index], loop.line)
            left = self._statements(loop.body)
            if left is not None:
                return left
            made += 1
            if self.operations > MOST_STATEMENTS:
                raise ConvergenceError(f"{loop.line}: the loop does not end within {MOST_STATEMENTS:,} operations")
        return None

    def _operation(self, op: ir.Op) -> None:
        values, index = [self._value(operand) for operand in op.operands], op.index
        if isinstance(index, ir.Pointer):
            index = index.offset + self._rounds[id(index.loop)]
            if index >= values[0].shape[1]:
                op.line.fail(f"index {index} of an axis of {values[0].shape[1]} entries, which are counted from 0")
        if op.function in LIMITED:
            self.domains.setdefault(op.function, Extent()).take(values[0])
        if op.function == "positive":
            least = float(np.abs(values[0]).min())
            if self.closest_of_all is None or least < self.closest_of_all[0]:
                self.closest_of_all = least, op.line
            if op.target in self.inexact and (self.closest is None or least < self.closest[0]):
                self.closest = least, op.line
        try:
            self.limits.spend(op.target.rows * op.target.columns + sum(value.size for value in values))
            if op.function == "matmul":
                self.limits.multiply(op.target.rows, values[0].shape[1], op.target.columns)
        except Refusal:
            op.line.fail("the program computes too much: it is run in NumPy first, to see how large values get",
                         "use smaller arrays, or fewer rounds")
        self.values[op.target] = computed(op.function, values, index)
        self._size(self.values[op.target], op.line, op.function)

    def _size(self, value: Array, line: ir.SourcePlace, function: str = "") -> None:
        largest = float(np.abs(value).max())
        if not largest <= 1e12:
            what = "values grow beyond 1e12" if largest > 1e12 else "not a number"
            if function in LIMITED:
                what = f"{'1 / x' if function == 'inverse' else function} of a number that it is not defined for"
            line.fail(f"{what} in this line", "the machine needs values in a range that it can hold")
        if largest > self.largest:
            self.largest, self.where = largest, line


def inexact(code: list[ir.Statement]) -> set[Register]:
    """Registers whose values the machine may have errors in."""
    statements = list(ir.walk(code))
    ops = [statement for statement in statements if isinstance(statement, ir.Op)]
    pairs = [pair for statement in statements if isinstance(statement, ir.Moves) for pair in statement.pairs]
    found: set[Register] = set()
    size = -1
    while len(found) > size:
        size = len(found)
        for op in ops:
            if op.function not in EXACT or any(isinstance(o, Ref) and o.register in found for o in op.operands):
                found.add(op.target)
        found |= {target for target, value in pairs if isinstance(value, Ref) and value.register in found}
    return found
