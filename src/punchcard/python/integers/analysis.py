"""What every statement of a program does to its names: the whole program is gone through until nothing new is found."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from punchcard.python.constructs import name_of
from punchcard.python.integers.assignment_types import AssignmentTypes
from punchcard.python.integers.call_types import CallTypes
from punchcard.python.integers.expression_types import ExpressionTypes
from punchcard.python.integers.findings import Findings
from punchcard.python.integers.functions import IntegerFunction, ProgramFunctions
from punchcard.python.integers.values import NONE, TEXT, AbstractValue, Names, Unreached, join_names, truth
from punchcard.python.parameters import parameters_of

MOST_ROUNDS = 60
MOST_LOOPS = 7
"""Loops within loops: each takes the time of its body a few times."""
SIMPLE = {"int": "int", "bool": "bool", "str": "str", "list[int]": "list", "list[bool]": "list", "tuple[int,...]": "list"}


@dataclass
class LoopExits:
    """What leaves the loop that is gone through: names at `break` and at `continue`."""

    breaks: Names | None = None
    continues: Names | None = None
    broken: bool = field(default=False)


def analyse(functions: ProgramFunctions, entry: IntegerFunction, word_bits: int, *, check: bool) -> Findings:
    """Values for every expression of a function and of all that it calls."""
    findings = Findings(functions, word_bits, check=check)
    statements = StatementTypes(findings)
    before: object = None
    for _ in range(MOST_ROUNDS):
        findings.begin_round()
        for function in functions:
            if function is entry:
                function.given = {p.arg: statements.parameter(function, p) for p in parameters_of(function.source)}
            if len(function.given) == len(function.parameters):  # otherwise nothing has called it yet
                statements.body(function)
        now = findings.state_of_lists()
        if not findings.changed and now == before:
            if findings.stuck is not None:
                function, statement = findings.stuck
                function.source.fail(statement, "nothing goes on from here: what is called never returns")
            functions.mark_recursive()
            return findings
        before = now
    raise entry.source.error(entry.node, "the types of this program cannot be found out", "make it simpler")


class StatementTypes:
    """What statements do to names."""

    def __init__(self, findings: Findings) -> None:
        self.findings, self.fail = findings, findings.fail
        self.expressions = ExpressionTypes(findings)
        self.assignments = AssignmentTypes(self.expressions, CallTypes(self.expressions))
        self._loops: list[LoopExits] = []
        self._kinds: dict[type[ast.stmt], Callable[[Any, Names], Names | None]] = {
            ast.Pass: lambda node, names: names, ast.Global: self._global, ast.Nonlocal: self._global,
            ast.Expr: self._expression, ast.Assert: self._assert, ast.Assign: self._assign,
            ast.AnnAssign: self._annotated, ast.AugAssign: self._augmented, ast.Return: self._return, ast.If: self._if,
            ast.Break: self._break, ast.Continue: self._continue, ast.While: self._while, ast.For: self._for}

    def body(self, function: IntegerFunction) -> None:
        self.findings.function = function
        if self._block(function.node.body, dict(function.given)) is not None:
            self.findings.returned(NONE, function.node)

    def parameter(self, function: IntegerFunction, parameter: ast.arg) -> AbstractValue:
        """A parameter of the function that is compiled."""
        findings = self.findings
        findings.function = function
        text = "int" if parameter.annotation is None else ast.unparse(parameter.annotation).strip("'\"").replace(" ", "")
        kind = SIMPLE.get(text.replace("List", "list"))
        if kind is None:
            self.fail(parameter, f"a parameter of the type {text} is not in the integer subset",
                      "the types are int, bool, str and list[int]")
        if kind == "list":
            item = truth() if "bool" in text else findings.any_number
            return findings.created(parameter, item, 0, findings.word.high, is_tuple=text.startswith("tuple"))
        return findings.any_number if kind == "int" else truth() if kind == "bool" else TEXT

    def _block(self, statements: list[ast.stmt], names: Names | None) -> Names | None:
        """The names after statements, or None if no way leads on."""
        for statement in statements:
            if names is None:
                break
            kind = self._kinds.get(type(statement))
            if kind is None:
                self.fail(statement, f"{name_of(statement)} is not in the integer subset")
            try:
                names = kind(statement, names)
            except Unreached:
                names = None
                self.findings.skip(statement)
        return names

    def _global(self, node: ast.Global, names: Names) -> Names:
        return self.fail(node, "names outside a function are constants here", "pass the value, and return it")

    def _expression(self, node: ast.Expr, names: Names) -> Names:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.expressions.value(node.value, names)
        return names

    def _assert(self, node: ast.Assert, names: Names) -> Names | None:
        if node.msg is not None and not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)):
            self.fail(node, "the message of assert must be a text that is written out")
        self.expressions.condition(node.test, names)
        return self.expressions.narrowing.names_where(names, node.test, True)

    def _assign(self, node: ast.Assign, names: Names) -> Names:
        names = dict(names)
        first = node.targets[0]
        if isinstance(first, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
            if len(node.targets) > 1 or len(first.elts) != len(node.value.elts):
                self.fail(node, f"{len(first.elts)} names for {len(node.value.elts)} values")
            values = [self.expressions.value(each, names) for each in node.value.elts]
            for target, value in zip(first.elts, values, strict=True):
                self.assignments.assign(target, value, names)
            return names
        found = self.expressions.value(node.value, names)
        for target in node.targets:
            self.assignments.assign(target, found, names)
        return names

    def _annotated(self, node: ast.AnnAssign, names: Names) -> Names:
        if node.value is None:
            return names
        names = dict(names)
        self.assignments.assign(node.target, self.expressions.value(node.value, names), names)
        return names

    def _augmented(self, node: ast.AugAssign, names: Names) -> Names:
        names = dict(names)
        load: ast.expr = node.target
        old, right = self.expressions.value(load, names), self.expressions.value(node.value, names)
        if not old.is_number or not right.is_number or isinstance(node.op, ast.Div | ast.MatMult):
            self.fail(node, f"{old.words} and {right.words} cannot be combined so here",
                      "print can put texts together, and // divides whole numbers")
        new = self.expressions.arithmetic(node, node.op, old, right)
        self.findings.record(node, new)
        self.assignments.assign(node.target, new, names)
        return names

    def _return(self, node: ast.Return, names: Names) -> None:
        if isinstance(node.value, ast.Tuple):
            parts = tuple(self.expressions.value(each, names) for each in node.value.elts)
            if any(part.kind in ("results", "none") for part in parts):
                self.fail(node, "a function returns numbers, texts and lists")
            value = AbstractValue("results", results=parts)
        else:
            value = NONE if node.value is None else self.expressions.value(node.value, names)
        if value.kind == "char" and self.findings.function.node.returns is not None and ast.unparse(
                self.findings.function.node.returns) == "str":
            value = TEXT
        self.findings.returned(value, node)

    def _if(self, node: ast.If, names: Names) -> Names | None:
        self.expressions.condition(node.test, names)
        ways = [self.expressions.narrowing.names_where(names, node.test, holds) for holds in (True, False)]
        return join_names(self._block(node.body, ways[0]), self._block(node.orelse, ways[1]))

    def _break(self, node: ast.Break, names: Names) -> None:
        around = self._loops[-1]
        around.breaks, around.broken = join_names(around.breaks, names), True

    def _continue(self, node: ast.Continue, names: Names) -> None:
        self._loops[-1].continues = join_names(self._loops[-1].continues, names)

    def _while(self, node: ast.While, names: Names) -> Names | None:
        def body(head: Names) -> Names | None:
            self.expressions.condition(node.test, head)
            return self._inside(node.body, self.expressions.narrowing.names_where(head, node.test, True))

        head, _, around = self._stable(names, body)
        after = self._block(node.orelse, self.expressions.narrowing.names_where(head, node.test, False))
        return join_names(after, around.breaks)

    def _for(self, node: ast.For, names: Names) -> Names | None:
        least = 0

        def body(head: Names) -> Names | None:
            nonlocal least
            inside = dict(head)
            least = self.assignments.iteration(node.iter, node.target, inside)[0]
            return self._inside(node.body, inside)

        head, end, around = self._stable(names, body)
        after = end if least >= 1 else join_names(head, end)
        return join_names(self._block(node.orelse, after), around.breaks)

    def _inside(self, statements: list[ast.stmt], names: Names | None) -> Names | None:
        """The names at the end of a loop's body, and at every `continue`."""
        end = self._block(statements, names)
        return join_names(end, self._loops[-1].continues)

    def _stable(
        self, names: Names, body: Callable[[Names], Names | None]
    ) -> tuple[Names, Names | None, LoopExits]:
        """The names at the head of a loop, whichever time it is; then those at the end of its body, and what leaves it."""
        if len(self._loops) >= MOST_LOOPS:
            self.findings.function.source.fail(self.findings.function.node, f"loops are nested more than {MOST_LOOPS} deep",
                                      "put the inner ones into a function of their own")
        with self.findings.trying():
            head, count = names, 0
            while True:
                new = join_names(head, self._once(body, head)[0])
                assert new is not None
                if same(new, head):
                    break
                head, count = new if count < 1 else self._wider(head, new), count + 1
            narrow = join_names(names, self._once(body, head)[0])
            assert narrow is not None
        end, around = self._once(body, narrow)
        return narrow, end, around

    def _once(self, body: Callable[[Names], Names | None], head: Names) -> tuple[Names | None, LoopExits]:
        self._loops.append(LoopExits())
        try:
            end = body(head)
        except Unreached:
            end = None
        return end, self._loops.pop()

    def _wider(self, old: Names, new: Names) -> Names:
        """Names whose intervals still grow, moved on to the next threshold."""
        return {name: value.between(self.findings.threshold(value.interval, old[name].interval))
                if name in old and value.kind in ("int", "number") else value for name, value in new.items()}


def same(one: Names, two: Names) -> bool:
    return one == two and all(value.items is None or value.items.root is two[name].items.root  # type: ignore[union-attr]
                              for name, value in one.items())
