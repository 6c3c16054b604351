"""What calls may give: functions of the program, and those that are built in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from punchcard.python.integers.expression_types import ExpressionTypes
from punchcard.python.integers.functions import IntegerFunction
from punchcard.python.integers.texts import is_text
from punchcard.python.integers.values import NONE, TEXT, AbstractValue, Names, Unreached, join_all, number, truth
from punchcard.python.intervals import Interval
from punchcard.python.parameters import bind


class CallTypes:
    """Values of calls."""

    def __init__(self, expressions: ExpressionTypes) -> None:
        self.expressions, self.findings = expressions, expressions.findings
        self.fail = self.findings.fail
        self._builtins = {
            "print": self._print, "input": self._input, "int": self._int, "bool": self._bool, "str": self._str,
            "len": self._len, "abs": self._abs, "min": self._extreme, "max": self._extreme, "sum": self._sum,
            "divmod": self._divmod, "pow": self._pow, "ord": self._ord, "chr": self._chr, "range": self._of_loops,
            "enumerate": self._of_loops, "zip": self._of_loops}
        expressions.add({ast.Call: self.call})

    def call(self, node: ast.Call, names: Names) -> AbstractValue:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "isdigit" and not node.args:
            if self.expressions.value(node.func.value, names).kind != "char":
                self.fail(node, ".isdigit() is for single characters here")
            return truth()
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "pop", "insert", "extend"):
            self.fail(node, f".{node.func.attr}() is not in the integer subset: lists have a fixed length",
                      "make the list with [0] * n, and count what is in it")
        called = self.findings.functions.called(self.findings.function, node)
        if called is None:
            assert isinstance(node.func, ast.Name)
            if node.func.id != "print" and any(isinstance(argument, ast.Starred) for argument in node.args):
                self.fail(node, "* in a call is not in the integer subset, but in print(*items)")
            if node.keywords and node.func.id != "print":
                self.fail(node, f"{node.func.id}() takes no keywords here")
            return self._builtins[node.func.id](node, names)
        return self._own_call(node, called, names)

    def _own_call(self, node: ast.Call, called: IntegerFunction, names: Names) -> AbstractValue:
        if self.findings.recording:
            self.findings.function.calls.add(called)
        for name, argument in arguments_of(self.findings.function, node, called).items():
            inside = argument in called.written_defaults.values()
            value = self.expressions.value(argument, {} if inside else names)
            if name in called.texts and value.kind == "char":
                value = TEXT
            new = self.findings.widened(called.given.get(name), value, called.updates)
            if new.kind in ("mixed", "results", "none"):
                self.fail(argument, f"{name!r} of {called.name}() is {value.words} here, and of another type elsewhere")
            if self.findings.recording and new != called.given.get(name):
                called.given[name], self.findings.changed = new, True
                called.updates += 1
        if called.result is None:
            raise Unreached
        return called.result

    def arguments(self, node: ast.Call, least: int, most: int) -> Sequence[ast.expr]:
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self.fail(node, f"{ast.unparse(node.func)}() takes {wanted} arguments here, and this has {len(node.args)}")
        return node.args

    def _input(self, node: ast.Call, names: Names) -> AbstractValue:
        for prompt in self.arguments(node, 0, 1):
            self.printed(prompt, names)
        return TEXT

    def _int(self, node: ast.Call, names: Names) -> AbstractValue:
        found = self.expressions.value(self.arguments(node, 1, 1)[0], names)
        if found.is_number:
            return number(found.low, found.high)
        if found.kind == "char":
            return number(0, 9)
        return self.findings.any_number if found.kind == "str" else self.fail(node, f"int() of {found.words}")

    def _bool(self, node: ast.Call, names: Names) -> AbstractValue:
        return self.expressions.condition(self.arguments(node, 1, 1)[0], names)

    def _str(self, node: ast.Call, names: Names) -> AbstractValue:
        return self.fail(node, "str() makes a text that cannot be kept", "print writes numbers as they are")

    def _len(self, node: ast.Call, names: Names) -> AbstractValue:
        found = self.expressions.value(self.arguments(node, 1, 1)[0], names)
        if found.kind == "list" and found.items is not None:
            return number(found.items.root.low, found.items.root.high)
        return number(0, self.findings.word.high) if found.kind == "str" else self.fail(node, f"{found.words} has no len()")

    def _abs(self, node: ast.Call, names: Names) -> AbstractValue:
        found = self.expressions.number(self.arguments(node, 1, 1)[0], names, "the argument of abs()")
        return self.findings.fit(abs(found.interval))

    def _extreme(self, node: ast.Call, names: Names) -> AbstractValue:
        name = ast.unparse(node.func)
        if len(node.args) == 1:
            found = self._items(node, names)
            return AbstractValue(found.kind, found.low, found.high)
        given = [self.expressions.number(each, names, f"an argument of {name}()") for each in self.arguments(node, 2, 100)]
        choose: Callable[[list[int]], int] = min if name == "min" else max
        return AbstractValue(join_all(given).kind, choose([v.low for v in given]), choose([v.high for v in given]))

    def _items(self, node: ast.Call, names: Names) -> AbstractValue:
        found = self.expressions.value(node.args[0], names)
        item = found.items.root.item if found.items is not None else None
        if found.items is not None and item is None:
            raise Unreached
        if item is None or not item.is_number:
            self.fail(node, f"{ast.unparse(node.func)}() is of numbers, or of one list of numbers")
        assert item is not None
        return item

    def _sum(self, node: ast.Call, names: Names) -> AbstractValue:
        argument = self.arguments(node, 1, 1)[0]
        if isinstance(argument, ast.GeneratorExp):
            self.fail(node, "sum() of a generator is not in the integer subset", "write a loop")
        item, found = self._items(node, names), self.expressions.value(argument, names)
        assert found.items is not None
        root = found.items.root
        return self.findings.fit(Interval(root.low, root.high) * item.interval)

    def _divmod(self, node: ast.Call, names: Names) -> AbstractValue:
        results = [self._arithmetic(node, op, names) for op in (ast.FloorDiv(), ast.Mod())]
        return AbstractValue("results", results=tuple(results))

    def _pow(self, node: ast.Call, names: Names) -> AbstractValue:
        return self._arithmetic(node, ast.Pow(), names)

    def _arithmetic(self, node: ast.Call, op: ast.operator, names: Names) -> AbstractValue:
        what = f"an argument of {ast.unparse(node.func)}()"
        left, right = (self.expressions.number(each, names, what) for each in self.arguments(node, 2, 2))
        return self.expressions.arithmetic(node, op, left, right)

    def _ord(self, node: ast.Call, names: Names) -> AbstractValue:
        found = self.expressions.value(self.arguments(node, 1, 1)[0], names)
        if found.kind == "str":
            return number(0, 127)
        return number(found.low, found.high) if found.kind == "char" else self.fail(
            node, f"ord() is of a single character, and this is {found.words}")

    def _chr(self, node: ast.Call, names: Names) -> AbstractValue:
        found = self.expressions.number(self.arguments(node, 1, 1)[0], names, "the argument of chr()")
        if found.high < 0 or found.low > 127:
            self.fail(node, "chr() is of 0 to 127 here")
        return AbstractValue("char", max(found.low, 0), min(found.high, 127))

    def _of_loops(self, node: ast.Call, names: Names) -> AbstractValue:
        return self.fail(node, f"{ast.unparse(node.func)}() is for the head of a `for` only", "write a loop over it")

    def _print(self, node: ast.Call, names: Names) -> AbstractValue:
        for keyword in node.keywords:
            if keyword.arg not in ("sep", "end"):
                self.fail(node, f"print({keyword.arg}=...) is not in the integer subset", "sep and end are")
            if not isinstance(keyword.value, ast.Constant) or not isinstance(keyword.value.value, str):
                self.fail(keyword.value, f"{keyword.arg}= of print must be a text that is written out")
            self.printed(keyword.value, names)
        certain = False
        for each in node.args:
            if isinstance(each, ast.Starred):
                self.printed(each.value, names)
                found = self.expressions.value(each.value, names)
                if found.kind != "list" or found.items is None:
                    self.fail(each, f"* of {found.words}: it is for lists and tuples")
                certain |= found.items.root.low >= 1
            else:
                self.printed(each, names)
                certain = True
        if len(node.args) > 1 and not certain:
            self.fail(node, "print() of several lists that may all be empty", "write a print for each")
        return NONE

    def printed(self, node: ast.expr, names: Names) -> None:
        """Something that is written: more is allowed here than can be kept."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if any(0xD800 <= ord(c) < 0xE000 for c in node.value):
                self.fail(node, f"{ascii(node.value)[:40]} has half of a surrogate pair, which cannot be written as UTF-8")
            return
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                self.printed(part, names)
        elif isinstance(node, ast.FormattedValue):
            if node.format_spec is not None or node.conversion != -1:
                self.fail(node, "formats such as {x:3} are not in the integer subset", "write {x}")
            self.printed(node.value, names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and (
                len(node.args) == 1 and not node.keywords and "str" not in self.findings.function.source.names):
            self.printed(node.args[0], names)
        elif is_text(node) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            self.printed(node.left, names)
            self.printed(node.right, names)
        elif is_text(node) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            text, count = (node.left, node.right) if is_text(node.left) else (node.right, node.left)
            self.printed(text, names)
            self.expressions.number(count, names, "how often a text is written")
        else:
            found = self.expressions.value(node, names)
            item = found
            while item.kind == "list" and item.items is not None and item.items.root.item is not None:
                item = item.items.root.item
            if item.kind in ("number", "results", "none", "mixed") or (found.kind == "list" and not item.is_number):
                self.fail(node, f"{found.words} cannot be printed here",
                          "write int(...) or bool(...)" if item.kind == "number" else "")


def arguments_of(function: IntegerFunction, node: ast.Call, called: IntegerFunction) -> dict[str, ast.expr]:
    """The arguments of a call by the names of the parameters, defaults included."""
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(k.arg is None for k in node.keywords):
        function.source.fail(node, "* in a call is not in the integer subset")
    named = {str(keyword.arg): keyword.value for keyword in node.keywords}
    found = bind(called.source, node.args, named, called.defaults, lambda why: function.source.fail(node, why))
    return {name: found[name] if name in found else called.default(name) for name in called.parameters}
