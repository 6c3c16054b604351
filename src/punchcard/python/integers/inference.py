"""What every expression of a program may be: its kind, and the interval of a number."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from punchcard.python.integers import intervals
from punchcard.python.integers.functions import Function, Functions, constant_of
from punchcard.python.integers.refining import compared, narrowed
from punchcard.python.integers.values import (
    CHARACTER,
    NONE,
    TEXT,
    ListInfo,
    Names,
    Unreached,
    Value,
    join,
    join_all,
    number,
    truth,
)

SHOWN_ONLY = "it can be printed, but not kept: write it in the print"
MANY_UPDATES = 3


class Inference:
    """Values of expressions. `values` has what was found for each node in the last round."""

    def __init__(self, functions: Functions, word_bits: int, *, check: bool) -> None:
        self.functions, self.check = functions, check
        self.word = -(1 << (word_bits - 1)), (1 << (word_bits - 1)) - 1
        self.any_number = number(*self.word)
        self.values: dict[ast.AST, Value] = {}
        self.thresholds: list[int] = []
        self.changed = False
        self.recording = True
        self.stuck: tuple[Function, ast.AST] | None = None
        self.function: Function
        self._constants: dict[int, Value] = {}
        self._created: dict[ast.AST, ListInfo] = {}
        self.outside: dict[tuple[int, str], tuple[Mapping[str, Any], str, str]] = {}
        """Names outside the functions that were used, and what they held."""

    # What is known of places that many statements write to

    def widened(self, old: Value | None, new: Value, updates: int) -> Value:
        """The value of such a place, which may grow a few times only."""
        if old is None:
            return new
        both = join(old, new)
        if updates >= MANY_UPDATES and both.kind in ("int", "number"):
            low = both.low if both.low >= old.low else max((t for t in self.thresholds if t <= both.low),
                                                           default=self.word[0])
            high = both.high if both.high <= old.high else min((t for t in self.thresholds if t >= both.high),
                                                               default=self.word[1])
            both = Value(both.kind, low, high, unbound=both.unbound)
        return both

    def store_item(self, items: ListInfo, value: Value, node: ast.AST) -> None:
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

    def created(self, node: ast.AST, item: Value | None, low: int, high: int, *, is_tuple: bool = False) -> Value:
        """The list that an expression makes, the same one in every round."""
        info = self._created.setdefault(node, ListInfo(None, low, high, is_tuple=is_tuple)).root
        if self.recording and (low < info.low or high > info.high):
            info.low, info.high, self.changed = min(low, info.low), max(high, info.high), True
        if item is not None:
            self.store_item(info, item, node)
        return Value("list", items=info)

    def fit(self, interval: tuple[int, int] | None) -> Value:
        """A number that wraps, or is refused, where it leaves the word."""
        if interval is None:
            return self.any_number
        low, high = interval
        if self.word[0] <= low and high <= self.word[1]:
            return number(low, high)
        if not self.check:
            return self.any_number
        return number(min(max(low, self.word[0]), self.word[1]), max(min(high, self.word[1]), self.word[0]))

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        self.function.source.fail(node, message, instead)

    def skip(self, node: ast.expr) -> None:
        """An expression of which nothing is known in this round; in the last round there may be none."""
        if self.recording:
            self.stuck = self.function, node

    # Expressions

    def value(self, node: ast.expr, names: Names) -> Value:
        method = getattr(self, "_" + type(node).__name__, None)
        if method is None:
            self.fail(node, f"{_phrase(node)} is not in the integer subset")
        found: Value = method(node, names)
        if self.recording:
            self.values[node] = found if node not in self.values else join(self.values[node], found)
        return found

    def number(self, node: ast.expr, names: Names, what: str) -> Value:
        found = self.value(node, names)
        if not found.is_number:
            self.fail(node, f"{what} must be a number, and this is {found.words}",
                      "ord(c) is a character's number" if found.kind == "char" else "")
        return found

    def _Constant(self, node: ast.Constant, names: Names) -> Value:
        return self.of_constant(node.value, node)

    def of_constant(self, value: Any, node: ast.AST) -> Value:
        """A value that stands in the text, or outside of the functions."""
        if isinstance(value, bool):
            return truth(int(value), int(value))
        if isinstance(value, int):
            if not self.word[0] <= value <= self.word[1]:
                self.fail(node, f"{str(value)[:40]} does not fit a word, which is {self.word[0]} to {self.word[1]}",
                          "use longer words: word_bits=, --bits")
            return number(value)
        if isinstance(value, str):
            if not value.isascii() or "\0" in value:
                self.fail(node, f"{value[:40]!r} has a character that is not ASCII", "only print can write such a text")
            return Value("char", ord(value), ord(value)) if len(value) == 1 else TEXT
        if isinstance(value, list | tuple):
            if id(value) not in self._constants:
                items = join_all(whole_texts([self.of_constant(item, node) for item in value]))
                self._constants[id(value)] = Value("list", items=ListInfo(items, len(value), len(value),
                                                                          is_tuple=isinstance(value, tuple)))
            return self._constants[id(value)]
        if value is None:
            return NONE
        return self.fail(node, f"{type(value).__name__} {str(value)[:40]} is not in the integer subset",
                         "use whole numbers" if isinstance(value, float) else "")

    def _Name(self, node: ast.Name, names: Names) -> Value:
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
            self.outside[id(outside), node.id] = outside, node.id, repr(outside[node.id])
            return self.of_constant(outside[node.id], node)
        raise self.function.source.unknown(node, sorted(self.function.locals))

    def _UnaryOp(self, node: ast.UnaryOp, names: Names) -> Value:
        if isinstance(node.op, ast.Not):
            known = self.condition(node.operand, names).constant
            return truth() if known is None else truth(1 - known, 1 - known)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            return self.of_constant(-node.operand.value, node)
        found = self.number(node.operand, names, f"the operand of {_SIGNS[type(node.op)]}")
        low, high = found.low, found.high
        if isinstance(node.op, ast.USub):
            low, high = -high, -low
        elif isinstance(node.op, ast.Invert):
            low, high = -high - 1, -low - 1
        return self.fit((low, high))

    def _BinOp(self, node: ast.BinOp, names: Names) -> Value:
        left, right = self.value(node.left, names), self.value(node.right, names)
        if isinstance(node.op, ast.Mult) and left.kind == "list" and right.is_number:
            return self._repeated(node, left, right)
        if isinstance(node.op, ast.Mult) and right.kind == "list" and left.is_number:
            return self._repeated(node, right, left)
        sign = _SIGNS.get(type(node.op))
        if sign in (None, "/"):
            self.fail(node, f"{'/' if sign else 'this operator'} is not in the integer subset",
                      "use //, which rounds down" if sign else "")
        for side, found in ((node.left, left), (node.right, right)):
            if not found.is_number:
                self.fail(side, f"{sign} needs numbers, and this is {found.words}",
                          SHOWN_ONLY if found.kind in ("str", "char") else "")
        return self.arithmetic(node, node.op, left, right)

    def arithmetic(self, node: ast.AST, op: ast.operator, left: Value, right: Value) -> Value:
        """The value of an operation on numbers."""
        if isinstance(op, ast.FloorDiv | ast.Mod) and right.constant == 0:
            self.fail(node, "division by zero")
        if isinstance(op, ast.LShift | ast.RShift | ast.Pow) and right.high < 0:
            self.fail(node, "a negative power is not a whole number" if isinstance(op, ast.Pow) else "negative shift count")
        found = self.fit(intervals.binary(op, (left.low, left.high), (right.low, right.high), self.word))
        if left.kind == right.kind == "bool" and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return truth(found.low, min(found.high, 1))
        if "number" in (left.kind, right.kind) and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return Value("number", found.low, found.high)
        return found

    def _repeated(self, node: ast.BinOp, items: Value, count: Value) -> Value:
        assert items.items is not None
        root = items.items.root
        if root.length is None:
            self.fail(node, "only a list that is written out can be repeated", "write [0] * n")
        low, high = (root.low * max(0, min(n, self.word[1])) for n in (count.low, count.high))
        return self.created(node, root.item, low, min(high, self.word[1]), is_tuple=root.is_tuple)

    def _List(self, node: ast.List | ast.Tuple, names: Names) -> Value:
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

    def _ListComp(self, node: ast.ListComp, names: Names) -> Value:
        generator = node.generators[0]
        if len(node.generators) != 1 or generator.ifs or generator.is_async:
            self.fail(node, "a comprehension has one `for` and no `if` here", "write a loop")
        inner = dict(names)
        low, high = self.iteration(generator.iter, generator.target, inner)
        return self.created(node, self.value(node.elt, inner), low, high)

    def _Compare(self, node: ast.Compare, names: Names) -> Value:
        left = self.value(node.left, names)
        known: int | None = 1
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other, names)
            here = self._one_comparison(node, op, left, right)
            known = 0 if here == 0 else known if here == 1 else (0 if known == 0 else None)
            left = right
        return truth() if known is None else truth(known, known)

    def _one_comparison(self, node: ast.Compare, op: ast.cmpop, left: Value, right: Value) -> int | None:
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

    def condition(self, node: ast.expr, names: Names) -> Value:
        """A value in its role as true or false."""
        found = self.value(node, names)
        if found.is_number:
            return truth(0 if found.low <= 0 <= found.high else 1, 0 if found.low == found.high == 0 else 1)
        if found.kind == "char":
            return truth(1, 1)
        if found.kind in ("str", "list"):
            return truth()
        return self.fail(node, f"{found.words} cannot be a condition here")

    def _BoolOp(self, node: ast.BoolOp, names: Names) -> Value:
        is_and = isinstance(node.op, ast.And)
        found: list[Value] = []
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
                found.append(value if last or not is_and or not value.is_number else Value(value.kind, 0, 0))
            ahead = narrowed(self, ahead, operand, is_and)
        both = join_all(found)
        if both.kind in ("mixed", "results", "none"):
            self.fail(node, "and / or of values of different types is not in the integer subset")
        return both

    def _IfExp(self, node: ast.IfExp, names: Names) -> Value:
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

    def _Subscript(self, node: ast.Subscript, names: Names) -> Value:
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

    # Calls

    def _Call(self, node: ast.Call, names: Names) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "isdigit" and not node.args:
            if self.value(node.func.value, names).kind != "char":
                self.fail(node, ".isdigit() is for single characters here")
            return truth()
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "pop", "insert", "extend"):
            self.fail(node, f".{node.func.attr}() is not in the integer subset: lists have a fixed length",
                      "make the list with [0] * n, and count what is in it")
        called = self.functions.called(self.function, node)
        if called is None:
            assert isinstance(node.func, ast.Name)
            if node.func.id != "print" and any(isinstance(argument, ast.Starred) for argument in node.args):
                self.fail(node, "* in a call is not in the integer subset, but in print(*items)")
            if node.keywords and node.func.id != "print":
                self.fail(node, f"{node.func.id}() takes no keywords here")
            found: Value = getattr(self, "call_" + node.func.id)(node, names)
            return found
        return self._own_call(node, called, names)

    def _own_call(self, node: ast.Call, called: Function, names: Names) -> Value:
        if self.recording:
            self.function.calls.add(called)
        for name, argument in arguments_of(self.function, node, called).items():
            inside = argument in called.written_defaults.values()
            value = self.value(argument, {} if inside else names)
            if name in called.texts and value.kind == "char":
                value = TEXT
            new = self.widened(called.given.get(name), value, called.updates)
            if new.kind in ("mixed", "results", "none"):
                self.fail(argument, f"{name!r} of {called.name}() is {value.words} here, and of another type elsewhere")
            if self.recording and new != called.given.get(name):
                called.given[name], self.changed = new, True
                called.updates += 1
        if called.result is None:
            raise Unreached
        return called.result

    def _arguments(self, node: ast.Call, least: int, most: int) -> Sequence[ast.expr]:
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self.fail(node, f"{ast.unparse(node.func)}() takes {wanted} arguments here, and this has {len(node.args)}")
        return node.args

    def call_input(self, node: ast.Call, names: Names) -> Value:
        for prompt in self._arguments(node, 0, 1):
            self.printed(prompt, names)
        return TEXT

    def call_int(self, node: ast.Call, names: Names) -> Value:
        found = self.value(self._arguments(node, 1, 1)[0], names)
        if found.is_number:
            return number(found.low, found.high)
        if found.kind == "char":
            return number(0, 9)
        return self.any_number if found.kind == "str" else self.fail(node, f"int() of {found.words}")

    def call_bool(self, node: ast.Call, names: Names) -> Value:
        return self.condition(self._arguments(node, 1, 1)[0], names)

    def call_str(self, node: ast.Call, names: Names) -> Value:
        return self.fail(node, "str() makes a text that cannot be kept", "print writes numbers as they are")

    def call_len(self, node: ast.Call, names: Names) -> Value:
        found = self.value(self._arguments(node, 1, 1)[0], names)
        if found.kind == "list" and found.items is not None:
            return number(found.items.root.low, found.items.root.high)
        return number(0, self.word[1]) if found.kind == "str" else self.fail(node, f"{found.words} has no len()")

    def call_abs(self, node: ast.Call, names: Names) -> Value:
        found = self.number(self._arguments(node, 1, 1)[0], names, "the argument of abs()")
        ends = abs(found.low), abs(found.high)
        return self.fit((0 if found.low <= 0 <= found.high else min(ends), max(ends)))

    def call_min(self, node: ast.Call, names: Names) -> Value:
        name = node.func.id  # type: ignore[attr-defined]
        if len(node.args) == 1:
            found = self._items(node, names)
            return Value(found.kind, found.low, found.high)
        given = [self.number(each, names, f"an argument of {name}()") for each in self._arguments(node, 2, 100)]
        choose: Any = min if name == "min" else max
        return Value(join_all(given).kind, choose(v.low for v in given), choose(v.high for v in given))

    call_max = call_min

    def _items(self, node: ast.Call, names: Names) -> Value:
        found = self.value(node.args[0], names)
        item = found.items.root.item if found.items is not None else None
        if found.items is not None and item is None:
            raise Unreached
        if item is None or not item.is_number:
            self.fail(node, f"{ast.unparse(node.func)}() is of numbers, or of one list of numbers")
        assert item is not None
        return item

    def call_sum(self, node: ast.Call, names: Names) -> Value:
        argument = self._arguments(node, 1, 1)[0]
        if isinstance(argument, ast.GeneratorExp):
            self.fail(node, "sum() of a generator is not in the integer subset", "write a loop")
        item, found = self._items(node, names), self.value(argument, names)
        assert found.items is not None
        root = found.items.root
        return self.fit((min(root.low * item.low, root.high * item.low), max(root.low * item.high, root.high * item.high)))

    def call_divmod(self, node: ast.Call, names: Names) -> Value:
        left, right = (self.number(each, names, "an argument of divmod()") for each in self._arguments(node, 2, 2))
        return Value("results", results=(self.arithmetic(node, ast.FloorDiv(), left, right),
                                         self.arithmetic(node, ast.Mod(), left, right)))

    def call_pow(self, node: ast.Call, names: Names) -> Value:
        left, right = (self.number(each, names, "an argument of pow()") for each in self._arguments(node, 2, 2))
        return self.arithmetic(node, ast.Pow(), left, right)

    def call_ord(self, node: ast.Call, names: Names) -> Value:
        found = self.value(self._arguments(node, 1, 1)[0], names)
        if found.kind == "str":
            return number(0, 127)
        return number(found.low, found.high) if found.kind == "char" else self.fail(
            node, f"ord() is of a single character, and this is {found.words}")

    def call_chr(self, node: ast.Call, names: Names) -> Value:
        found = self.number(self._arguments(node, 1, 1)[0], names, "the argument of chr()")
        if found.high < 0 or found.low > 127:
            self.fail(node, "chr() is of 0 to 127 here")
        return Value("char", max(found.low, 0), min(found.high, 127))

    def call_range(self, node: ast.Call, names: Names) -> Value:
        return self.fail(node, f"{node.func.id}() stands in a `for` only", "write a loop over it")  # type: ignore[attr-defined]

    call_enumerate = call_zip = call_range

    def call_print(self, node: ast.Call, names: Names) -> Value:
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
                found = self.value(each.value, names)
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
                len(node.args) == 1 and not node.keywords and "str" not in self.function.source.names):
            self.printed(node.args[0], names)
        elif is_text(node) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            self.printed(node.left, names)
            self.printed(node.right, names)
        elif is_text(node) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            text, count = (node.left, node.right) if is_text(node.left) else (node.right, node.left)
            self.printed(text, names)
            self.number(count, names, "how often a text is written")
        else:
            found = self.value(node, names)
            item = found
            while item.kind == "list" and item.items is not None and item.items.root.item is not None:
                item = item.items.root.item
            if item.kind in ("number", "results", "none", "mixed") or (found.kind == "list" and not item.is_number):
                self.fail(node, f"{found.words} cannot be printed here",
                          "write int(...) or bool(...)" if item.kind == "number" else "")

    def iteration(self, node: ast.expr, target: ast.expr, names: Names) -> tuple[int, int]:
        """What a `for` gives its target; and the least and the most times."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (
                "range", "enumerate", "zip") and node.func.id not in self.function.source.names:
            if node.keywords:
                self.fail(node, f"{node.func.id}() takes no keywords here")
            return getattr(self, "_iterate_" + node.func.id)(node, target, names)  # type: ignore[no-any-return]
        found = self.value(node, names)
        if found.kind == "str":
            self.assign(target, CHARACTER, names)
            return 0, self.word[1]
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

    def _step(self, node: ast.Call, names: Names) -> Value:
        step = number(1) if len(node.args) < 3 else self.number(node.args[2], names, "the step of range()")
        if step.low <= 0 < step.high:
            return number(1, step.high)  # the program tests it: see Statements
        if step.low <= 0 <= step.high:
            self.fail(node.args[2], "it is not known whether the step of range() is above 0 or below",
                      "test it before, or write a while loop")
        return step

    def _iterate_range(self, node: ast.Call, target: ast.expr, names: Names) -> tuple[int, int]:
        self._arguments(node, 1, 3)
        ends = [self.number(each, names, "an argument of range()") for each in node.args[:2]]
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
        return max(0, -(-least // longest)), min(max(0, -(-most // shortest)), self.word[1])

    def _iterate_enumerate(self, node: ast.Call, target: ast.expr, names: Names) -> tuple[int, int]:
        self._arguments(node, 1, 2)
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            self.fail(target, "enumerate() gives two values", "write `for i, x in enumerate(...)`")
        assert isinstance(target, ast.Tuple)
        least, most = self.iteration(node.args[0], target.elts[1], names)
        first = 0
        if len(node.args) == 2:
            known = self.number(node.args[1], names, "the start of enumerate()").constant
            if known is None:
                self.fail(node.args[1], "the start of enumerate() must be a constant")
            first = known or 0
        self.assign(target.elts[0], self.fit((first, first + max(0, most - 1))), names)
        return least, most

    def _iterate_zip(self, node: ast.Call, target: ast.expr, names: Names) -> tuple[int, int]:
        if not isinstance(target, ast.Tuple) or len(target.elts) != len(node.args) or len(node.args) < 2:
            self.fail(target, f"zip() of {len(node.args)} gives as many values, two or more")
        assert isinstance(target, ast.Tuple)
        counts = [self.iteration(each, to, names) for each, to in zip(node.args, target.elts, strict=True)]
        return min(low for low, _ in counts), min(high for _, high in counts)

    def assign(self, target: ast.expr, value: Value, names: Names) -> None:
        """A value to a name, an item of a list, or several of them."""
        if isinstance(target, ast.Name):
            if value.kind in ("results", "none"):
                self.fail(target, f"{target.id!r} would be {value.words}",
                          "unpack them: a, b = ..." if value.kind == "results" else "")
            names[target.id] = TEXT if value.kind == "char" and target.id in self.function.texts else value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = list(value.results)
            if value.kind == "list" and value.items is not None and value.items.root.length is not None:
                parts = [value.items.root.item or self.any_number] * value.items.root.length
            if len(parts) != len(target.elts):
                self.fail(target, f"{len(target.elts)} names for {len(parts) if parts else value.words}")
            for each, part in zip(target.elts, parts, strict=True):
                self.assign(each, part, names)
        elif isinstance(target, ast.Subscript):
            self._assign_item(target, value, names)
        else:
            self.fail(target, f"{_phrase(target)} cannot be assigned to here")

    def _assign_item(self, target: ast.Subscript, value: Value, names: Names) -> None:
        base = self.value(target.value, names)
        if base.kind != "list" or base.items is None or base.items.root.is_tuple:
            self.fail(target, f"an item of {base.words} cannot be changed")
        assert base.items is not None
        self._Subscript(target, names)
        self.store_item(base.items, value, target)


def arguments_of(function: Function, node: ast.Call, called: Function) -> dict[str, ast.expr]:
    """The arguments of a call by the names of the parameters, defaults included."""
    fail = function.source.fail
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(k.arg is None for k in node.keywords):
        fail(node, "* in a call is not in the integer subset")
    if len(node.args) > len(called.parameters):
        fail(node, f"{called.name}() takes {len(called.parameters)} arguments, and this has {len(node.args)}")
    found = dict(zip(called.parameters, node.args, strict=False))
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg not in called.parameters or keyword.arg in found:
            fail(node, f"{called.name}() has no such parameter, or twice: {keyword.arg!r}")
        found[keyword.arg] = keyword.value
    for name in called.parameters:
        if name not in found:
            if name not in called.defaults:
                fail(node, f"{called.name}() needs {name!r}")
            found[name] = called.default(name)
    return found


def whole_texts(items: list[Value]) -> list[Value]:
    """Items of one list: where one is a text, single characters are texts as well."""
    if any(item.kind == "str" for item in items):
        return [TEXT if item.kind == "char" else item for item in items]
    return items


def is_text(node: ast.expr) -> bool:
    """Whether an expression puts a text together, as its form shows."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mult):
            return is_text(node.left) or is_text(node.right)
        return isinstance(node.op, ast.Add) and (is_text(node.left) or is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str")


def _phrase(node: ast.AST) -> str:
    names = {"Lambda": "a lambda", "DictComp": "a dictionary", "Dict": "a dictionary", "Set": "a set", "NamedExpr": ":=",
             "GeneratorExp": "a generator", "JoinedStr": "an f-string outside of print", "Attribute": "an attribute",
             "Starred": "*", "Await": "await", "Yield": "yield", "SetComp": "a set"}
    return names.get(type(node).__name__, type(node).__name__)


_SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
                           ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
                           ast.Div: "/", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
