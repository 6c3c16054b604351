"""Where ways of control flow meet: every variable has a home there, a register that each way moves its value to."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from punchcard.python.arrays.arithmetic import matrix_shape
from punchcard.python.arrays.conditions import Conditions
from punchcard.python.arrays.dtypes import Kinds
from punchcard.python.arrays.ir import If, Loop, Operand, Ref, Region, Register
from punchcard.python.arrays.values import ArrayValue, Known, Missing, Shape, TupleValue, Value, shown


@dataclass
class Home:
    """The register of a variable where ways meet; None until the first way says what shape it has."""

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
    rest: Region
    all: Region


class OtherKinds(Exception):
    """A round of a loop gives variables entries of other types than they were taken to have at its beginning."""

    def __init__(self, loop: Loop, kinds: dict[str, Kinds]) -> None:
        super().__init__("types of variables change in a loop")
        self.loop, self.kinds = loop, kinds


@dataclass
class Results:
    """Where the values of return statements go."""

    block: Region
    homes: list[Home] = field(default_factory=list)
    one: bool = True
    direct: tuple[Value, ...] | None = None
    none: bool = False


class Meeting(Conditions):
    """Adds homes of variables, and a if c else b, to conditions."""

    def _move(self, homes: dict[Any, Home], values: dict[Any, Value], node: ast.AST, level: int | None = None) -> None:
        """Every home gets the value that its variable has on this way."""
        pairs: list[tuple[Register, Operand]] = []
        for name, home in homes.items():
            value = values.get(name)
            if home.missing:
                continue
            real = self._plain(value, node)
            if real is None:
                why = value.why if isinstance(value, Missing) else f"{name!r} has no value on some ways to this place"
                home.missing = why if value is None or isinstance(value, Missing) else (
                    f"{name!r} is not a number or an array on every way to this place")
                continue
            if home.register is None:
                home.register = self._register(name, real, level)
                home.shape = real.shape
            elif home.shape != real.shape:
                home.missing = f"{name!r} has {shown(home.shape)} on one way to this place, {shown(real.shape)} on another"
                continue
            home.register.integral &= real.operand.integral
            home.kinds |= real.kinds
            home.buffers |= real.buffers
            pairs.append((home.register, real.operand))
        self.builder.moves(pairs, self.line(node))

    def _register(self, name: Any, real: ArrayValue, level: int | None) -> Register:
        rows, columns = matrix_shape(real.shape)
        register = self.builder.register(rows, columns, name=name if name.isidentifier() else "", integral=True)
        if level is not None:
            register.level = level
        return register

    def _plain(self, value: Value | None, node: ast.AST) -> ArrayValue | None:
        """A value that a register can hold."""
        if value is None or isinstance(value, Missing | TupleValue):
            return None
        if isinstance(value, Known) and not isinstance(value.value, bool | int | float | np.number | np.ndarray):
            return None
        return self.real(value, node)

    def _set_env(self, values: dict[str, Value]) -> None:
        kept = dict(values)
        self.env.clear()
        self.env.update(kept)

    def _IfExp(self, node: ast.IfExp) -> Value:
        """a if c else b: an if whose ways end in one home."""
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        statement, home = If(condition, [], [], self.line(node)), {"value": Home()}
        self.builder.add(statement)
        for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
            with self.builder.scope(into, certain=False):
                self._move(home, {"value": self.evaluate(part)}, node, level=self.builder.level)
        value = home["value"].value
        if isinstance(value, Missing):
            self.missing(value, node)
        return value
