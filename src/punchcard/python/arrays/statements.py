"""Statements of the source: assignments and control flow.

A variable is the value that was last assigned to it. Where ways of control flow meet, after an if and at the head of a
loop, it gets a register of its own, its home, and each way ends by moving its value there. Moves that are not needed
go later.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from punchcard.python.arrays import indexing
from punchcard.python.arrays.dtypes import keeps, least
from punchcard.python.arrays.ir import If, Leave, Region, Statement
from punchcard.python.arrays.joins import Home, LoopFrame, Meeting, Results
from punchcard.python.arrays.names import assigned
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.arrays.values import ArrayValue, Known, Refusal, TupleValue, Value, shown
from punchcard.python.constructs import name_of
from punchcard.python.source import FunctionSource

MOST_DEPTH = 20
_BUFFERS = count(1)


class Body(Meeting):
    """The statements of one function."""

    def __init__(self, source: FunctionSource, builder: OperationBuilder, frames: list[dict[str, Value]]) -> None:
        super().__init__(source, builder, frames)
        self.loops: list[LoopFrame] = []
        self.results = Results(Region())
        self.over = False
        """Whether the place that is being compiled cannot be reached."""
        self.level = 0
        """How many loops stand around the call."""

    def compile(self, arguments: dict[str, Value]) -> Value:
        """The value of the function for these arguments."""
        if len(self.frames) > MOST_DEPTH:
            self.fail(self.source.node,
                      f"more than {MOST_DEPTH} calls inside each other: recursion is not in the subset of arrays",
                      "use a loop")
        self.env = {name: self._owned(value) for name, value in arguments.items()}
        self.frames.append(self.env)
        self.level = self.builder.level
        body = list(self.source.node.body)
        returns = [n for n in ast.walk(self.source.node) if isinstance(n, ast.Return)]
        direct = len(returns) == 1 and body[-1] is returns[0]
        if direct:
            self._direct = returns[0]
            self.run(body)
            found = self.results.direct or ()
        else:
            self._direct = None
            self.builder.add(self.results.block)
            with self.builder.scope(self.results.block.body, certain=False):
                self.run(body)
            if not self.over and (returns or self.results.homes):
                self.fail(self.source.node, "the function can end without return", "return the same values on every way")
            found = tuple(home.value for home in self.results.homes)
        self.frames.pop()
        if not found:
            return Known(None)
        return found[0] if self.results.one else TupleValue(found)

    _direct: ast.Return | None = None

    def run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.over:
                return
            method = getattr(self, f"_{type(statement).__name__}", None)
            if method is None:
                kind = type(statement).__name__
                self.fail(statement, f"{name_of(statement)} is not in the subset", _ADVICE.get(kind, ""))
            try:
                method(statement)
            except Refusal as refusal:
                self.fail(statement, refusal.message, refusal.instead)

    # Assignments

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "print":
                self.fail(node, "print in a function of arrays: the FLEQ machine has no output", "return the value")
            self.evaluate(node.value)

    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Assign(self, node: ast.Assign) -> None:
        value = self._owned(self.evaluate(node.value))  # x = y = ... is one array
        for target in node.targets:
            self.assign(target, value)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.fail(node, "a variable without a value", "assign one")
        self.assign(node.target, self.evaluate(node.value))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = self._owned(value)
        elif isinstance(target, ast.Tuple | ast.List):
            items = self._items(target, value, len(target.elts))
            for at, (part, item) in enumerate(zip(target.elts, items, strict=True)):
                self._not_seen_by(part, items[at + 1 :])
                self.assign(part, item)
        elif isinstance(target, ast.Subscript):
            self._put(target, self.real(value, target))
        else:
            self.fail(target, f"assignment to {ast.unparse(target)}", "assign to a name, or to a part of an array")

    def _not_seen_by(self, target: ast.expr, items: Sequence[Value]) -> None:
        """Refuse A[0], A[1] = A[1], A[0]: in NumPy these are views, so the second one sees what the first one stored."""
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            held = self.env.get(target.value.id)
            if isinstance(held, ArrayValue) and any(
                    isinstance(item, ArrayValue) and item.shape and item.buffers & held.buffers for item in items):
                self.fail(target, f"{target.value.id!r} is changed here, and a value that is assigned next is a part of it",
                          "write .copy() behind that value")

    def _owned(self, value: Value) -> Value:
        """An array that has a name is an array of its own, as long as it is not a part or a view of another."""
        if isinstance(value, ArrayValue) and value.shape and not value.buffers:
            return replace(value, buffers=frozenset([-next(_BUFFERS)]))
        return value

    def _items(self, node: ast.expr, value: Value, wanted: int) -> list[Value]:
        if isinstance(value, Known) and isinstance(value.value, tuple):
            value = TupleValue(tuple(Known(item) for item in value.value))
        if isinstance(value, TupleValue):
            items = list(value.items)
        else:
            real = self.real(value, node)
            if real.is_scalar:
                self.fail(node, "a scalar on the right, several variables on the left")
            items = [self._row(real, Known(i)) for i in range(real.shape[0])]
        if len(items) != wanted:
            self.fail(node, f"{len(items)} values for {wanted} variables")
        return items

    def _row(self, real: ArrayValue, index: Value) -> Value:
        """An item of an array, as iterating over it gives."""
        places = [indexing.place(index, real.shape[0], 0), *(indexing.Span(tuple(range(n))) for n in real.shape[1:])]
        found = indexing.get(self.arithmetic, real, places)
        return ArrayValue(found.operand, found.shape, real.buffers if found.shape else frozenset(), real.kinds)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            old = self.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            new = self.combine(node, type(node.op), old, self.evaluate(node.value))
            if isinstance(old, ArrayValue) and old.shape:
                self._alone(node, target.id, old)
                made = self.real(new, node)
                if made.shape != old.shape:
                    self.fail(node,
                              f"{target.id} has {shown(old.shape)}, and the result {shown(made.shape)}: an array that is "
                              "changed in place keeps its shape", f"write {target.id} = {target.id} ...")
                self._check_kinds(node, target.id, old, made)
                new = ArrayValue(made.operand, made.shape, old.buffers, old.kinds)
            elif isinstance(old, Known) and isinstance(old.value, np.ndarray):
                self.fail(node, f"{target.id} is an array from outside the function, which would be changed in place",
                          f"write {target.id} = {target.id} ...")
            self.env[target.id] = self._owned(new)
        elif isinstance(target, ast.Subscript):
            reading = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
            new = self.combine(node, type(node.op), self.evaluate(reading), self.evaluate(node.value))
            self._put(target, self.real(new, node))
        else:
            self.fail(node, f"assignment to {ast.unparse(target)}")

    def _put(self, target: ast.Subscript, value: ArrayValue) -> None:
        """A part of an array gets other values."""
        if not isinstance(target.value, ast.Name) or target.value.id not in self.env:
            self.fail(target, "a part of something that is not a variable of the function",
                      "write X[i, j] = ..., not X[i][j]")
        name = target.value.id
        if isinstance(self.env[name], Known):
            self.fail(target, f"{name!r} is an array from outside the function, which would be changed in place",
                      f"write {name} = ....copy() first")
        real = self.real(self.env[name], target)
        self._alone(target, name, real)
        self._check_kinds(target, name, real, value)
        places = self.places(target, real)
        self.arithmetic.line = self.line(target)
        new = indexing.put(self.arithmetic, real, places, ArrayValue(value.operand, value.shape))
        self.env[name] = ArrayValue(new.operand, real.shape, real.buffers, real.kinds)

    def _check_kinds(self, node: ast.AST, name: str, old: ArrayValue, new: ArrayValue) -> None:
        """Refuse to store what NumPy would cut off, or refuse, in an array of integers or comparisons."""
        if not keeps(old.kinds, new.kinds):
            be = "is" if len(old.kinds) == 1 else "may be"
            self.fail(node, f"{name!r} {be} an array of {least(old.kinds)}, which does not keep what is stored here",
                      f"write {name} = 1.0 * {name} first")

    def _alone(self, node: ast.AST, name: str, value: ArrayValue) -> None:
        """Refuse to change an array that has a second name: NumPy would change both."""
        for frame in self.frames:
            for other, held in frame.items():
                same = frame is self.env and other == name
                if not same and isinstance(held, ArrayValue) and held.shape and held.buffers & value.buffers:
                    self.fail(node, f"{name!r} is changed in place, and {other!r} is the same array or a part of it",
                              f"write {other} = ....copy() where it is made")

    # Return

    def _Return(self, node: ast.Return) -> None:
        value = Known(None) if node.value is None else self.evaluate(node.value)
        several = isinstance(value, TupleValue) or (isinstance(value, Known) and isinstance(value.value, tuple))
        items: tuple[Value, ...]
        if isinstance(value, TupleValue):
            items = value.items
        elif isinstance(value, Known) and isinstance(value.value, tuple):
            items = tuple(Known(item) for item in value.value)
        else:
            items = (value,)
        results = self.results
        if node is self._direct:
            results.direct, results.one = items, not several
            return
        if not results.homes:
            results.homes, results.one = [Home() for _ in items], not several
        elif len(results.homes) != len(items) or results.one == several:
            self.fail(node, "another number of values than the return before it")
        if isinstance(value, Known) and value.value is None:
            self.fail(node, "return without a value", "return the same values on every way")
        names = [f"value {number + 1} of return" for number in range(len(items))]
        self._move(dict(zip(names, results.homes, strict=True)), dict(zip(names, items, strict=True)), node,
                   level=self.level)
        self.builder.add(Leave(results.block, self.line(node)))
        self.over = True

    # Branches

    def _If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.run(node.body if condition else node.orelse)
            return
        statement = If(condition, [], [], self.line(node))
        before, homes = dict(self.env), {name: Home() for name in sorted(assigned([*node.body, *node.orelse]))}
        self.builder.add(statement)
        ends: list[tuple[list[Statement], dict[str, Value]]] = []
        for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
            self._set_env(before)
            self.over = False
            with self.builder.scope(into, certain=False):
                self.run(part)
            if not self.over:
                ends.append((into, dict(self.env)))
        self.over = not ends
        if len(ends) == 1:
            self._set_env(ends[0][1])
        elif ends:
            for into, values in ends:
                self._set_env(values)
                with self.builder.scope(into, certain=False):
                    self._move(homes, values, node, level=self.builder.level)
            self._set_env(before)
            for name, home in homes.items():
                same = ends[0][1].get(name)
                if isinstance(same, TupleValue | Known) and same is ends[1][1].get(name):
                    self.env[name] = same
                else:
                    self.env[name] = home.value


_ADVICE = {"FunctionDef": "write it outside, under @pc.program", "Import": "import at the top of the file",
           "ImportFrom": "import at the top of the file", "Assert": "check the result of run()", "Match": "use if and elif"}
