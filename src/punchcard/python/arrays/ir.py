"""The intermediate form: operations on registers, in structured code.

A register holds a matrix of known size; a vector is a column, a scalar is 1x1. A reference may be flipped: it is
then the transposed matrix, at no cost, since every register can be stored either way round (see `orientation`). So a
reference is also a slot: the register, stored that way round. A register that one operation sets is a value. A
register that `Moves` set is a variable of the source at a place where control flow meets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.python.source import FunctionSource

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class SourcePlace:
    source: FunctionSource = field(repr=False)
    node: ast.AST = field(repr=False)

    @property
    def number(self) -> int:
        return self.source.line(self.node)

    def __str__(self) -> str:
        return f"{self.source.file}:{self.number}: {self.source.text(self.node)}"

    def fail(self, message: str, instead: str = "") -> NoReturn:
        self.source.fail(self.node, message, instead)


@dataclass(eq=False)
class Register:
    """A place for a matrix. `level` is how many loops are around what sets it; `name` is the variable that it is for."""

    number: int
    rows: int
    columns: int
    level: int = 0
    integral: bool = False
    name: str = ""

    def __repr__(self) -> str:
        return f"%{self.number}{self.name}[{self.rows}x{self.columns}]"


@dataclass(frozen=True)
class Ref:
    """A register's matrix, or flipped its transpose."""

    register: Register
    flipped: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.register.rows, self.register.columns
        return (columns, rows) if self.flipped else (rows, columns)

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def columns(self) -> int:
        return self.shape[1]

    @property
    def integral(self) -> bool:
        return self.register.integral

    @property
    def flip(self) -> Ref:
        return self if self.shape == (1, 1) else Ref(self.register, not self.flipped)


@dataclass(frozen=True)
class Const:
    """A matrix that is known when the function is compiled."""

    data: bytes = field(repr=False)
    rows: int
    columns: int

    @classmethod
    def of(cls, value: object) -> Const:
        array = np.array(value, dtype=np.float64)
        array = array.reshape(1, 1) if array.ndim == 0 else array.reshape(-1, 1) if array.ndim == 1 else array
        return cls((array + 0.0).tobytes(), *array.shape)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    @property
    def value(self) -> Array:
        return np.frombuffer(self.data).reshape(self.shape)

    @cached_property
    def flip(self) -> Const:
        return Const.of(self.value.T)

    @property
    def integral(self) -> bool:
        return bool(np.all(self.value == np.round(self.value)))

    @property
    def single(self) -> float | None:
        """The number that every entry is; None where they differ."""
        first = float(self.value.flat[0])
        return first if bool(np.all(self.value == first)) else None


Operand: TypeAlias = Ref | Const


@dataclass(eq=False)
class Loop:
    """A body that is repeated: `count` times, or without a count until something leaves it.

    before    what stays the same in every round, done once before the loop
    index     the loop variable, where its value is used
    """

    line: SourcePlace
    count: int | Operand | None
    before: list[Statement] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)
    index: Register | None = None
    start: int = 0
    step: int = 1


@dataclass(frozen=True)
class Pointer:
    """A column that moves on with a loop: `offset` in its first round."""

    loop: Loop
    offset: int


Index: TypeAlias = int | Pointer


@dataclass(eq=False)
class Op:
    """target = function(operands). With an index: `column` takes that column of a matrix, `update` replaces it."""

    function: str
    target: Register
    operands: tuple[Operand, ...]
    line: SourcePlace
    index: Index | None = None


@dataclass(eq=False)
class Moves:
    """Registers of variables get values, all at once."""

    pairs: list[tuple[Register, Operand]]
    line: SourcePlace


@dataclass(eq=False)
class Test:
    """True where the flag, an integer, is 1 or more. `work` computes it."""

    work: list[Statement]
    flag: Operand
    line: SourcePlace


@dataclass(eq=False)
class Negation:
    inner: Condition


@dataclass(eq=False)
class Compound:
    """All conditions hold, or with `any` one of them; the later ones are looked at only where they matter."""

    parts: list[Condition]
    any: bool


Condition: TypeAlias = Test | Negation | Compound


@dataclass(eq=False)
class If:
    condition: Condition
    then: list[Statement]
    other: list[Statement]
    line: SourcePlace


@dataclass(eq=False)
class CodeRegion:
    """Statements that `Leave` can jump to the end of."""

    body: list[Statement] = field(default_factory=list)


@dataclass(eq=False)
class Leave:
    block: CodeRegion
    line: SourcePlace


Statement: TypeAlias = Op | Moves | If | Loop | CodeRegion | Leave


def tests(condition: Condition) -> Iterator[Test]:
    """The tests that a condition is made of."""
    if isinstance(condition, Test):
        yield condition
    elif isinstance(condition, Negation):
        yield from tests(condition.inner)
    else:
        for part in condition.parts:
            yield from tests(part)


def blocks(statement: Statement) -> list[list[Statement]]:
    """The code inside a statement."""
    if isinstance(statement, If):
        return [*(test.work for test in tests(statement.condition)), statement.then, statement.other]
    if isinstance(statement, Loop):
        return [statement.before, statement.body]
    return [statement.body] if isinstance(statement, CodeRegion) else []


def walk(statements: list[Statement]) -> Iterator[Statement]:
    """Every statement, with those inside."""
    for statement in statements:
        yield statement
        for block in blocks(statement):
            yield from walk(block)
