"""What the analysis of a program knows so far: values of expressions, lists, and what functions return."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from punchcard.errors import shortened
from punchcard.python.integers.functions import IntegerFunction, ProgramFunctions
from punchcard.python.integers.values import NONE, TEXT, AbstractList, AbstractValue, join, join_all, number, truth
from punchcard.python.intervals import Interval, binary

MANY_UPDATES = 3
"""A place that was written to more often may grow to the next threshold only."""
_LINEAR = (ast.Add, ast.Sub, ast.USub, ast.UAdd, ast.Invert)


class Findings:
    """The state of the analysis. `values` has what was found for each node in the last round.

    statements    those that some way leads to
    check         whether a result that does not fit a word is an error
    recording     False while a loop or a condition is only tried
    changed       whether something was found in this round that was not known before
    stuck         the last statement behind which nothing continues
    thresholds    numbers at which a growing interval stops first
    """

    function: IntegerFunction

    def __init__(self, functions: ProgramFunctions, word_bits: int, *, check: bool) -> None:
        self.functions, self.check = functions, check
        self.word = Interval(-(1 << (word_bits - 1)), (1 << (word_bits - 1)) - 1)
        self.any_number = number(self.word.low, self.word.high)
        self.values: dict[ast.AST, AbstractValue] = {}
        self.statements: set[ast.stmt] = set()
        self.thresholds: list[int] = []
        self.changed, self.recording = False, True
        self.stuck: tuple[IntegerFunction, ast.AST] | None = None
        self._constants: dict[int, AbstractValue] = {}
        self._created: dict[ast.AST, AbstractList] = {}

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        self.function.source.fail(node, message, instead)

    def record(self, node: ast.AST, value: AbstractValue) -> None:
        if self.recording:
            self.values[node] = value if node not in self.values else join(self.values[node], value)

    def reach(self, statement: ast.stmt) -> None:
        """A way leads to a statement."""
        if self.recording:
            self.statements.add(statement)

    def skip(self, node: ast.AST) -> None:
        """Something of which nothing is known in this round; in the last round there may be none."""
        if self.recording:
            self.stuck = self.function, node

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Nothing is recorded meanwhile."""
        recording, self.recording = self.recording, False
        try:
            yield
        finally:
            self.recording = recording

    # Rounds

    def begin_round(self) -> None:
        """The thresholds are the numbers in the text, and lengths of lists."""
        self.changed, self.values, self.statements, self.stuck = False, {}, set(), None
        found = {0, 1, -1, self.word.low, self.word.high}
        for function in self.functions:
            for node in ast.walk(function.node):
                if isinstance(node, ast.Constant) and isinstance(node.value, int):
                    found |= {node.value - 1, node.value, node.value + 1}
        for known in self._lists():
            found |= {known.high - 1, known.high}
        self.thresholds = sorted(n for n in found if n in self.word)

    def state_of_lists(self) -> object:
        """What is known of all lists, in a form that can be compared."""
        return [(id(known), known.low, known.high, known.item) for known in self._lists()]

    def _lists(self) -> list[AbstractList]:
        constants = [value.items for value in self._constants.values() if value.items is not None]
        return [known.root for known in (*self._created.values(), *constants)]

    # Places that many statements write to

    def threshold(self, interval: Interval[int], before: Interval[int]) -> Interval[int]:
        """An interval that has grown, moved on to the next thresholds."""
        low = interval.low if interval.low >= before.low else max(t for t in self.thresholds if t <= interval.low)
        high = interval.high if interval.high <= before.high else min(t for t in self.thresholds if t >= interval.high)
        return Interval(low, high)

    def widened(self, old: AbstractValue | None, new: AbstractValue, updates: int) -> AbstractValue:
        """The value of such a place, which may grow a few times only."""
        if old is None:
            return new
        both = join(old, new)
        if updates >= MANY_UPDATES and both.kind in ("int", "number"):
            return both.between(self.threshold(both.interval, old.interval))
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
        known = self._created.setdefault(node, AbstractList(None, low, high, is_tuple=is_tuple)).root
        if self.recording and (low < known.low or high > known.high):
            known.low, known.high, self.changed = min(low, known.low), max(high, known.high), True
        if item is not None:
            self.store_item(known, item, node)
        return AbstractValue("list", items=known)

    def returned(self, value: AbstractValue, node: ast.AST) -> None:
        """The function may return a value."""
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

    # Values

    def fit(self, interval: Interval[int] | None) -> AbstractValue:
        """A number that wraps, or is refused, where it leaves the word."""
        if interval is None or (interval not in self.word and not self.check):
            return self.any_number
        kept = interval.clipped(self.word)
        return number(kept.low, kept.high)

    def of_constant(self, value: object, node: ast.AST) -> AbstractValue:
        """A value that is written in the text, or comes from outside the functions."""
        if isinstance(value, bool):
            return truth(int(value), int(value))
        if isinstance(value, int):
            if value not in self.word:
                self.fail(node, f"{shortened(value)} does not fit a word, which is {self.word.low} to {self.word.high}",
                          "use longer words: word_bits=, --bits")
            return number(value)
        if isinstance(value, str):
            if not value.isascii() or "\0" in value:
                self.fail(node, f"{value[:40]!r} has a character that is not ASCII", "only print can write such a text")
            return AbstractValue("char", ord(value), ord(value)) if len(value) == 1 else TEXT
        if isinstance(value, list | tuple):
            if id(value) not in self._constants:
                items = join_all(text_items([self.of_constant(item, node) for item in value]))
                known = AbstractList(items, len(value), len(value), is_tuple=isinstance(value, tuple))
                self._constants[id(value)] = AbstractValue("list", items=known)
            return self._constants[id(value)]
        if value is None:
            return NONE
        return self.fail(node, f"{type(value).__name__} {shortened(value)} is not in the integer subset",
                         "use whole numbers" if isinstance(value, float) else "")

    # What the code generator asks

    def value(self, node: ast.AST) -> AbstractValue:
        return self.values.get(node) or number(0)

    def count(self, value: AbstractValue) -> AbstractValue:
        """How many items a list may have, or a text characters."""
        return value.list.count if value.kind == "list" else number(0, self.word.high)

    def is_reached(self, node: ast.AST) -> bool:
        return node in self.values

    def fits(self, op: ast.operator, left: AbstractValue, right: AbstractValue) -> bool:
        """Whether the result of an operation is a word, whatever the values are."""
        found = binary(op, left.interval, right.interval, self.word)
        return found is not None and found in self.word

    def may_wrap(self, op: ast.operator, left: AbstractValue, right: AbstractValue) -> bool:
        """Whether a result need not be checked: it fits, or words wrap."""
        return not self.check or self.fits(op, left, right)

    def is_plain(self, node: ast.AST) -> bool:
        """Whether an expression has no effect but its value: it cannot fail, print or call."""
        if isinstance(node, ast.Name | ast.Constant):
            return True
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            good = True
            if isinstance(node.op, ast.FloorDiv | ast.Mod):
                good = 0 not in right.interval
            elif isinstance(node.op, ast.LShift | ast.RShift | ast.Pow):
                good = right.low >= 0
            return good and self.may_wrap(node.op, left, right) and self.is_plain(node.left) and self.is_plain(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return True
        if isinstance(node, ast.UnaryOp):
            return self.is_plain(node.operand) and (not self.check or self.value(node.operand).low > self.word.low)
        if isinstance(node, ast.Compare):
            return all(map(self.is_plain, (node.left, *node.comparators)))
        return isinstance(node, ast.BoolOp) and all(map(self.is_plain, node.values))

    def constant(self, node: ast.AST) -> int | None:
        """The value of an expression that is the same in every run and has no effect, or None."""
        return self.value(node).constant if self.is_plain(node) else None

    def is_busy(self, node: ast.AST) -> bool:
        """Whether computing an expression may use cells of routines, or change items of lists."""
        if self.constant(node) is not None or isinstance(node, ast.Name | ast.Constant):
            return False
        if isinstance(node, ast.BinOp) and isinstance(node.op, _LINEAR):
            return self.is_busy(node.left) or self.is_busy(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, _LINEAR):
            return self.is_busy(node.operand)
        return True


def text_items(items: list[AbstractValue]) -> list[AbstractValue]:
    """Items of one list: if one is a text, single characters are texts as well."""
    if any(item.kind == "str" for item in items):
        return [TEXT if item.kind == "char" else item for item in items]
    return items
