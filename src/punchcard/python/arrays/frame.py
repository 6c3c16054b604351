"""What the parts of one function's compiler share: its variables, its open loops, and where operations are written.

A variable is the value that was last assigned to it. Where paths of control flow meet, after an if and at the head of a
loop, it gets a register of its own, its home, and each path ends by moving its value there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from punchcard.python.arrays.arithmetic import Arithmetic
from punchcard.python.arrays.dtypes import Kinds
from punchcard.python.arrays.ir import CodeRegion, Ref, Register, SourcePlace
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.arrays.values import ArrayValue, Missing, Shape, Value
from punchcard.python.source import FunctionSource


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


class Frame:
    """A call of a function while it is compiled.

    env       its variables;  frames  those of the functions that called it, and its own
    loops     the loops that are open;  level  how many were open at the call
    over      whether the place that is being compiled cannot be reached
    """

    def __init__(self, source: FunctionSource, builder: OperationBuilder, frames: list[dict[str, Value]]) -> None:
        self.source, self.builder, self.frames = source, builder, frames
        self.arithmetic = Arithmetic(builder)
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
