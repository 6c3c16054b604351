"""Random integer programs, and what Python says of them when every result wraps to a word, or must fit one."""

from __future__ import annotations

import ast
import contextlib
import io
import random
from typing import Any

NUMBERS = ("0", "1", "2", "3", "7", "10", "-1", "-5", "100", "255")
HEAVY = ("*", "//", "%", "&", "|", "^", "<<", ">>", "**")
"""Operators that need a routine: a program has a few of them, so that it stays small."""
STEPS = 3000
LARGE = ("10**30", "2**64 - 1", "1 << 70", "-(10**20)", "0x" + "f" * 40, "0b1" + "0" * 64, "10**9 * 10**9 // 10**18",
         "10**4000", "7 ** 10**9", "1 << 10**9",
         "(1 << 62) >> 60", "-5 >> 10**20", "0x" + "f" * 5000, "9" * 5000, "3 ** 3 ** 3 ** 3")
"""Numbers that do not fit a word, most of them; the last ones do not fit anything."""
OUTSIDE = ("BIG = 10**3", "BIG = 2**13 - 1", "BIG = -(2**15)", "BIG = 10**30", "BIG = 10**5000", "BIG = 1 << 900 >> 899",
           "BIG = 3 * 10**400 // 10**400", "BIG = [1, 2] * 40000", "BIG = [[0] * 60000] * 60000", "BIG = [[1, 2], [3, 4]]",
           "BIG = (1, 2)\n" + "BIG = (BIG, BIG)\n" * 5, "BIG = [1]\n" + "BIG = [BIG, BIG]\n" * 40, "BIG = range(10**30)",
           "BIG = tuple(range(5))", "BIG = range(2, 50, 7)", "BIG = 'ab'", "BIG = 1.5", "BIG = 10**400 * 1.0")
"""What a name outside the function may be; each is computed by Python in no time."""
USES = ("BIG", "BIG[0]", "BIG[0][1]", "BIG[-1]", "len(BIG)", "sum(BIG)", "(BIG + 1)", "max(BIG)")
TWO = (["    return y, x - 1"], ["    return divmod(x, y * y + 1)"],
       ["    return (x, 1) if x < y else divmod(x, y * y + 1)"],
       ["    if x > 0:", "        return two(x // 3 - 1, y)", "    return x, y"],
       ["    pair = (x, y)", "    return pair if x < y else (y, x)"], ["    return two(x // 2 - 1, y) if x > 5 else (y, 7)"])
"""Bodies of a function that returns two values."""
CHANGES = ["def change(x: list[int], n: int) -> int:", "    result = x[n % 4]", "    x[n % 4] += 1",
           "    return result if n < 3 else change(x, n // 2) - result", ""]


class TooLong(Exception):
    """The program makes too many steps for a test."""


class Misfit(Exception):
    """A result does not fit a word."""


