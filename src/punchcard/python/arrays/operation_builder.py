"""Writing the intermediate form: constants fold, equal expressions are shared, what a loop does not change moves out of it.

All three happen as an operation is written. An expression is shared with an earlier one that is certain to have been
computed: the table of known expressions has a scope for each branch and loop. An operation whose operands are all set
outside the loops around it is written before the outermost loop for which that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from punchcard.machines.fleq.functions import ABS, ADD, MAXIMUM, MINIMUM, POSITIVE, RELU, SIGMOID, SUB, UNLIMITED
from punchcard.machines.fleq.functions import FITTED as FITTED_BY_NAME
from punchcard.python.arrays import ir
from punchcard.python.arrays.ir import Array, Const, Operand, Ref, Register
from punchcard.python.limits import Limits, Refusal, check_entries

MOST_OPERATIONS = 20_000
LIMITED = (*FITTED_BY_NAME, *(name for name in UNLIMITED if name != SIGMOID.name))
"""Functions that are fitted over a domain, or are among them: they must not be computed where the source does not."""


def _silent(function: Callable[..., Array]) -> Callable[..., Array]:
    def compute(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands), dtype=np.float64)

    return compute


OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "matmul": _silent(np.matmul),
    "hadamard": _silent(np.multiply),
    "scale": _silent(lambda s, a: s[0, 0] * a),
    "copy": lambda a: a,
    **{function.name: _silent(function.reference)
       for function in (ADD, SUB, MAXIMUM, MINIMUM, RELU, ABS, POSITIVE, *UNLIMITED.values())},
    **{name: _silent(rule.reference) for name, rule in FITTED_BY_NAME.items()},
}
ENTRYWISE = (*(name for name in LIMITED if name != "inverse"), SIGMOID.name, RELU.name, ABS.name)
"""Functions of every entry that a program may call."""
INTEGRAL = ("matmul", "add", "sub", "hadamard", "scale", "maximum", "minimum", "relu", "abs", "copy", "column", "update")
"""What gives integers from integers."""
EXACT = ("add", "sub", "relu", "abs", "positive", "copy", "column", "update")
"""What the machine computes to the last bit, in float64, where its operands are exact."""
COMMUTE = ("add", "hadamard", "maximum", "minimum")

OperationKey: TypeAlias = tuple[str, tuple[Operand, ...], ir.Index | None]
"""An operation without its target: a function, operands and the column."""


@dataclass
class Scope:
    """Known expressions, where what is written goes, and how many loops are open; `certain`: always executed."""

    into: list[ir.Statement]
    level: int
    certain: bool
    known: dict[OperationKey, Operand] = field(default_factory=dict)


class OperationBuilder:
    """Statements as they are written."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.code: list[ir.Statement] = []
        self.scopes = [Scope(self.code, 0, certain=True)]
        self.loops: list[tuple[ir.Loop, int]] = []
        """Open loops, and the number of the scope that each is in."""
        self.registers = 0

    @property
    def level(self) -> int:
        return len(self.loops)

    def register(self, rows: int, columns: int, *, name: str = "", integral: bool = False) -> Register:
        """A new register, of the loops that are open now."""
        check_entries(rows * columns, "an array")
        self.registers += 1
        if self.registers > MOST_OPERATIONS:
            raise Refusal(f"a program of more than {MOST_OPERATIONS:,} operations",
                          "use loops that need no unrolling, or smaller ones")
        return Register(self.registers, rows, columns, self.level, integral, name)

    def add(self, statement: ir.Statement) -> None:
        self.scopes[-1].into.append(statement)

    def moves(self, pairs: list[tuple[Register, Operand]], line: ir.SourcePlace) -> None:
        real = [(target, value) for target, value in pairs if value != Ref(target)]
        if real:
            self.add(ir.Moves(real, line))

    @contextmanager
    def scope(self, into: list[ir.Statement], *, certain: bool) -> Iterator[None]:
        """What is written goes into a list, and is known there alone."""
        self.scopes.append(Scope(into, self.level, certain))
        try:
            yield
        finally:
            self.scopes.pop()

    @contextmanager
    def loop(self, loop: ir.Loop, *, certain: bool) -> Iterator[None]:
        """The body of a loop; `certain`: it makes at least one round."""
        self.loops.append((loop, len(self.scopes) - 1))
        try:
            with self.scope(loop.body, certain=certain):
                yield
        finally:
            self.loops.pop()

    # Operations

    def emit(
        self, function: str, operands: tuple[Operand, ...], rows: int, columns: int, line: ir.SourcePlace,
        index: ir.Index | None = None,
    ) -> Operand:
        """The result of an operation; written, folded or known already."""
        simple = simplified(function, operands)
        if simple is not None:
            return simple
        if function in COMMUTE and _order(operands[1]) < _order(operands[0]):
            operands = (operands[1], operands[0])
        for operand in operands:
            if isinstance(operand, Const):
                self.limits.spend(operand.rows * operand.columns)
        if all(isinstance(operand, Const) for operand in operands) and not isinstance(index, ir.Pointer):
            self.limits.make(rows * columns, "an array")
            if function == "matmul":
                self.limits.multiply(rows, operands[0].columns, columns)
            return Const.of(computed(function, [operand.value for operand in operands if isinstance(operand, Const)], index))
        key = (function, operands, index)
        for scope in reversed(self.scopes):
            if key in scope.known:
                return scope.known[key]
        outer = self._outermost(function, operands, index)
        scope = self.scopes[-1] if outer is None else self.scopes[outer[1]]
        target = self.register(rows, columns)
        target.level = scope.level
        target.integral = (function in INTEGRAL and all(operand.integral for operand in operands)) or function == "positive"
        into = scope.into if outer is None else outer[0].before
        into.append(ir.Op(function, target, operands, line, index))
        scope.known[key] = Ref(target)
        return Ref(target)

    def _outermost(self, function: str, operands: tuple[Operand, ...], index: ir.Index | None) -> tuple[ir.Loop, int] | None:
        """The outermost loop, with its scope, before which an operation can be done."""
        level = max((operand.register.level for operand in operands if isinstance(operand, Ref)), default=0)
        if isinstance(index, ir.Pointer):
            level = max(level, 1 + next(i for i, (loop, _) in enumerate(self.loops) if loop is index.loop))
        if level >= self.level:
            return None
        found = self.loops[level]
        return None if function in LIMITED and not all(scope.certain for scope in self.scopes[found[1] + 1 :]) else found

    # Trying

    def mark(self) -> Callable[[], None]:
        """A function that goes back to the state of all that is open now."""
        lists = [scope.into for scope in self.scopes] + [loop.before for loop, _ in self.loops]
        lengths, registers = [len(into) for into in lists], self.registers
        known = [dict(scope.known) for scope in self.scopes]

        def go_back() -> None:
            self.registers = registers
            for into, length in zip(lists, lengths, strict=True):
                del into[length:]
            for scope, before in zip(self.scopes, known, strict=True):
                scope.known = before

        return go_back


