"""Where ways of control flow meet: every variable has a home there, a register that each way moves its value to."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import numpy as np

from punchcard.python.arrays.arithmetic import matrix_shape
from punchcard.python.arrays.conditions import ArrayConditions
from punchcard.python.arrays.dtypes import Kinds
from punchcard.python.arrays.expressions import ArrayExpressions
from punchcard.python.arrays.frame import Home
from punchcard.python.arrays.ir import If, Loop, Operand, Register
from punchcard.python.arrays.values import ArrayValue, Known, Missing, TupleValue, Value, shown


class OtherKinds(Exception):
    """A round of a loop gives variables entries of other types than they were taken to have at its beginning."""

    def __init__(self, loop: Loop, kinds: dict[str, Kinds]) -> None:
        super().__init__("types of variables change in a loop")
        self.loop, self.kinds = loop, kinds


class Joins:
    """Homes of variables where ways of control flow meet; and a if c else b, an if whose ways end in one home."""

    def __init__(self, expressions: ArrayExpressions, conditions: ArrayConditions) -> None:
        self.expressions, self.conditions, self.frame = expressions, conditions, expressions.frame
        expressions.handlers[ast.IfExp] = self._choice

    def move(self, homes: Mapping[str, Home], values: Mapping[str, Value], node: ast.AST, level: int | None = None) -> None:
        """Every home gets the value that its variable has on this way."""
        pairs: list[tuple[Register, Operand]] = []
        for name, home in homes.items():
            value = values.get(name)
            if home.missing:
                continue
            real = self.plain(value, node)
            if real is None:
                why = value.why if isinstance(value, Missing) else f"{name!r} has no value on some ways to this place"
                home.missing = why if value is None or isinstance(value, Missing) else (
                    f"{name!r} is not a number or an array on every way to this place")
                continue
            if home.register is None:
                home.register = self.register(name, real, level)
                home.shape = real.shape
            elif home.shape != real.shape:
                home.missing = f"{name!r} has {shown(home.shape)} on one way to this place, {shown(real.shape)} on another"
                continue
            home.register.integral &= real.operand.integral
            home.kinds |= real.kinds
            home.buffers |= real.buffers
            pairs.append((home.register, real.operand))
        self.frame.builder.moves(pairs, self.frame.line(node))

    def register(self, name: str, real: ArrayValue, level: int | None) -> Register:
        rows, columns = matrix_shape(real.shape)
        register = self.frame.builder.register(rows, columns, name=name if name.isidentifier() else "", integral=True)
        if level is not None:
            register.level = level
        return register

    def plain(self, value: Value | None, node: ast.AST) -> ArrayValue | None:
        """A value that a register can hold."""
        if value is None or isinstance(value, Missing | TupleValue):
            return None
        if isinstance(value, Known) and not isinstance(value.value, bool | int | float | np.number | np.ndarray):
            return None
        return self.expressions.real(value, node)

    def _choice(self, node: ast.IfExp) -> Value:
        condition = self.conditions.compile(node.test)
        if isinstance(condition, bool):
            return self.expressions.evaluate(node.body if condition else node.orelse)
        statement, home = If(condition, [], [], self.frame.line(node)), {"value": Home()}
        self.frame.builder.add(statement)
        for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
            with self.frame.builder.scope(into, certain=False):
                self.move(home, {"value": self.expressions.evaluate(part)}, node, level=self.frame.builder.level)
        value = home["value"].value
        if isinstance(value, Missing):
            self.expressions.missing(value, node)
        return value
