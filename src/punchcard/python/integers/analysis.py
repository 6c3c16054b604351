"""What every statement of a program does to its names: the whole program is gone through until nothing new is found."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from punchcard.python.constructs import name_of
from punchcard.python.integers.functions import IntegerFunction
from punchcard.python.integers.loop_types import LoopInference
from punchcard.python.integers.narrowing import narrowed
from punchcard.python.integers.values import (
    NONE,
    TEXT,
    AbstractList,
    AbstractValue,
    Names,
    Unreached,
    join,
    join_names,
    truth,
)

MOST_ROUNDS = 60
MOST_LOOPS = 7
"""Loops within loops: each takes the time of its body a few times."""
SIMPLE = {"int": "int", "bool": "bool", "str": "str", "list[int]": "list", "list[bool]": "list", "tuple[int,...]": "list"}


@dataclass
class Around:
    """What leaves the loop that is gone through: names at `break` and at `continue`."""

    breaks: Names | None = None
    continues: Names | None = None
    broken: bool = field(default=False)


class Analysis(LoopInference):
    """Values for every expression of a function and of all that it calls."""

    def run(self, entry: IntegerFunction) -> None:
        self._loops: list[Around] = []
        self._entry = entry
        seen: object = None
        for _ in range(MOST_ROUNDS):
            self.changed, self.values, self.stuck = False, {}, None
            self.thresholds = self._thresholds()
            for function in self.functions:
                self._analyse(function)
            now = self._lists()
            if not self.changed and now == seen:
                if self.stuck is not None:
                    function, statement = self.stuck
                    function.source.fail(statement, "nothing goes on from here: what is called never returns")
                self.functions.mark_recursive()
                return
            seen = now
        entry.source.fail(entry.node, "the types of this program cannot be found out", "make it simpler")

    def _thresholds(self) -> list[int]:
        """Numbers at which a growing interval stops first: those in the text, and lengths of lists."""
        found = {0, 1, -1, self.word.low, self.word.high}
        for function in self.functions:
            for node in ast.walk(function.node):
                if isinstance(node, ast.Constant) and isinstance(node.value, int):
                    found |= {node.value - 1, node.value, node.value + 1}
        for info in self._infos():
            found |= {info.high - 1, info.high}
        return sorted(n for n in found if self.word.low <= n <= self.word.high)

    def _infos(self) -> list[AbstractList]:
        constants = [value.items for value in self._constants.values() if value.items is not None]
        return [info.root for info in (*self._created.values(), *constants)]

    def _lists(self) -> object:
        return [(id(info), info.low, info.high, info.item) for info in self._infos()]

    def _analyse(self, function: IntegerFunction) -> None:
        self.function = function
        if function is self._entry:
            function.given = {p.arg: self._parameter(p) for p in (*function.node.args.posonlyargs, *function.node.args.args)}
        if len(function.given) < len(function.parameters):
            return  # nobody has called it yet
        self.recording = True
        names = self.block(function.node.body, dict(function.given))
        if names is not None:
            self._result(NONE, function.node)

    def _parameter(self, parameter: ast.arg) -> AbstractValue:
        """A parameter of the function that is asked for."""
        text = "int" if parameter.annotation is None else ast.unparse(parameter.annotation).strip("'\"").replace(" ", "")
        kind = SIMPLE.get(text.replace("List", "list"))
        if kind is None:
            self.fail(parameter, f"a parameter of the type {text} is not in the integer subset",
                      "the types are int, bool, str and list[int]")
        if kind == "list":
            item = truth() if "bool" in text else self.any_number
            return self.created(parameter, item, 0, self.word.high, is_tuple=text.startswith("tuple"))
        return self.any_number if kind == "int" else truth() if kind == "bool" else TEXT

    def _result(self, value: AbstractValue, node: ast.AST) -> None:
        if not self.recording:
            return
        function = self.function
        new = self.widened(function.result, value, function.updates)
        if new.kind == "mixed":
            self.fail(node, f"{function.name}() would return {value.words} here, and "
                            f"{function.result.words if function.result else ''} elsewhere", "return one type everywhere")
        if new != function.result:
            function.result, self.changed = new, True
            function.updates += 1

    # Statements

    def block(self, statements: list[ast.stmt], names: Names | None) -> Names | None:
        """The names after statements; None where no way leads on."""
        for statement in statements:
            if names is None:
                break
            method = getattr(self, "_" + type(statement).__name__, None)
            if method is None:
                self.fail(statement, f"{name_of(statement)} is not in the integer subset")
            try:
                names = method(statement, names)
            except Unreached:
                names = None
                if self.recording:
                    self.stuck = self.function, statement
        return names

    def _Pass(self, node: ast.Pass, names: Names) -> Names:
        return names

    def _Global(self, node: ast.Global, names: Names) -> Names:
        return self.fail(node, "names outside a function are constants here", "pass the value, and return it")

    _Nonlocal = _Global

    def _Expr(self, node: ast.Expr, names: Names) -> Names:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value, names)
        return names

    def _Assert(self, node: ast.Assert, names: Names) -> Names | None:
        if node.msg is not None and not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)):
            self.fail(node, "the message of assert must be a text that is written out")
        self.condition(node.test, names)
        return narrowed(self, names, node.test, True)

    def _Assign(self, node: ast.Assign, names: Names) -> Names:
        names = dict(names)
        first = node.targets[0]
        if isinstance(first, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
            if len(node.targets) > 1 or len(first.elts) != len(node.value.elts):
                self.fail(node, f"{len(first.elts)} names for {len(node.value.elts)} values")
            for target, value in zip(first.elts, [self.value(each, names) for each in node.value.elts], strict=True):
                self.assign(target, value, names)
            return names
        found = self.value(node.value, names)
        for target in node.targets:
            self.assign(target, found, names)
        return names

    def _AnnAssign(self, node: ast.AnnAssign, names: Names) -> Names:
        if node.value is None:
            return names
        names = dict(names)
        self.assign(node.target, self.value(node.value, names), names)
        return names

    def _AugAssign(self, node: ast.AugAssign, names: Names) -> Names:
        names = dict(names)
        load: ast.expr = node.target
        old, right = self.value(load, names), self.value(node.value, names)
        if not old.is_number or not right.is_number or isinstance(node.op, ast.Div | ast.MatMult):
            self.fail(node, f"{old.words} and {right.words} cannot be combined so here",
                      "print can put texts together, and // divides whole numbers")
        new = self.arithmetic(node, node.op, old, right)
        if self.recording:
            self.values[node] = new if node not in self.values else join(self.values[node], new)
        self.assign(node.target, new, names)
        return names

    def _Return(self, node: ast.Return, names: Names) -> None:
        if isinstance(node.value, ast.Tuple):
            parts = tuple(self.value(each, names) for each in node.value.elts)
            if any(part.kind in ("results", "none") for part in parts):
                self.fail(node, "a function returns numbers, texts and lists")
            value = AbstractValue("results", results=parts)
        else:
            value = NONE if node.value is None else self.value(node.value, names)
        if value.kind == "char" and self.function.node.returns is not None and ast.unparse(
                self.function.node.returns) == "str":
            value = TEXT
        self._result(value, node)

    def _If(self, node: ast.If, names: Names) -> Names | None:
        self.condition(node.test, names)
        ways = [narrowed(self, names, node.test, holds) for holds in (True, False)]
        return join_names(self.block(node.body, ways[0]), self.block(node.orelse, ways[1]))

    def _Break(self, node: ast.Break, names: Names) -> None:
        around = self._loops[-1]
        around.breaks, around.broken = join_names(around.breaks, names), True

    def _Continue(self, node: ast.Continue, names: Names) -> None:
        self._loops[-1].continues = join_names(self._loops[-1].continues, names)

    def _While(self, node: ast.While, names: Names) -> Names | None:
        def body(head: Names) -> Names | None:
            self.condition(node.test, head)
            return self._inside(node.body, narrowed(self, head, node.test, True))

        head, _, around = self._stable(names, body)
        after = self.block(node.orelse, narrowed(self, head, node.test, False))
        return join_names(after, around.breaks)

    def _For(self, node: ast.For, names: Names) -> Names | None:
        least = 0

        def body(head: Names) -> Names | None:
            nonlocal least
            inside = dict(head)
            least = self.iteration(node.iter, node.target, inside)[0]
            return self._inside(node.body, inside)

        head, end, around = self._stable(names, body)
        after = end if least >= 1 else join_names(head, end)
        return join_names(self.block(node.orelse, after), around.breaks)

    def _inside(self, statements: list[ast.stmt], names: Names | None) -> Names | None:
        """The names at the end of a loop's body, and at every `continue`."""
        end = self.block(statements, names)
        return join_names(end, self._loops[-1].continues)

    def _stable(
        self, names: Names, body: Callable[[Names], Names | None]
    ) -> tuple[Names, Names | None, Around]:
        """The names at the head of a loop, whichever time it is; then those at the end of its body, and what leaves it."""
        if len(self._loops) >= MOST_LOOPS:
            self.function.source.fail(self.function.node, f"loops are nested more than {MOST_LOOPS} deep",
                                      "put the inner ones into a function of their own")
        recording, self.recording = self.recording, False
        head, count = names, 0
        while True:
            new = join_names(head, self._once(body, head)[0])
            assert new is not None
            if same(new, head):
                break
            head, count = new if count < 1 else self._wider(head, new), count + 1
        narrow = join_names(names, self._once(body, head)[0])
        assert narrow is not None
        self.recording = recording
        end, around = self._once(body, narrow)
        return narrow, end, around

    def _once(self, body: Callable[[Names], Names | None], head: Names) -> tuple[Names | None, Around]:
        self._loops.append(Around())
        try:
            end = body(head)
        except Unreached:
            end = None
        return end, self._loops.pop()

    def _wider(self, old: Names, new: Names) -> Names:
        """Names whose intervals still grow, moved on to the next threshold."""
        wider = {}
        for name, value in new.items():
            before = old.get(name)
            if before is None or value.kind not in ("int", "number"):
                wider[name] = value
                continue
            low, high = value.low, value.high
            if low < before.low:
                low = max(t for t in self.thresholds if t <= low)
            if high > before.high:
                high = min(t for t in self.thresholds if t >= high)
            wider[name] = replace(value, low=low, high=high)
        return wider


def same(one: Names, two: Names) -> bool:
    return one == two and all(value.items is None or value.items.root is two[name].items.root  # type: ignore[union-attr]
                              for name, value in one.items())