def computed(function: str, values: list[Array], index: ir.Index | None = None) -> Array:
    """An operation on matrices; the column of a pointer is given as a number."""
    if isinstance(index, int):
        if function == "column":
            return values[0][:, [index]]
        changed = np.array(values[0])
        changed[:, [index]] = values[1]
        return changed
    return OPERATIONS[function](*values)


def simplified(function: str, operands: tuple[Operand, ...]) -> Operand | None:
    """An operand that is the result already, or None."""
    first, last = operands[0], operands[-1]
    left = first.single if isinstance(first, Const) else None
    right = last.single if isinstance(last, Const) else None
    if function in ("add", "sub") and right == 0.0:
        return first
    if function == "add" and left == 0.0:
        return last
    if function == "sub" and first == last:
        return Const.of(np.zeros((first.rows, first.columns)))
    if function == "hadamard":
        return first if right == 1.0 else last if left == 1.0 else None
    if function == "scale" and left == 1.0:
        return last
    if function == "scale" and right == 1.0 and last.rows == last.columns == 1:
        return first
    if function == "matmul" and isinstance(first, Const) and _is_identity(first):
        return last
    if function == "matmul" and isinstance(last, Const) and _is_identity(last):
        return first
    if function == "copy":
        return first
    return None


def _is_identity(const: Const) -> bool:
    return const.rows == const.columns and bool(np.all(np.diagonal(const.value) == 1.0)) and (
        np.count_nonzero(const.value) == const.rows)


def _order(operand: Operand) -> tuple[int, int, bytes]:
    return (0, operand.register.number, b"") if isinstance(operand, Ref) else (1, 0, operand.data)
