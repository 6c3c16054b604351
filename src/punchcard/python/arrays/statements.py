"""Statements of the source in order: branches and return. Assignments and loops have files of their own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from punchcard.python.arrays.assignments import Assignments
from punchcard.python.arrays.conditions import ArrayConditions
from punchcard.python.arrays.frame import Home
from punchcard.python.arrays.ir import CodeRegion, If, Leave, Statement
from punchcard.python.arrays.joins import Joins
from punchcard.python.arrays.names import assigned
from punchcard.python.arrays.values import Known, TupleValue, Value
from punchcard.python.constructs import name_of

MOST_DEPTH = 20


@dataclass
class Results:
    """Where the values of return statements go."""

    block: CodeRegion
    homes: list[Home] = field(default_factory=list)
    one: bool = True
    direct: tuple[Value, ...] | None = None
    none: bool = False


class ArrayStatements:
    """The statements of one function. `handlers` compile the kinds of statements; loops add theirs."""

    def __init__(self, assignments: Assignments, conditions: ArrayConditions, joins: Joins) -> None:
        self.assignments, self.conditions, self.joins = assignments, conditions, joins
        self.expressions, self.frame = assignments.expressions, assignments.frame
        self.results = Results(CodeRegion())
        self._direct: ast.Return | None = None
        self.handlers: dict[type[ast.stmt], Callable[..., None]] = assignments.handlers | {
            ast.If: self._if, ast.Return: self._return}

    def compile(self, arguments: dict[str, Value]) -> Value:
        """The value of the function for these arguments."""
        if len(self.frame.frames) > MOST_DEPTH:
            self.frame.fail(self.frame.source.node,
                            f"more than {MOST_DEPTH} calls inside each other: recursion is not in the subset of arrays",
                            "use a loop")
        self.frame.env = {name: self.assignments.owned(value) for name, value in arguments.items()}
        self.frame.frames.append(self.frame.env)
        body = list(self.frame.source.node.body)
        returns = [n for n in ast.walk(self.frame.source.node) if isinstance(n, ast.Return)]
        direct = len(returns) == 1 and body[-1] is returns[0]
        if direct:
            self._direct = returns[0]
            self.run(body)
            found = self.results.direct or ()
        else:
            self._direct = None
            self.frame.builder.add(self.results.block)
            with self.frame.builder.scope(self.results.block.body, certain=False):
                self.run(body)
            if not self.frame.over and (returns or self.results.homes):
                self.frame.fail(self.frame.source.node, "the function can end without return",
                                "return the same values on every way")
            found = tuple(home.value for home in self.results.homes)
        self.frame.frames.pop()
        if not found:
            return Known(None)
        return found[0] if self.results.one else TupleValue(found)

    def run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.frame.over:
                return
            handler = self.handlers.get(type(statement))
            if handler is None:
                kind = type(statement).__name__
                self.frame.fail(statement, f"{name_of(statement)} is not in the subset", _ADVICE.get(kind, ""))
            with self.expressions.refusing(statement):
                handler(statement)

    def _return(self, node: ast.Return) -> None:
        value = Known(None) if node.value is None else self.expressions.evaluate(node.value)
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
            self.frame.fail(node, "another number of values than the return before it")
        if isinstance(value, Known) and value.value is None:
            self.frame.fail(node, "return without a value", "return the same values on every way")
        names = [f"value {number + 1} of return" for number in range(len(items))]
        self.joins.move(dict(zip(names, results.homes, strict=True)), dict(zip(names, items, strict=True)), node,
                        level=self.frame.level)
        self.frame.builder.add(Leave(results.block, self.frame.line(node)))
        self.frame.over = True

    def _if(self, node: ast.If) -> None:
        condition = self.conditions.compile(node.test)
        if isinstance(condition, bool):
            self.run(node.body if condition else node.orelse)
            return
        statement = If(condition, [], [], self.frame.line(node))
        before, homes = dict(self.frame.env), {name: Home() for name in sorted(assigned([*node.body, *node.orelse]))}
        self.frame.builder.add(statement)
        ends: list[tuple[list[Statement], dict[str, Value]]] = []
        for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
            self.frame.set_env(before)
            self.frame.over = False
            with self.frame.builder.scope(into, certain=False):
                self.run(part)
            if not self.frame.over:
                ends.append((into, dict(self.frame.env)))
        self.frame.over = not ends
        if len(ends) == 1:
            self.frame.set_env(ends[0][1])
        elif ends:
            for into, values in ends:
                self.frame.set_env(values)
                with self.frame.builder.scope(into, certain=False):
                    self.joins.move(homes, values, node, level=self.frame.builder.level)
            self.frame.set_env(before)
            for name, home in homes.items():
                same = ends[0][1].get(name)
                if isinstance(same, TupleValue | Known) and same is ends[1][1].get(name):
                    self.frame.env[name] = same
                else:
                    self.frame.env[name] = home.value


_ADVICE = {"FunctionDef": "write it outside, under @pc.program", "Import": "import at the top of the file",
           "ImportFrom": "import at the top of the file", "Assert": "check the result of run()", "Match": "use if and elif"}