class Program:
    """The text of a random function f(a, b, items)."""

    def __init__(self, rng: random.Random, bits: int, large: float = 0.0) -> None:
        """`large` is the share of numbers that are large constants, or names of such."""
        half = 1 << (bits - 1)
        self.heavy = rng.sample(HEAVY, 1 if bits < 16 else 2)
        self.plain = [sign for sign in self.heavy if sign not in ("<<", ">>", "**")]
        self.numbers = (*NUMBERS, str(half - 1), str(-half))
        self.rng, self.loops, self.names, self.large = rng, 0, ["a", "b"], large
        self.locked: list[str] = []
        body = self.block(1, rng.randint(2, 4 if bits < 16 else 6), 0)
        helper = ["def g(x: int, y: int) -> int:", f"    return {Program._small(rng)}", ""] if rng.random() < 0.4 else []
        self.helper = bool(helper)
        if self.helper:
            body.append(f"    a = g({self.number(1)}, {self.number(1)})")
        helper += CHANGES if any("change(" in line for line in body) else []
        if any("two(" in line for line in body):
            helper += ["def two(x: int, y: int):", *rng.choice(TWO), ""]
        if large:
            helper.insert(0, rng.choice(OUTSIDE))
        text = [*helper, "def f(a: int, b: int, items: list[int]) -> int:", "    c = result = 0",
                "    local = [3, -1, 0, 5]", *body,
                "    print(items, local, c)", f"    return {self.number(2)}"]
        self.text = "\n".join(text) + "\n"

    @staticmethod
    def _small(rng: random.Random) -> str:
        return rng.choice(("x - y", "x * y + 1", "x if x < y else y", "x // (y * y + 1)", "(x ^ y) & 63",
                           "y if x <= 0 else g(x // 2 - 1, y + 1)", "abs(x) % 10 + max(y, 3)"))

    def variable(self) -> str:
        return self.rng.choice([*self.names, "c", "result"])

    def number(self, depth: int) -> str:
        """An expression that is a number."""
        rng = self.rng
        if self.large and rng.random() < self.large:
            return f"({rng.choice(LARGE if rng.random() < 0.5 else USES)})"
        kind = rng.random()
        if depth <= 0 or kind < 0.2:
            return rng.choice(self.numbers) if rng.random() < 0.4 else self.variable()
        if kind < 0.6:
            sign, right = rng.choice(("+", "-", "+", "-", *self.plain)), self.number(depth - 1)
            if sign in ("//", "%") and rng.random() < 0.8:
                right = f"(2 * {right} + 1)"
            return f"({self.number(depth - 1)} {sign} {right})"
        if kind < 0.66 and len(self.plain) < len(self.heavy):
            sign = rng.choice([sign for sign in self.heavy if sign not in self.plain])
            return f"({self.number(depth - 1)} {sign} {rng.choice(('0', '1', '2', '3', 'c', '15'))})"
        if kind < 0.72:
            return f"{rng.choice(('-', '~', 'abs', '+'))}({self.number(depth - 1)})"
        if kind < 0.8:
            return f"{rng.choice(('min', 'max'))}({self.number(depth - 1)}, {self.number(depth - 1)})"
        if kind < 0.86:
            return f"({self.number(depth - 1)} if {self.truth(depth - 1)} else {self.number(depth - 1)})"
        if kind < 0.9:
            return f"({self.number(depth - 1)} {rng.choice(('and', 'or'))} {self.number(depth - 1)})"
        if kind < 0.93:
            return rng.choice(("sum(items)", "len(items)", "len(local)", "sum(local)", "local[-1]", "local[2]"))
        return self.item(depth)

    def pair(self, depth: int) -> str:
        """An expression that is two numbers."""
        kind, (one, two) = self.rng.random(), (self.number(depth), self.number(depth))
        if kind < 0.3:
            return f"divmod({one}, 2 * {two} + 1)"
        if kind < 0.6:
            return f"two({one}, {two})"
        if kind < 0.85 and depth > 0:
            return f"({self.pair(depth - 1)} if {self.truth(1)} else {self.pair(depth - 1)})"
        return f"({one}, {two})"

    def item(self, depth: int) -> str:
        which = self.rng.choice(("items", "local"))
        how = self.rng.random()
        index = self.number(depth - 1)
        if how < 0.15:
            return f"{which}[{index}]"
        return f"{which}[({index}) % 4]" if how < 0.8 else f"{which}[-1 - ({index}) % 4]"

    def truth(self, depth: int) -> str:
        rng = self.rng
        kind = rng.random()
        if depth <= 0 or kind < 0.6:
            sign = rng.choice(("<", "<=", ">", ">=", "==", "!="))
            return f"{self.number(depth - 1)} {sign} {self.number(depth - 1)}"
        if kind < 0.7:
            return f"{self.number(0)} < {self.number(depth - 1)} <= {self.number(0)}"
        if kind < 0.78:
            return f"{self.number(depth - 1)} in {rng.choice(('items', 'local'))}"
        if kind < 0.86:
            return f"not ({self.truth(depth - 1)})"
        return f"(({self.truth(depth - 1)}) {rng.choice(('and', 'or'))} ({self.truth(depth - 1)}))"

    def block(self, indent: int, count: int, inside: int) -> list[str]:
        known = len(self.names)
        lines = [line for _ in range(count) for line in self.statement(indent, inside)]
        if indent > 1 and self.rng.random() < 0.97:  # a name that may have no value is used now and then
            del self.names[known:]
        return lines

    def statement(self, indent: int, inside: int) -> list[str]:
        rng, front = self.rng, "    " * indent
        kind = rng.random()
        target = rng.choice([name for name in (*self.names, "c") if name not in self.locked])
        if kind < 0.25:
            return [f"{front}{target} = {self.number(3)}"]
        if kind < 0.4:
            sign = rng.choice(("+=", "-=", *(sign + "=" for sign in self.plain)))
            return [f"{front}{target} {sign} {'1 + 2 * ' if sign in ('//=', '%=') else ''}{self.number(2)}"]
        if kind < 0.52:
            sign = rng.choice(("=", "+=", "-=", *(sign + "=" for sign in self.plain if sign not in ("//", "%"))))
            return [f"{front}{self.item(2)} {sign} {self.number(2)}"]
        if kind < 0.55:
            return [f"{front}{target}, b = {self.number(2)}, {self.number(2)}"]
        if kind < 0.58:
            return [f"{front}{rng.choice((target, self.item(1)))}, {rng.choice(('b', 'b = c, _'))} = {self.pair(2)}"]
        if kind < 0.6:  # a call that changes what is beside it
            called = f"change({rng.choice(('items', 'local'))}, {self.number(1)})"
            return [f"{front}{rng.choice((f'result = {target} -', 'items[c % 4] +=', 'local[c % 4] -='))} {called}"]
        if kind < 0.62:
            return [f"{front}print({self.number(2)}, {self.truth(2)}, c, sep=',')"]
        if kind < 0.66 and inside:
            return [f"{front}if {self.truth(1)}:", f"{front}    {rng.choice(('break', 'continue'))}"]
        if kind < 0.82 or indent > 3:
            lines = [f"{front}if {self.truth(2)}:", *self.block(indent + 1, rng.randint(1, 2), inside)]
            if rng.random() < 0.5:
                lines += [f"{front}else:", *self.block(indent + 1, 1, inside)]
            return lines
        return self.loop(indent)

    def loop(self, indent: int) -> list[str]:
        rng, front = self.rng, "    " * indent
        self.loops += 1
        name = f"i{self.loops}"
        if rng.random() < 0.3:
            head = [f"{front}{name} = {rng.randint(0, 5)}", f"{front}while {name} > 0:", f"{front}    {name} -= 1"]
        else:
            low, high = rng.randint(-3, 3), rng.randint(-3, 6)
            source = rng.choice((f"range({low}, {high})", f"range({low}, {high}, 2)", f"range({high}, {low}, -1)",
                                 "range(len(items))", f"range({self.number(0)} % 5)", "local", "items"))
            head = [f"{front}{name} = 0", f"{front}for {name} in {source}:"]
        self.names.append(name)
        self.locked.append(name)
        lines = [*head, *self.block(indent + 1, rng.randint(1, 3), 1)]
        self.locked.remove(name)
        if rng.random() < 0.2:
            lines += [f"{front}else:", f"{front}    c += 1"]
        return lines


