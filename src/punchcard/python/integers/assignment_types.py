"""What variables may be: in loops and comprehensions, and where something is assigned."""

from __future__ import annotations

import ast

from punchcard.python.constructs import name_of
from punchcard.python.integers.call_types import CallTypes
from punchcard.python.integers.expression_types import ExpressionTypes
from punchcard.python.integers.values import CHARACTER, TEXT, AbstractValue, Names, Unreached, number
from punchcard.python.intervals import Interval


class AssignmentTypes:
    """What a loop goes over, and what its variables and others get."""

    def __init__(self, expressions: ExpressionTypes, calls: CallTypes) -> None:
        self.expressions, self.calls, self.findings = expressions, calls, expressions.findings
        self.fail = self.findings.fail
        self._sources = {"range": self._range, "enumerate": self._enumerate, "zip": self._zip}
        expressions.add({ast.ListComp: self._comprehension})

    def _comprehension(self, node: ast.ListComp, names: Names) -> AbstractValue:
        generator = node.generators[0]
        if len(node.generators) != 1 or generator.ifs or generator.is_async:
            self.fail(node, "a comprehension has one `for` and no `if` here", "write a loop")
        inner = dict(names)
        low, high = self.iteration(generator.iter, generator.target, inner)
        return self.findings.created(node, self.expressions.value(node.elt, inner), low, high)

    def iteration(self, node: ast.expr, target: ast.expr, names: Names) -> tuple[int, int]:
        """What a `for` gives its target; and the least and the most times."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (
                node.func.id in self._sources and node.func.id not in self.findings.function.source.names):
            if node.keywords:
                self.fail(node, f"{node.func.id}() takes no keywords here")
            return self._sources[node.func.id](node, target, names)
        found = self.expressions.value(node, names)
        if found.kind == "str":
            self.assign(target, CHARACTER, names)
            return 0, self.findings.word.high
        if found.kind == "char":
            self.assign(target, found, names)
            return 1, 1
        if found.kind != "list" or found.items is None:
            self.fail(node, f"a loop cannot go over {found.words}", "it goes over range(...), a list or a text")
        root = found.items.root
        if root.item is None:
            raise Unreached
        self.assign(target, root.item, names)
        return root.low, root.high

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
        assert isinstance(target, ast.Tuple)
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
        assert isinstance(target, ast.Tuple)
        counts = [self.iteration(each, to, names) for each, to in zip(node.args, target.elts, strict=True)]
        return min(low for low, _ in counts), min(high for _, high in counts)

    def assign(self, target: ast.expr, value: AbstractValue, names: Names) -> None:
        """A value to a name, an item of a list, or several of them."""
        if isinstance(target, ast.Name):
            if value.kind in ("results", "none"):
                self.fail(target, f"{target.id!r} would be {value.words}",
                          "unpack them: a, b = ..." if value.kind == "results" else "")
            names[target.id] = TEXT if value.kind == "char" and target.id in self.findings.function.texts else value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = list(value.results)
            if value.kind == "list" and value.items is not None and value.items.root.length is not None:
                parts = [value.items.root.item or self.findings.any_number] * value.items.root.length
            if len(parts) != len(target.elts):
                self.fail(target, f"{len(target.elts)} names for {len(parts) if parts else value.words}")
            for each, part in zip(target.elts, parts, strict=True):
                self.assign(each, part, names)
        elif isinstance(target, ast.Subscript):
            self._assign_item(target, value, names)
        else:
            self.fail(target, f"{name_of(target)} cannot be assigned to here")

    def _assign_item(self, target: ast.Subscript, value: AbstractValue, names: Names) -> None:
        base = self.expressions.value(target.value, names)
        if base.kind != "list" or base.items is None or base.items.root.is_tuple:
            self.fail(target, f"an item of {base.words} cannot be changed")
        assert base.items is not None
        self.expressions.item(target, names)
        self.findings.store_item(base.items, value, target)
