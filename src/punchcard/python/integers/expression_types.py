"""What every expression of a program may be: its kind, and the interval of a number."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from punchcard.python.constructs import SIGNS, name_of
from punchcard.python.integers.functions import Functions, IntegerFunction, constant_of
from punchcard.python.integers.narrowing import compared, narrowed
from punchcard.python.integers.values import (
    CHARACTER,
    NONE,
    TEXT,
    AbstractList,
    AbstractValue,
    Names,
    Unreached,
    join,
    join_all,
    number,
    truth,
)
from punchcard.python.intervals import Interval, binary

SHOWN_ONLY = "it can be printed, but not kept: write it in the print"
MANY_UPDATES = 3


class Inference:
    """Values of expressions. `values` has what was found for each node in the last round."""

    def __init__(self, functions: Functions, word_bits: int, *, check: bool) -> None:
        self.functions, self.check = functions, check
        self.word = Interval(-(1 << (word_bits - 1)), (1 << (word_bits - 1)) - 1)
        self.any_number = number(self.word.low, self.word.high)
        self.values: dict[ast.AST, AbstractValue] = {}
        self.thresholds: list[int] = []
        self.changed = False
        self.recording = True
        self.stuck: tuple[IntegerFunction, ast.AST] | None = None
        self.function: IntegerFunction
        self._constants: dict[int, AbstractValue] = {}
        self._created: dict[ast.AST, AbstractList] = {}

    # What is known of places that many statements write to

    def widened(self, old: AbstractValue | None, new: AbstractValue, updates: int) -> AbstractValue:
        """The value of such a place, which may grow a few times only."""
        if old is None:
            return new
        both = join(old, new)
        if updates >= MANY_UPDATES and both.kind in ("int", "number"):
            low = both.low if both.low >= old.low else max((t for t in self.thresholds if t <= both.low),
                                                           default=self.word.low)
            high = both.high if both.high <= old.high else min((t for t in self.thresholds if t >= both.high),
                                                               default=self.word.high)
            both = AbstractValue(both.kind, low, high, unbound=both.unbound)
        return both

    def store_item(self, items: AbstractList, value: AbstractValue, node: ast.AST) -> None:
        """Something is put into a list."""
        if not self.recording:
            return
        root = items.root
        new = self.widened(root.item, value, root.updates)
        if new.kind in ("mixed", "results", "none"):
            self.fail(node, f"an item of the list would be {value.words}, and others are "
                            f"{root.item.words if root.item else 'none'}", "lists hold values of one type")
        if new != root.item:
            root.item, self.changed = new, True
            root.updates += 1

    def created(self, node: ast.AST, item: AbstractValue | None, low: int, high: int, *,
                is_tuple: bool = False) -> AbstractValue:
        """The list that an expression makes, the same one in every round."""
        info = self._created.setdefault(node, AbstractList(None, low, high, is_tuple=is_tuple)).root
        if self.recording and (low < info.low or high > info.high):
            info.low, info.high, self.changed = min(low, info.low), max(high, info.high), True
        if item is not None:
            self.store_item(info, item, node)
        return AbstractValue("list", items=info)

    def fit(self, interval: Interval[int] | None) -> AbstractValue:
        """A number that wraps, or is refused, where it leaves the word."""
        if interval is None:
            return self.any_number
        if interval not in self.word and not self.check:
            return self.any_number
        kept = interval.clipped(self.word)
        return number(kept.low, kept.high)

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        self.function.source.fail(node, message, instead)

    def skip(self, node: ast.expr) -> None:
        """An expression of which nothing is known in this round; in the last round there may be none."""
        if self.recording:
            self.stuck = self.function, node

    # Expressions

    def value(self, node: ast.expr, names: Names) -> AbstractValue:
        method = getattr(self, "_" + type(node).__name__, None)
        if method is None:
            self.fail(node, f"{name_of(node)} is not in the integer subset")
        found: AbstractValue = method(node, names)
        if self.recording:
            self.values[node] = found if node not in self.values else join(self.values[node], found)
        return found

    def number(self, node: ast.expr, names: Names, what: str) -> AbstractValue:
        found = self.value(node, names)
        if not found.is_number:
            self.fail(node, f"{what} must be a number, and this is {found.words}",
                      "ord(c) is a character's number" if found.kind == "char" else "")
        return found

    def _Constant(self, node: ast.Constant, names: Names) -> AbstractValue:
        return self.of_constant(node.value, node)

    def of_constant(self, value: Any, node: ast.AST) -> AbstractValue:
        """A value that stands in the text, or outside of the functions."""
        if isinstance(value, bool):
            return truth(int(value), int(value))
        if isinstance(value, int):
            if not self.word.low <= value <= self.word.high:
                self.fail(node, f"{str(value)[:40]} does not fit a word, which is {self.word.low} to {self.word.high}",
                          "use longer words: word_bits=, --bits")
            return number(value)
        if isinstance(value, str):
            if not value.isascii() or "\0" in value:
                self.fail(node, f"{value[:40]!r} has a character that is not ASCII", "only print can write such a text")
            return AbstractValue("char", ord(value), ord(value)) if len(value) == 1 else TEXT
        if isinstance(value, list | tuple):
            if id(value) not in self._constants:
                items = join_all(whole_texts([self.of_constant(item, node) for item in value]))
                self._constants[id(value)] = AbstractValue("list", items=AbstractList(items, len(value), len(value),
                                                                          is_tuple=isinstance(value, tuple)))
            return self._constants[id(value)]
        if value is None:
            return NONE
        return self.fail(node, f"{type(value).__name__} {str(value)[:40]} is not in the integer subset",
                         "use whole numbers" if isinstance(value, float) else "")

    def _Name(self, node: ast.Name, names: Names) -> AbstractValue:
        if node.id in names:
            found = names[node.id]
            if found.unbound:
                self.fail(node, f"{node.id!r} may have no value here", "give it one before the loop or the branch")
            if found.kind == "mixed":
                self.fail(node, f"{node.id!r} may hold values of different types here", "use a name for each")
            return found
        if node.id in self.function.locals:
            self.fail(node, f"{node.id!r} has no value yet")
        outside = self.function.source.names
        if node.id in outside:
            if not constant_of(outside[node.id]):
                self.fail(node, f"{node.id!r} is {type(outside[node.id]).__name__}, not a constant of the integer subset",
                          "constants are numbers, texts, and lists of them")
            return self.of_constant(outside[node.id], node)
        raise self.function.source.unknown(node, sorted(self.function.locals))

    def _UnaryOp(self, node: ast.UnaryOp, names: Names) -> AbstractValue:
        if isinstance(node.op, ast.Not):
            known = self.condition(node.operand, names).constant
            return truth() if known is None else truth(1 - known, 1 - known)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            return self.of_constant(-node.operand.value, node)
        found = self.number(node.operand, names, f"the operand of {SIGNS[type(node.op)]}")
        if isinstance(node.op, ast.UAdd):
            return self.fit(found.interval)
        return self.fit(-found.interval if isinstance(node.op, ast.USub) else Interval.point(-1) - found.interval)

    def _BinOp(self, node: ast.BinOp, names: Names) -> AbstractValue:
        left, right = self.value(node.left, names), self.value(node.right, names)
        if isinstance(node.op, ast.Mult) and left.kind == "list" and right.is_number:
            return self._repeated(node, left, right)
        if isinstance(node.op, ast.Mult) and right.kind == "list" and left.is_number:
            return self._repeated(node, right, left)
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
        found = self.fit(binary(op, left.interval, right.interval, self.word))
        if left.kind == right.kind == "bool" and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return truth(found.low, min(found.high, 1))
        if "number" in (left.kind, right.kind) and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return AbstractValue("number", found.low, found.high)
        return found

    def _repeated(self, node: ast.BinOp, items: AbstractValue, count: AbstractValue) -> AbstractValue:
        assert items.items is not None
        root = items.items.root
        if root.length is None:
            self.fail(node, "only a list that is written out can be repeated", "write [0] * n")
        low, high = (root.low * max(0, min(n, self.word.high)) for n in (count.low, count.high))
        return self.created(node, root.item, low, min(high, self.word.high), is_tuple=root.is_tuple)

    def _List(self, node: ast.List | ast.Tuple, names: Names) -> AbstractValue:
        if not node.elts:
            self.fail(node, "an empty list has no use here: lists have a fixed length", "write [0] * n")
        if any(isinstance(item, ast.Starred) for item in node.elts):
            self.fail(node, "* in a list is not in the integer subset")
        items = whole_texts([self.value(item, names) for item in node.elts])
        found = self.created(node, None, len(items), len(items), is_tuple=isinstance(node, ast.Tuple))
        assert found.items is not None
        for item, each in zip(items, node.elts, strict=True):
            self.store_item(found.items, item, each)
        return found

    _Tuple = _List

    def _Compare(self, node: ast.Compare, names: Names) -> AbstractValue:
        left = self.value(node.left, names)
        known: int | None = 1
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other, names)
            here = self._one_comparison(node, op, left, right)
            known = 0 if here == 0 else known if here == 1 else (0 if known == 0 else None)
            left = right
        return truth() if known is None else truth(known, known)

    def _one_comparison(self, node: ast.Compare, op: ast.cmpop, left: AbstractValue, right: AbstractValue) -> int | None:
        if len(node.ops) > 1 and (isinstance(op, ast.In | ast.NotIn) or "str" in (left.kind, right.kind)):
            self.fail(node, "a chain of comparisons is of numbers and characters", "write them with `and`")
        if isinstance(op, ast.Is | ast.IsNot):
            self.fail(node, "`is` is not in the integer subset", "write ==")
        if isinstance(op, ast.In | ast.NotIn):
            if right.kind == "list" and right.items is not None:
                item = right.items.root.item
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
        found = self.value(node, names)
        if found.is_number:
            return truth(0 if found.low <= 0 <= found.high else 1, 0 if found.low == found.high == 0 else 1)
        if found.kind == "char":
            return truth(1, 1)
        if found.kind in ("str", "list"):
            return truth()
        return self.fail(node, f"{found.words} cannot be a condition here")

    def _BoolOp(self, node: ast.BoolOp, names: Names) -> AbstractValue:
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
                self.skip(operand)
                break
            ends = self.condition(operand, ahead).constant
            last = operand is node.values[-1]
            if last or ends is None or ends == (0 if is_and else 1):
                found.append(value if last or not is_and or not value.is_number else AbstractValue(value.kind, 0, 0))
            ahead = narrowed(self, ahead, operand, is_and)
        both = join_all(found)
        if both.kind in ("mixed", "results", "none"):
            self.fail(node, "and / or of values of different types is not in the integer subset")
        return both

    def _IfExp(self, node: ast.IfExp, names: Names) -> AbstractValue:
        self.condition(node.test, names)
        found = []
        for branch, holds in ((node.body, True), (node.orelse, False)):
            inside = narrowed(self, names, node.test, holds)
            if inside is not None:
                try:
                    found.append(self.value(branch, inside))
                except Unreached:
                    self.skip(branch)
        if not found:
            raise Unreached
        both = join_all(found)
        if {value.kind for value in found} == {"char", "str"}:
            return TEXT
        if both.kind == "mixed":
            self.fail(node, "the two values of this `if` are of different types")
        return both

    def _Subscript(self, node: ast.Subscript, names: Names) -> AbstractValue:
        base = self.value(node.value, names)
        if isinstance(node.slice, ast.Slice):
            if base.kind == "str" and ast.unparse(node.slice) == "::-1":
                return TEXT
            self.fail(node, "slices are not in the integer subset, but for text[::-1]", "write a loop")
        index = self.number(node.slice, names, "an index")
        if base.kind == "str":
            return CHARACTER
        if base.kind != "list" or base.items is None:
            self.fail(node, f"{base.words} cannot be indexed")
        root = base.items.root
        if index.constant is not None and not -root.high <= index.constant < root.high:
            self.fail(node, f"the index {index.constant} is out of range: the list has {root.high} items")
        if root.item is None:
            raise Unreached
        return root.item


def whole_texts(items: list[AbstractValue]) -> list[AbstractValue]:
    """Items of one list: where one is a text, single characters are texts as well."""
    if any(item.kind == "str" for item in items):
        return [TEXT if item.kind == "char" else item for item in items]
    return items
