"""What every statement of a program does to its names: the whole program is gone through until nothing new is found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from punchcard.python.integers.call_types import CallTypes
from punchcard.python.integers.expression_types import ExpressionTypes
from punchcard.python.integers.findings import Findings
from punchcard.python.integers.functions import IntegerFunction, ProgramFunctions
from punchcard.python.integers.values import CHAR, NONE, TEXT, AbstractValue, Names, Unreached, join_names, number, truth
from punchcard.python.intervals import Interval
from punchcard.python.source import name_of, parameters_of

MOST_ROUNDS = 60
MOST_LOOPS = 7
"""Loops within loops: each takes the time of its body a few times."""
SIMPLE = {"int": "int", "bool": "bool", "str": "str", "list[int]": "list", "list[bool]": "list", "tuple[int,...]": "list"}


@dataclass
class LoopExits:
    """What leaves the loop that is gone through: names at `break` and at `continue`."""

    breaks: Names | None = None
    continues: Names | None = None


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
                function.source.fail(statement, "the program cannot continue here: what is called never returns")
            functions.mark_recursive()
            return findings
        before = now
    raise entry.source.error(entry.node, "the types of this program cannot be found out", "make it simpler")


class StatementTypes:
    """What statements do to names, and what a loop gives to its variables."""

    def __init__(self, findings: Findings) -> None:
        self.findings, self.fail = findings, findings.fail
        self.expressions = ExpressionTypes(findings)
        self.calls = CallTypes(self.expressions)
        self.expressions.add({ast.ListComp: self._comprehension})
        self._sources = {"range": self._range, "enumerate": self._enumerate, "zip": self._zip}
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
            self.findings.reach(statement)
            kind = self._kinds.get(type(statement))
            if kind is None:
                self.fail(statement, f"{name_of(statement)} is not in the integer subset")
            try:
                with self.findings.function.source.refusing(statement):
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
        return self.expressions.names_where(names, node.test, True)

    def _assign(self, node: ast.Assign, names: Names) -> Names:
        names = dict(names)
        first = node.targets[0]
        for part in ast.walk(first):
            if isinstance(part, ast.Starred):
                self.fail(part, "* in a target is not in the integer subset", "name every value")
        if isinstance(first, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
            if len(node.targets) > 1:
                self.fail(node, "several values to several targets at once", "write an assignment for each target")
            if len(first.elts) != len(node.value.elts):
                self.fail(node, f"{len(first.elts)} names for {len(node.value.elts)} values")
            self._assign_parts(first.elts, [self.expressions.value(each, names) for each in node.value.elts], names)
            return names
        apart = all(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
        found = (self.expressions.several if apart else self.expressions.value)(node.value, names)
        for target in node.targets:
            self.assign(target, found, names)
        return names

    def _annotated(self, node: ast.AnnAssign, names: Names) -> Names:
        return names if node.value is None else self._assign(ast.Assign([node.target], node.value), names)

    def _augmented(self, node: ast.AugAssign, names: Names) -> Names:
        names = dict(names)
        old, right = self.expressions.value(node.target, names), self.expressions.value(node.value, names)
        if not old.is_number or not right.is_number or isinstance(node.op, ast.Div | ast.MatMult):
            self.fail(node, f"{old.words} and {right.words} cannot be combined so here",
                      "print can put texts together, and // divides whole numbers")
        new = self.expressions.arithmetic(node, node.op, old, right)
        self.findings.record(node, new)
        self.assign(node.target, new, names)
        return names

    def _return(self, node: ast.Return, names: Names) -> None:
        if isinstance(node.value, ast.Tuple):
            value = self.expressions.several(node.value, names)
            if any(part.kind in ("results", "none") for part in value.results):
                self.fail(node, "a function returns numbers, texts and lists")
        else:
            value = NONE if node.value is None else self.expressions.value(node.value, names)
        if value.kind == "char" and self.findings.function.node.returns is not None and ast.unparse(
                self.findings.function.node.returns) == "str":
            value = TEXT
        self.findings.returned(value, node)

    def _if(self, node: ast.If, names: Names) -> Names | None:
        self.expressions.condition(node.test, names)
        ways = [self.expressions.names_where(names, node.test, holds) for holds in (True, False)]
        return join_names(self._block(node.body, ways[0]), self._block(node.orelse, ways[1]))

    def _break(self, node: ast.Break, names: Names) -> None:
        self._loops[-1].breaks = join_names(self._loops[-1].breaks, names)

    def _continue(self, node: ast.Continue, names: Names) -> None:
        self._loops[-1].continues = join_names(self._loops[-1].continues, names)

    def _while(self, node: ast.While, names: Names) -> Names | None:
        def body(head: Names) -> Names | None:
            self.expressions.condition(node.test, head)
            return self._inside(node.body, self.expressions.names_where(head, node.test, True))

        head, _, breaks = self._stable(names, body)
        after = self._block(node.orelse, self.expressions.names_where(head, node.test, False))
        return join_names(after, breaks)

    def _for(self, node: ast.For, names: Names) -> Names | None:
        least = 0

        def body(head: Names) -> Names | None:
            nonlocal least
            inside = dict(head)
            least = self.iteration(node.iter, node.target, inside)[0]
            return self._inside(node.body, inside)

        head, end, breaks = self._stable(names, body)
        after = end if least >= 1 else join_names(head, end)
        return join_names(self._block(node.orelse, after), breaks)

    def _inside(self, statements: list[ast.stmt], names: Names | None) -> Names | None:
        """The names at the end of a loop's body, and at every `continue`."""
        end = self._block(statements, names)
        return join_names(end, self._loops[-1].continues)

    def _stable(self, names: Names, body: Callable[[Names], Names | None]) -> tuple[Names, Names | None, Names | None]:
        """The names at the head of a loop, whichever time it is; then those at the end of its body, and at `break`."""
        if len(self._loops) >= MOST_LOOPS:
            self.findings.function.source.fail(self.findings.function.node, f"loops are nested more than {MOST_LOOPS} deep",
                                      "put the inner ones into a function of their own")
        with self.findings.trying():
            head, count = names, 0
            while True:
                new = join_names(head, self._once(body, head)[0]) or head
                if same(new, head):
                    break
                head, count = new if count < 1 else self._wider(head, new), count + 1
            narrow = join_names(names, self._once(body, head)[0]) or names
        return narrow, *self._once(body, narrow)

    def _once(self, body: Callable[[Names], Names | None], head: Names) -> tuple[Names | None, Names | None]:
        """The names at the end of a loop's body, and at `break`."""
        self._loops.append(LoopExits())
        try:
            end = body(head)
        except Unreached:
            end = None
        return end, self._loops.pop().breaks

    def _wider(self, old: Names, new: Names) -> Names:
        """Names whose intervals still grow, moved on to the next threshold."""
        return {name: value.between(self.findings.threshold(value.interval, old[name].interval))
                if name in old and value.kind in ("int", "number") else value for name, value in new.items()}

    # What loops and comprehensions go over, and what variables get

    def _comprehension(self, node: ast.ListComp, names: Names) -> AbstractValue:
        generator = node.generators[0]
        if len(node.generators) != 1 or generator.ifs or generator.is_async:
            self.fail(node, "a comprehension has one `for` and no `if` here", "write a loop")
        inner = dict(names)
        low, high = self.iteration(generator.iter, generator.target, inner)
        return self.findings.created(node, self.expressions.value(node.elt, inner), low, high)

    def iteration(self, node: ast.expr, target: ast.expr, names: Names) -> tuple[int, int]:
        """What a `for` gives its target; and the least and the most times."""
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in self._sources and name not in self.findings.function.source.names:
            if node.keywords:
                self.fail(node, f"{name}() takes no keywords here")
            return self._sources[name](node, target, names)
        found = self.expressions.value(node, names)
        if found.kind == "str":
            self.assign(target, CHAR, names)
            return 0, self.findings.word.high
        if found.kind == "char":
            self.assign(target, found, names)
            return 1, 1
        if found.kind != "list":
            self.fail(node, f"a loop cannot go over {found.words}", "it goes over range(...), a list or a text")
        if found.list.item is None:
            raise Unreached
        self.assign(target, found.list.item, names)
        return found.list.low, found.list.high

    def _step(self, node: ast.Call, names: Names) -> AbstractValue:
        step = number(1) if len(node.args) < 3 else self.expressions.number(node.args[2], names, "the step of range()")
        if step.low <= 0 < step.high:
            return number(1, step.high)  # the program tests it: see LoopCode
        if step.low <= 0 <= step.high:
            self.fail(node.args[2], "it is not known whether the step of range() is above 0 or below",
                      "test it before, or write a while loop")
        return step

    def _range(self, node: ast.Call, target: ast.expr, names: Names) -> tuple[int, int]:
        self.calls.arguments(node, 1, 3)
        ends = [self.expressions.number(each, names, "an argument of range()") for each in node.args[:2]]
        start, stop = ends if len(ends) == 2 else (number(0), ends[0])
        step = self._step(node, names)
        if step.low > 0:
            low, high = start.low, max(start.low, stop.high - 1)
            least, most = stop.low - start.high, stop.high - start.low
        else:
            low, high = min(stop.low + 1, start.high), start.high
            least, most = start.low - stop.high, start.high - stop.low
        longest, shortest = max(abs(step.low), abs(step.high)), min(abs(step.low), abs(step.high))
        if not isinstance(target, ast.Name):
            self.fail(target, "a loop over range() gives one number")
        self.assign(target, number(low, high), names)
        return max(0, -(-least // longest)), min(max(0, -(-most // shortest)), self.findings.word.high)

    def _enumerate(self, node: ast.Call, target: ast.expr, names: Names) -> tuple[int, int]:
        self.calls.arguments(node, 1, 2)
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            self.fail(target, "enumerate() gives two values", "write `for i, x in enumerate(...)`")
        least, most = self.iteration(node.args[0], target.elts[1], names)
        first = 0
        if len(node.args) == 2:
            known = self.expressions.number(node.args[1], names, "the start of enumerate()").constant
            if known is None:
                self.fail(node.args[1], "the start of enumerate() must be a constant")
            first = known or 0
        self.assign(target.elts[0], self.findings.fit(Interval(first, first + max(0, most - 1))), names)
        return least, most

    def _zip(self, node: ast.Call, target: ast.expr, names: Names) -> tuple[int, int]:
        if not isinstance(target, ast.Tuple) or len(target.elts) != len(node.args) or len(node.args) < 2:
            self.fail(target, f"zip() of {len(node.args)} gives as many values, two or more")
        counts = [self.iteration(each, to, names) for each, to in zip(node.args, target.elts, strict=True)]
        return min(low for low, _ in counts), min(high for _, high in counts)

    def _assign_parts(self, targets: Sequence[ast.expr], parts: Sequence[AbstractValue], names: Names) -> None:
        for target, part in zip(targets, parts, strict=True):
            if part.kind == "results":
                self.fail(target, "several values inside of several values", "unpack them in a statement of their own")
            self.assign(target, part, names)

    def assign(self, target: ast.expr, value: AbstractValue, names: Names) -> None:
        """A value to a name, an item of a list, or several of them."""
        if isinstance(target, ast.Name):
            if value.kind in ("results", "none"):
                self.fail(target, f"{target.id!r} would be {value.words}",
                          "unpack them: a, b = ..." if value.kind == "results" else "")
            names[target.id] = TEXT if value.kind == "char" and target.id in self.findings.function.texts else value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = list(value.results)
            if value.kind == "list" and value.list.length is not None:
                parts = [value.list.item or self.findings.any_number] * value.list.length
            if len(parts) != len(target.elts):
                self.fail(target, f"{len(target.elts)} names for {len(parts) if parts else value.words}")
            self._assign_parts(target.elts, parts, names)
        elif isinstance(target, ast.Subscript):
            base = self.expressions.value(target.value, names)
            if base.kind != "list" or base.list.is_tuple:
                self.fail(target, f"an item of {base.words} cannot be changed")
            self.expressions.item(target, names)
            self.findings.store_item(base.list, value, target)
        else:
            self.fail(target, f"{name_of(target)} cannot be assigned to here")


def same(one: Names, two: Names) -> bool:
    return one == two and all(value.kind != "list" or value.list is two[name].list for name, value in one.items())
