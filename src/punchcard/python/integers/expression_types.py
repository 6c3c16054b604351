"""What every expression of a program may be: its kind, and the interval of a number."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from punchcard.python.integers.findings import Findings, text_items
from punchcard.python.integers.functions import constant_of
from punchcard.python.integers.values import (
    CHAR,
    TEXT,
    AbstractValue,
    Names,
    Unreached,
    join_all,
    join_names,
    spread,
    truth,
)
from punchcard.python.intervals import Interval, binary
from punchcard.python.limits import Limits
from punchcard.python.source import SIGNS, FunctionSource, name_of

OPPOSITE: dict[type, type] = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
                              ast.NotEq: ast.Eq}
MIRRORED: dict[type, type] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq,
                              ast.NotEq: ast.NotEq}
SHOWN_ONLY = "it can be printed, but not kept: write it in the print"
_BITWISE = ast.BitAnd | ast.BitOr | ast.BitXor


class ExpressionTypes:
    """Values of expressions, given what their names hold."""

    def __init__(self, findings: Findings) -> None:
        self.findings, self.fail = findings, findings.fail
        self._seen: dict[int, object] = {}
        self._kinds: dict[type[ast.expr], Callable[[Any, Names], AbstractValue]] = {
            ast.Constant: lambda node, names: findings.of_constant(node.value, node), ast.Name: self._name,
            ast.UnaryOp: self._unary, ast.BinOp: self._binary, ast.List: self._list, ast.Tuple: self._list,
            ast.Compare: self._comparisons, ast.BoolOp: self._several, ast.IfExp: self._choice, ast.Subscript: self.item}

    def add(self, kinds: Mapping[type[ast.expr], Callable[[Any, Names], AbstractValue]]) -> None:
        """Expressions that other parts of the analysis know."""
        self._kinds |= kinds

    def value(self, node: ast.expr, names: Names) -> AbstractValue:
        kind = self._kinds.get(type(node))
        if kind is None:
            self.findings.function.source.check_owner(node, sorted(self.findings.function.locals))
            outside = " outside of print" if isinstance(node, ast.JoinedStr) else ""
            self.fail(node, f"{name_of(node)}{outside} is not in the integer subset")
        found = kind(node, names)
        self.findings.record(node, found)
        return found

    def number(self, node: ast.expr, names: Names, what: str) -> AbstractValue:
        return self.check_number(node, self.value(node, names), what)

    def check_number(self, node: ast.expr, found: AbstractValue, what: str) -> AbstractValue:
        if not found.is_number:
            self.fail(node, f"{what} must be a number, and this is {found.words}",
                      "ord(c) is a character's number" if found.kind == "char" else "")
        return found

    def _name(self, node: ast.Name, names: Names) -> AbstractValue:
        function = self.findings.function
        if node.id in names:
            found = names[node.id]
            if found.unbound:
                self.fail(node, f"{node.id!r} may have no value here", "give it one before the loop or the branch")
            if found.kind == "mixed":
                self.fail(node, f"{node.id!r} may hold values of different types here", "use a name for each")
            return found
        if node.id in function.locals:
            self.fail(node, f"{node.id!r} has no value yet")
        outside = function.source.outside(node, sorted(function.locals))
        if id(outside) not in self._seen:
            with function.source.refusing(node):
                Limits().known(outside, repr(node.id))
            if not constant_of(outside):
                is_function = callable(outside) or isinstance(outside, FunctionSource)
                kind = "a function" if is_function else type(outside).__name__
                self.fail(node, f"{node.id!r} is {kind}, not a constant of the integer subset",
                          "constants are numbers, texts, and lists of them")
            self._seen[id(outside)] = outside
        return self.findings.of_constant(outside, node)

    def _unary(self, node: ast.UnaryOp, names: Names) -> AbstractValue:
        if isinstance(node.op, ast.Not):
            known = self.condition(node.operand, names).constant
            return truth() if known is None else truth(1 - known, 1 - known)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            return self.findings.of_constant(-node.operand.value, node)
        found = self.number(node.operand, names, f"the operand of {SIGNS[type(node.op)]}").interval
        if isinstance(node.op, ast.UAdd):
            return self.findings.fit(found)
        return self.findings.fit(-found if isinstance(node.op, ast.USub) else Interval.point(-1) - found)

    def _binary(self, node: ast.BinOp, names: Names) -> AbstractValue:
        left, right = self.value(node.left, names), self.value(node.right, names)
        for items, count in ((left, right), (right, left)):
            if isinstance(node.op, ast.Mult) and items.kind == "list" and count.is_number:
                return self._repeated(node, items, count)
        sign = SIGNS[type(node.op)]
        if sign in ("@", "/"):
            self.fail(node, f"{sign} is not in the integer subset", "use //, which rounds down" if sign == "/" else "")
        for side, found in ((node.left, left), (node.right, right)):
            if not found.is_number:
                self.fail(side, f"{sign} needs numbers, and this is {found.words}",
                          SHOWN_ONLY if found.kind in ("str", "char") else "")
        return self.arithmetic(node, node.op, left, right)

    def arithmetic(self, node: ast.AST, op: ast.operator, left: AbstractValue, right: AbstractValue) -> AbstractValue:
        """The value of an operation on numbers."""
        if isinstance(op, ast.FloorDiv | ast.Mod) and right.constant == 0:
            self.fail(node, "division by zero")
        if isinstance(op, ast.LShift | ast.RShift | ast.Pow) and right.high < 0:
            self.fail(node, "a negative power is not a whole number" if isinstance(op, ast.Pow) else "negative shift count")
        found = self.findings.fit(binary(op, left.interval, right.interval, self.findings.word))
        if left.kind == right.kind == "bool" and isinstance(op, _BITWISE):
            return truth(found.low, min(found.high, 1))
        if "number" in (left.kind, right.kind) and isinstance(op, _BITWISE):
            return AbstractValue("number", found.low, found.high)
        return found

    def _repeated(self, node: ast.BinOp, items: AbstractValue, count: AbstractValue) -> AbstractValue:
        root, most = items.list, self.findings.word.high
        if root.length is None:
            self.fail(node, "only a list that is written out can be repeated", "write [0] * n")
        low, high = (root.low * max(0, min(n, most)) for n in (count.low, count.high))
        return self.findings.created(node, root.item, low, min(high, most), is_tuple=root.is_tuple)

    def _list(self, node: ast.List | ast.Tuple, names: Names) -> AbstractValue:
        if not node.elts:
            self.fail(node, "an empty list has no use here: lists have a fixed length", "write [0] * n")
        if any(isinstance(item, ast.Starred) for item in node.elts):
            self.fail(node, "* in a list is not in the integer subset")
        items = text_items([self.value(item, names) for item in node.elts])
        found = self.findings.created(node, None, len(items), len(items), is_tuple=isinstance(node, ast.Tuple))
        for item, each in zip(items, node.elts, strict=True):
            self.findings.store_item(found.list, item, each)
        return found

    def _comparisons(self, node: ast.Compare, names: Names) -> AbstractValue:
        left = self.value(node.left, names)
        known: int | None = 1
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other, names)
            here = self._comparison(node, op, left, right)
            known = 0 if here == 0 else known if here == 1 else (0 if known == 0 else None)
            left = right
        return truth() if known is None else truth(known, known)

    def _comparison(self, node: ast.Compare, op: ast.cmpop, left: AbstractValue, right: AbstractValue) -> int | None:
        """Whether a comparison holds, or None if that is not known."""
        if len(node.ops) > 1 and (isinstance(op, ast.In | ast.NotIn) or "str" in (left.kind, right.kind)):
            self.fail(node, "a chain of comparisons is of numbers and characters", "write them with `and`")
        if isinstance(op, ast.Is | ast.IsNot):
            self.fail(node, "`is` is not in the integer subset", "write ==")
        if isinstance(op, ast.In | ast.NotIn):
            if right.kind == "list":
                item = right.list.item
                if item is not None and ((item.is_number and left.is_number) or item.kind == left.kind == "char"):
                    return None
            elif right.kind in ("str", "char") and left.kind == "char":
                return None
            self.fail(node, f"`in` of {left.words} in {right.words} is not in the integer subset",
                      "numbers in lists, and characters in texts, are")
        if (left.is_number and right.is_number) or left.kind == right.kind == "char":
            return compared(op, left, right)
        if {left.kind, right.kind} <= {"char", "str"} and isinstance(op, ast.Eq | ast.NotEq):
            return None
        return self.fail(node, f"{left.words} and {right.words} cannot be compared so here")

    def condition(self, node: ast.expr, names: Names) -> AbstractValue:
        """A value in its role as true or false."""
        return self.truth_of(node, self.value(node, names))

    def truth_of(self, node: ast.expr, found: AbstractValue) -> AbstractValue:
        if found.is_number:
            return truth(0 if 0 in found.interval else 1, 0 if found.constant == 0 else 1)
        if found.kind == "char":
            return truth(1, 1)
        if found.kind in ("str", "list"):
            return truth()
        return self.fail(node, f"{found.words} cannot be a condition here")

    def _several(self, node: ast.BoolOp, names: Names) -> AbstractValue:
        is_and = isinstance(node.op, ast.And)
        found: list[AbstractValue] = []
        ahead: Names | None = dict(names)
        for operand in node.values:
            if ahead is None:
                break
            try:
                value = self.value(operand, ahead)
            except Unreached:
                if not found:
                    raise
                self.findings.skip(operand)
                break
            ends = self.condition(operand, ahead).constant
            last = operand is node.values[-1]
            if last or ends is None or ends == (0 if is_and else 1):
                found.append(value if last or not is_and or not value.is_number else AbstractValue(value.kind, 0, 0))
            ahead = self.names_where(ahead, operand, is_and)
        both = join_all(found)
        if both.kind in ("mixed", "results", "none"):
            self.fail(node, "and / or of values of different types is not in the integer subset")
        return both

    def several(self, node: ast.expr, names: Names) -> AbstractValue:
        """The value of an expression that is taken apart: a tuple that is written out need not be made."""
        if isinstance(node, ast.IfExp):
            found = self._choice(node, names, self.several)
        elif isinstance(node, ast.Tuple | ast.List) and not any(isinstance(item, ast.Starred) for item in node.elts):
            found = AbstractValue("results", results=tuple(self.value(item, names) for item in node.elts))
        else:
            return self.value(node, names)
        self.findings.record(node, found)
        return found

    def _choice(self, node: ast.IfExp, names: Names,
                value_of: Callable[[ast.expr, Names], AbstractValue] | None = None) -> AbstractValue:
        self.condition(node.test, names)
        found = []
        for branch, holds in ((node.body, True), (node.orelse, False)):
            inside = self.names_where(names, node.test, holds)
            if inside is not None:
                try:
                    found.append((value_of or self.value)(branch, inside))
                except Unreached:
                    self.findings.skip(branch)
        if not found:
            raise Unreached
        both = join_all(text_items(found))
        if both.kind == "results":
            columns = zip(*(spread(value).results for value in found), strict=True)
            both = replace(both, results=tuple(join_all(text_items(list(column))) for column in columns))
        if both.kind == "mixed":
            self.fail(node, "the two values of this `if` are of different types")
        return both

    def item(self, node: ast.Subscript, names: Names) -> AbstractValue:
        base = self.value(node.value, names)
        if isinstance(node.slice, ast.Slice):
            if base.kind == "str" and ast.unparse(node.slice) == "::-1":
                return TEXT
            self.fail(node, "slices are not in the integer subset, but for text[::-1]", "write a loop")
        index = self.number(node.slice, names, "an index")
        if base.kind == "str":
            return CHAR
        if base.kind != "list":
            self.fail(node, f"{base.words} cannot be indexed")
        root = base.list
        if index.constant is not None and not -root.high <= index.constant < root.high:
            self.fail(node, f"the index {index.constant} is out of range: the list has {root.high} items")
        if root.item is None:
            raise Unreached
        return root.item

    # What a condition says of the names in it: `if i < n` bounds i from above, and n from below

    def names_where(self, names: Names, test: ast.expr, holds: bool) -> Names | None:
        """The names there, or None if that cannot be."""
        with self.findings.trying():
            return self._narrow(names, test, holds)

    def _narrow(self, names: Names, test: ast.expr, holds: bool) -> Names | None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._narrow(names, test.operand, not holds)
        if isinstance(test, ast.BoolOp):
            return self._narrow_several(names, test, holds)
        known = self.condition(test, names).constant
        if known is not None and bool(known) is not holds:
            return None
        if isinstance(test, ast.Compare) and (holds or len(test.ops) == 1):
            return self._narrow_compared(names, test, holds)
        if isinstance(test, ast.Name) and test.id in names and names[test.id].is_number:
            bounded = _bounded(names[test.id], ast.NotEq if holds else ast.Eq, truth(0, 0))
            return None if bounded is None else {**names, test.id: bounded}
        return names

    def _narrow_several(self, names: Names, test: ast.BoolOp, holds: bool) -> Names | None:
        all_of = isinstance(test.op, ast.And) is holds
        ahead: Names | None = dict(names)
        ways: Names | None = None
        for operand in test.values:
            if ahead is None:
                break
            try:
                if not all_of:
                    ways = join_names(ways, self._narrow(ahead, operand, holds))
                ahead = self._narrow(ahead, operand, holds if all_of else not holds)
            except Unreached:
                ahead = None
        return ahead if all_of else ways

    def _narrow_compared(self, names: Names, test: ast.Compare, holds: bool) -> Names | None:
        found = dict(names)
        left = test.left
        for op, right in zip(test.ops, test.comparators, strict=True):
            kind = type(op) if holds else OPPOSITE.get(type(op))
            if kind in MIRRORED:
                a, b = self.value(left, names), self.value(right, names)
                for side, mine, other, how in ((left, a, b, kind), (right, b, a, MIRRORED[kind])):
                    if isinstance(side, ast.Name) and side.id in found and mine.kind == found[side.id].kind:
                        bounded = _bounded(found[side.id], how, other)
                        if bounded is None:
                            return None
                        found[side.id] = bounded
            left = right
        return found


def compared(op: ast.cmpop, left: AbstractValue, right: AbstractValue) -> int | None:
    """Whether a comparison holds, where the intervals decide it."""
    kind = type(op)
    if kind in (ast.Gt, ast.GtE):
        left, right, kind = right, left, MIRRORED[kind]
    if kind is ast.Lt:
        return 1 if left.high < right.low else 0 if left.low >= right.high else None
    if kind is ast.LtE:
        return 1 if left.high <= right.low else 0 if left.low > right.high else None
    equal = 0 if left.high < right.low or right.high < left.low else None
    if left.low == left.high == right.low == right.high:
        equal = 1
    return equal if kind is ast.Eq or equal is None else 1 - equal


def _bounded(value: AbstractValue, how: type, other: AbstractValue) -> AbstractValue | None:
    """A number or character that compares so with another, or None if there is none."""
    if not all(each.is_number or each.kind == "char" for each in (value, other)):
        return value
    low, high = value.low, value.high
    if how in (ast.Lt, ast.LtE, ast.Eq):
        high = min(high, other.high - (how is ast.Lt))
    if how in (ast.Gt, ast.GtE, ast.Eq):
        low = max(low, other.low + (how is ast.Gt))
    if how is ast.NotEq and other.low == other.high:
        low, high = low + (low == other.low), high - (high == other.low)
    return replace(value, low=low, high=high) if low <= high else None