class _Wrapped(ast.NodeTransformer):
    """Every result of arithmetic goes through `_word`, and every loop counts its times."""

    def _through(self, node: ast.expr) -> ast.expr:
        call = ast.Call(ast.Name("_word", ast.Load()), [node], [])
        return ast.copy_location(call, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return self._operated(node)

    def _operated(self, node: ast.BinOp) -> ast.expr:
        """Powers and shifts are computed as words, however large they would be."""
        name = {ast.Pow: "_power", ast.LShift: "_left"}.get(type(node.op))
        call = node if name is None else ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], [])
        return self._through(ast.copy_location(call, node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return node if isinstance(node.op, ast.Not) else self._through(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return self._through(node) if isinstance(node.func, ast.Name) and node.func.id in ("abs", "sum") else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        load = self.visit(load) if isinstance(node.target, ast.Subscript) else load
        value = self._operated(ast.BinOp(load, node.op, node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)


def run_by_python(text: str, arguments: tuple[Any, ...], bits: int, *, check: bool) -> tuple[Any, str]:
    """What f returns, or the name of its error; and what it prints."""
    half = 1 << (bits - 1)
    count = 0

    def word(value: Any) -> Any:
        nonlocal count
        count += 1
        if count > STEPS:
            raise TooLong
        if isinstance(value, float):
            raise ValueError("a negative power")
        if isinstance(value, bool) or -half <= value < half:
            return value
        if check:
            raise Misfit
        return (value + half) % (2 * half) - half

    def power(base: int, exponent: int) -> Any:
        if abs(base) < 2 or exponent < 200:
            return base**exponent
        if check:
            raise Misfit
        return pow(base, exponent, 2 * half)

    def left(value: int, count: int) -> int:
        return value << count if count < 200 or not value else value << 200  # as many bits as no word has

    def total(items: list[int]) -> int:
        found = 0
        for item in items:
            found = word(found + item)
        return found


    tree = ast.parse(text)
    wrapped = [_Wrapped().visit(node) if isinstance(node, ast.FunctionDef) else node for node in tree.body]
    tree = ast.fix_missing_locations(ast.Module(wrapped, []))
    names: dict[str, Any] = {"_word": word, "sum": total, "_power": power, "_left": left,
                             "divmod": lambda a, b: (word(a // b), word(a % b))}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "random", "exec"), names)
        try:
            result = names["f"](*arguments)
        except Misfit:
            result = "OverflowError"
        except (ZeroDivisionError, IndexError, ValueError, RecursionError, TypeError, NameError) as error:
            result = "ValueError" if "negative power" in str(error) else type(error).__name__  # 0 ** -1 divides by 0
    return result, out.getvalue()
