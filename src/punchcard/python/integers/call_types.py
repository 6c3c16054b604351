"""What calls may give: functions of the program, and those that are built in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from punchcard.python.integers.expression_types import ExpressionTypes
from punchcard.python.integers.functions import IntegerFunction, is_call, is_text, parts_of
from punchcard.python.integers.values import NONE, TEXT, AbstractValue, Names, Unreached, join_all, number, truth
from punchcard.python.source import bind_arguments


class CallTypes:
    """Values of calls: of functions of one argument, given its value, and of others."""

    def __init__(self, expressions: ExpressionTypes) -> None:
        self.expressions, self.findings = expressions, expressions.findings
        self.fail = self.findings.fail
        self._of_one: Mapping[str, Callable[[ast.Call, AbstractValue], AbstractValue]] = {
            "int": self._int, "bool": lambda node, found: expressions.truth_of(node.args[0], found), "len": self._len,
            "abs": self._abs, "ord": self._ord, "chr": self._chr}
        self._others: Mapping[str, Callable[[ast.Call, Names], AbstractValue]] = {
            "print": self._print, "input": self._input, "str": self._str, "min": self._extreme, "max": self._extreme,
            "sum": self._sum, "divmod": self._divmod, "pow": lambda node, names: self._arithmetic(node, ast.Pow(), names),
            "range": self._of_loops, "enumerate": self._of_loops, "zip": self._of_loops}
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
        if called is not None:
            return self._own_call(node, called, names)
        name = ast.unparse(node.func)
        if name != "print" and any(isinstance(argument, ast.Starred) for argument in node.args):
            self.fail(node, "* in a call is not in the integer subset, but in print(*items)")
        if node.keywords and name != "print":
            self.fail(node, f"{name}() takes no keywords here")
        if name in self._others:
            return self._others[name](node, names)
        return self._of_one[name](node, self.expressions.value(self.arguments(node, 1, 1)[0], names))

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

    # Functions of one argument

    def _int(self, node: ast.Call, found: AbstractValue) -> AbstractValue:
        if found.is_number:
            return number(found.low, found.high)
        if found.kind == "char":
            return number(0, 9)
        return self.findings.any_number if found.kind == "str" else self.fail(node, f"int() of {found.words}")

    def _len(self, node: ast.Call, found: AbstractValue) -> AbstractValue:
        if found.kind == "list":
            return found.list.count
        return number(0, self.findings.word.high) if found.kind == "str" else self.fail(node, f"{found.words} has no len()")

    def _abs(self, node: ast.Call, found: AbstractValue) -> AbstractValue:
        self.expressions.check_number(node.args[0], found, "the argument of abs()")
        return self.findings.fit(abs(found.interval))

    def _ord(self, node: ast.Call, found: AbstractValue) -> AbstractValue:
        if found.kind == "str":
            return number(0, 127)
        return number(found.low, found.high) if found.kind == "char" else self.fail(
            node, f"ord() is of a single character, and this is {found.words}")

    def _chr(self, node: ast.Call, found: AbstractValue) -> AbstractValue:
        self.expressions.check_number(node.args[0], found, "the argument of chr()")
        if found.high < 0 or found.low > 127:
            self.fail(node, "chr() is of 0 to 127 here")
        return AbstractValue("char", max(found.low, 0), min(found.high, 127))

    # Others

    def _input(self, node: ast.Call, names: Names) -> AbstractValue:
        for prompt in self.arguments(node, 0, 1):
            self.printed(prompt, names)
        return TEXT

    def _str(self, node: ast.Call, names: Names) -> AbstractValue:
        return self.fail(node, "str() makes a text that cannot be kept", "print writes numbers as they are")

    def _of_loops(self, node: ast.Call, names: Names) -> AbstractValue:
        return self.fail(node, f"{ast.unparse(node.func)}() is for the head of a `for` only", "write a loop over it")

    def _extreme(self, node: ast.Call, names: Names) -> AbstractValue:
        name = ast.unparse(node.func)
        if len(node.args) == 1:
            found = self._items(node, names)[0]
            return AbstractValue(found.kind, found.low, found.high)
        given = [self.expressions.number(each, names, f"an argument of {name}()") for each in self.arguments(node, 2, 100)]
        choose: Callable[[list[int]], int] = min if name == "min" else max
        return AbstractValue(join_all(given).kind, choose([v.low for v in given]), choose([v.high for v in given]))

    def _items(self, node: ast.Call, names: Names) -> tuple[AbstractValue, AbstractValue]:
        """The items of the list that a call is of, and how many there are."""
        found = self.expressions.value(node.args[0], names)
        item = found.list.item if found.kind == "list" else NONE
        if item is None:
            raise Unreached
        if not item.is_number:
            self.fail(node, f"{ast.unparse(node.func)}() is of numbers, or of one list of numbers")
        return item, found.list.count

    def _sum(self, node: ast.Call, names: Names) -> AbstractValue:
        if isinstance(self.arguments(node, 1, 1)[0], ast.GeneratorExp):
            self.fail(node, "sum() of a generator is not in the integer subset", "write a loop")
        item, count = self._items(node, names)
        return self.findings.fit(count.interval * item.interval)

    def _divmod(self, node: ast.Call, names: Names) -> AbstractValue:
        results = [self._arithmetic(node, op, names) for op in (ast.FloorDiv(), ast.Mod())]
        return AbstractValue("results", results=tuple(results))

    def _arithmetic(self, node: ast.Call, op: ast.operator, names: Names) -> AbstractValue:
        what = f"an argument of {ast.unparse(node.func)}()"
        left, right = (self.expressions.number(each, names, what) for each in self.arguments(node, 2, 2))
        return self.expressions.arithmetic(node, op, left, right)

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
                if found.kind != "list":
                    self.fail(each, f"* of {found.words}: it is for lists and tuples")
                certain |= found.list.low >= 1
            else:
                self.printed(each, names)
                certain = True
        if len(node.args) > 1 and not certain:
            self.fail(node, "print() of several lists that may all be empty", "write a print for each")
        return NONE

    def printed(self, node: ast.expr, names: Names) -> None:
        """Something that is written: more is allowed here than can be kept."""
        if isinstance(node, ast.FormattedValue) and (node.format_spec is not None or node.conversion != -1):
            self.fail(node, "formats such as {x:3} are not in the integer subset", "write {x}")
        is_own = is_call(node, "str") and "str" in self.findings.function.source.names
        parts = None if is_own else parts_of(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if any(0xD800 <= ord(c) < 0xE000 for c in node.value):
                self.fail(node, f"{ascii(node.value)[:40]} has half of a surrogate pair, which cannot be written as UTF-8")
        elif parts is not None:
            for part in parts:
                self.printed(part, names)
        elif is_text(node) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            text, count = (node.left, node.right) if is_text(node.left) else (node.right, node.left)
            self.printed(text, names)
            self.expressions.number(count, names, "how often a text is written")
        else:
            found = item = self.expressions.value(node, names)
            while item.kind == "list" and item.list.item is not None:
                item = item.list.item
            if item.kind in ("number", "results", "none", "mixed") or (found.kind == "list" and not item.is_number):
                self.fail(node, f"{found.words} cannot be printed here",
                          "write int(...) or bool(...)" if item.kind == "number" else "")


def arguments_of(function: IntegerFunction, node: ast.Call, called: IntegerFunction) -> dict[str, ast.expr]:
    """The arguments of a call by the names of the parameters, defaults included."""
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(k.arg is None for k in node.keywords):
        function.source.fail(node, "* in a call is not in the integer subset")
    named = {str(keyword.arg): keyword.value for keyword in node.keywords}
    found = bind_arguments(called.source, node.args, named, called.defaults, lambda why: function.source.fail(node, why))
    return {name: found[name] if name in found else called.default(name) for name in called.parameters}
