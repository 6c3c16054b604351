"""What the parts of one function's compiler share: its variables, its open loops, and where operations are written.

A variable is the value that was last assigned to it. Where paths of control flow meet, after an if and at the head of a
loop, it gets a register of its own, its home, and each path ends by moving its value there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

import numpy as np

from punchcard.errors import shortened
from punchcard.python.arrays.arithmetic import Arithmetic
from punchcard.python.arrays.ir import CodeRegion, Const, Ref, Register, SourcePlace
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.arrays.values import (
    WHOLE,
    ArrayValue,
    Kinds,
    LoopVariable,
    Missing,
    Shape,
    TupleValue,
    Value,
    kinds_of,
)
from punchcard.python.source import FunctionSource, name_of

NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
Handlers: TypeAlias = Mapping[type[ast.AST], Callable[..., Value | None]]
"""Functions that compile the kinds of nodes, called with the frame and the node. Those of expressions give a value."""


@dataclass
class Home:
    """The register of a variable where paths of control flow meet; its shape is that of the first path."""

    register: Register | None = None
    shape: Shape = ()
    buffers: frozenset[int] = frozenset()
    kinds: Kinds = frozenset()
    missing: str = ""

    @property
    def value(self) -> Value:
        if self.missing or self.register is None:
            return Missing(self.missing or "it has no value here")
        return ArrayValue(Ref(self.register), self.shape, self.buffers, self.kinds)


@dataclass
class LoopFrame:
    """What break and continue leave, and the homes of the variables that the loop assigns."""

    homes: dict[str, Home]
    rest: CodeRegion
    all: CodeRegion


@dataclass
class ReturnedValues:
    """Where the values of return statements go; `one`: they return one value. `last`: the only one, at the end."""

    block: CodeRegion
    homes: list[Home] = field(default_factory=list)
    one: bool = True
    last: ast.Return | None = None
    direct: tuple[Value, ...] = ()


class Frame:
    """A call of a function while it is compiled.

    env       its variables;  frames  those of the functions that called it, and its own
    loops     the loops that are open;  level  how many were open at the call
    over      whether the place that is being compiled cannot be reached
    results   where the values of return go
    """

    def __init__(
        self, source: FunctionSource, builder: OperationBuilder, frames: list[dict[str, Value]], handlers: Handlers
    ) -> None:
        self.source, self.builder, self.frames, self.handlers = source, builder, frames, handlers
        self.limits = builder.limits
        self.arithmetic = Arithmetic(builder)
        self.results = ReturnedValues(CodeRegion())
        self.env: dict[str, Value] = {}
        self.loops: list[LoopFrame] = []
        self.over = False
        self.level = builder.level

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        self.source.fail(node, message, instead)

    def line(self, node: ast.AST) -> SourcePlace:
        return SourcePlace(self.source, node)

    def at(self, node: ast.AST) -> Arithmetic:
        """Arithmetic at a place of the source."""
        self.arithmetic.line = self.line(node)
        return self.arithmetic

    def mark(self) -> Callable[[], None]:
        """A function that goes back to the state of now, as if nothing had been compiled since."""
        undo, env, loops, frames = self.builder.mark(), dict(self.env), len(self.loops), len(self.frames)

        def go_back() -> None:
            undo()
            self.set_env(env)
            del self.loops[loops:], self.frames[frames:]
            self.over = False

        return go_back

    def set_env(self, values: Mapping[str, Value]) -> None:
        """Other values for all variables; the mapping itself stays, since frames hold it."""
        kept = dict(values)
        self.env.clear()
        self.env.update(kept)

    # Source

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression."""
        self.at(node)
        found = self._compile(node)
        assert found is not None
        return found

    def run(self, statements: Sequence[ast.stmt]) -> None:
        """Compile statements in order, up to one that never continues."""
        for statement in statements:
            if self.over:
                return
            self._compile(statement)

    def _compile(self, node: ast.AST) -> Value | None:
        if type(node) not in self.handlers:
            self.fail(node, f"{name_of(node)} is not in the subset", _INSTEAD.get(type(node), ""))
        with self.source.refusing(node):
            self.limits.spend()
            return self.handlers[type(node)](self, node)

    # Values

    def real(self, value: Value, node: ast.AST) -> ArrayValue:
        """A value as an array on the card."""
        if isinstance(value, ArrayValue):
            return value
        if isinstance(value, LoopVariable):
            return self._index(value)
        if isinstance(value, TupleValue):
            self.fail(node, "a tuple or list is not an array",
                      "use one variable for each item, or give the array as an argument")
        if isinstance(value, Missing):
            self.fail(node, value.why)
        given = self.limits.known(value.value)
        if isinstance(given, np.ndarray) and given.dtype.kind in "buif" and given.size > 0 and given.ndim <= 2:
            return ArrayValue(Const.of(given), given.shape, frozenset([id(given)]), self.kinds(given, node))
        if not isinstance(given, NUMBERS):
            self.fail(node, f"{described(given)} is not a number or an array of at most two dimensions")
        if not abs(float(given)) <= 1e300:
            self.fail(node, f"{shortened(given)} is not a finite number that the machine can hold")
        return ArrayValue(Const.of(float(given)), (), kinds=self.kinds(given, node))

    def kinds(self, given: object, node: ast.AST) -> Kinds:
        """The types of a constant; NumPy rounds numbers of less precision, and wraps smaller integers around."""
        found = kinds_of(given)
        if found is None:
            self.fail(node, f"{described(given)} of {np.asarray(given).dtype}: NumPy computes with that precision",
                      "make it with dtype=float")
        return found

    def _index(self, value: LoopVariable) -> ArrayValue:
        """The value of a loop variable: a scalar that the loop counts up."""
        loop = value.loop
        if loop.index is None:
            loop.index = self.builder.register(1, 1, name="i", integral=True)
            loop.index.level = 1 + next(i for i, (other, _) in enumerate(self.builder.loops) if other is loop)
        times = value.step / loop.step
        counted = ArrayValue(Ref(loop.index), (), kinds=WHOLE)
        if times != 1:
            counted = self.arithmetic.scaled(Const.of(times), counted, WHOLE)
        return self.arithmetic.add(counted, ArrayValue(Const.of(value.first - times * loop.start), (), kinds=WHOLE))


def described(value: object) -> str:
    """A constant in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of the shape {value.shape}"
    return shortened(value, 60)


_INSTEAD: Mapping[type[ast.AST], str] = {
    ast.Lambda: "write a function with def, under @pc.program", ast.ListComp: "write a for loop",
    ast.GeneratorExp: "write a for loop", ast.Dict: "use one variable for each item",
    ast.BoolOp: "use it in the condition of if or while", ast.NamedExpr: "write the assignment on a line of its own",
    ast.JoinedStr: "text is not in the subset of arrays", ast.FunctionDef: "write it outside, under @pc.program",
    ast.Import: "import at the top of the file", ast.ImportFrom: "import at the top of the file",
    ast.Assert: "check the result of run()", ast.Match: "use if and elif"}
"""What to write in place of a construct that is not in the subset."""
