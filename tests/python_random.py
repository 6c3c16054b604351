"""Random array programs over the subset, as text: expressions, loops, conditions, parts of arrays, calls of programs.

Sizes are 1 to 5, and arguments are floats, integers, arrays of three types and lists. Values are kept small by clipping
with a sigmoid or by scaling, so that most programs stay in a range. What a program may not say is made too, now and
then: it must be refused by name, not run wrongly.
"""

from __future__ import annotations

import linecache
import types
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import numpy as np

import punchcard as pc

Shape: TypeAlias = tuple[int, ...]
HELPERS = (
    "def helper(x, y, k=2):\n    return {0}(x) * y - 0.25 * k\n",
    "def helper(x, y, k=2):\n    for _ in range(k):\n        x = 0.5 * x + {0}(y)\n    return x\n",
    "def helper(x, y, k=2):\n    t = {0}(x)\n    if k > 1:\n        t = t - y\n    return t\n",
    "def helper(x, y, k=2):\n    z = 1.0 * x\n    z += y\n    return {0}(z)\n",
)
SMOOTH = ("pc.arrays.sigmoid({})", "np.tanh({})", "np.sin({})", "np.cos({})", "pc.arrays.relu({})", "np.abs({})", "abs({})",
          "np.sqrt(0.5 + pc.arrays.abs({}))", "pc.arrays.log(1.5 + np.abs({}))", "np.exp(-pc.arrays.abs({}))",
          "(1.0 / (1.0 + ({}) ** 2))",
          "np.square({})", "np.negative({})", "pc.arrays.exp(pc.arrays.sigmoid({}))")
"""Functions of every entry whose values and domains are small."""


KNOWN = ("2 ** 3 / 8", "(3, 4)[0] / 4", "len((1, 2) * 3) / 8", "10 ** 20 / 10 ** 20", "sum((1, 2)) / 4", "max(1, 2) / 2",
         "round(2.6) / 4", "-(7 // 2) / 4", "7 % 4 / 4", "2 ** 900 / 2 ** 901", "(2 ** 60 + 1 - 2 ** 60)", "10 ** -3",
         "float(10 ** 300) * 1e-300", "int(1e100) / 10 ** 100", "sum((1,) * 300) / 600", "(1, (2, 3))[1][0] / 4",
         "np.array([1, 2] * 10)[3] / 4", "np.linspace(0, 1, 500)[4]", "np.arange(3000)[-1] / 3000", "len('ab' * 500) / 1000")
"""Constants that are computed when a program is compiled."""
LARGE = (
    "10 ** 400", "1e308 * 10", "1e200 * 1e200", "(0,) * 10 ** 9", "len((0,) * 10 ** 9)", "len('ab' * 10 ** 12)",
    "7 ** 10 ** 9", "np.zeros((10 ** 6, 10 ** 6))[0, 0]", "np.ones(10 ** 9).sum()", "np.eye(10 ** 5)[0, 0]",
    "np.eye(3, 10 ** 9)[0, 0]", "np.arange(10 ** 12)[1]", "np.arange(0, 1, 1e-15)[1]", "np.linspace(0, 1, 10 ** 9)[1]",
    "np.full((3, 10 ** 8), 0.5).sum()", "np.array([10 ** 30, 1])[1]", "round(123456, -10 ** 9)", "0x" + "f" * 5000,
    "9" * 5000, "np.outer(np.ones(2000), np.ones(2000))[0, 0]", "np.ones((1000, 1000))[:, 1:][0, 0]",
    "np.diag(np.ones(5000))[0, 0]", "np.ones(5000)[:, None] * np.ones(5000)", "np.identity(10 ** 30)", "np.zeros(-1)",
    "np.zeros(2, dtype='V9999999999')", "np.ones(3)[::0]", "(2 ** 999) ** 2", "int('9' * 4000)", "tuple(range(10 ** 30))",
    "np.float64(10 ** 300) ** 3", "10 ** 300 * 1.0 ** 2")
"""Constants of which most are too large."""


@dataclass
class Writer:
    """Writes one program; `shapes` has each variable that is certain to have a value, `indices` what each is below."""

    random: Random
    sizes: tuple[int, int, int] = (1, 1, 1)
    lines: list[str] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)
    loops: int = 0
    in_loop: bool = False
    helper: bool = False
    large: float = 0.0

    @classmethod
    def of(cls, seed: int, large: float = 0.0) -> Writer:
        """The writer of a seed: sizes, and the types of parameters. `large` is the share of scalars that are constants."""
        writer = cls(Random(seed), large=large)
        n, m, k = writer.sizes = tuple(writer.random.randint(1, 5) for _ in range(3))  # type: ignore[assignment]
        for name, shape, kinds in (
            ("a", (), "ff"), ("b", (), "fcib"), ("u", (n,), "fffl"), ("v", (m,), "fff4"), ("w", (n,), "ffi"),
            ("t", (k,), "fiblt"), ("A", (n, m), "fff4l"), ("B", (m, k), "fffi"), ("S", (n, n), "ffl"), ("M", (n, m), "fib"),
        ):
            writer.shapes[name], writer.types[name] = shape, writer.pick(*kinds)
        return writer

    def pick(self, *options: Any) -> Any:
        return options[self.random.randrange(len(options))]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def named(self, shape: Shape, *, changed: bool = False) -> str | None:
        """A variable; mostly one of real numbers where it is to be changed in place."""
        names = [name for name, own in self.shapes.items() if own == shape and (not changed or self.may_change(name))]
        return str(self.pick(*names)) if names else None

    def may_change(self, name: str) -> bool:
        return self.types.get(name, "f") in "f4l" or self.chance(0.01)

    def leaf(self, shape: Shape) -> str:
        """A variable, or a constant array."""
        if self.large and shape == () and self.chance(self.large):
            return f"({self.pick(*KNOWN) if self.chance(0.9) else self.pick(*LARGE)})"
        name = self.named(shape)
        if name is not None and not (shape == () and self.chance(0.3)):
            return f"(1.0 * {name})" if self.types.get(name) == "b" and self.chance(0.9) else name
        if shape == ():
            return str(self.pick("0.5", "-0.25", "1.0", "2", "-1", "0.125", "3", *self.indices))
        size = str(shape[0]) if len(shape) == 1 else str(shape)
        options = [f"pc.arrays.ones({size})", f"pc.arrays.zeros({size})", f"np.full({size}, 0.5)",
                   f"np.ones({size}, dtype=int)"]
        if len(shape) == 1:
            options += [f"np.arange({size})", f"np.linspace(0, 1, {size})"]
        elif shape[0] == shape[1]:
            options += [f"pc.arrays.eye({shape[0]})", f"np.eye({shape[0]})"]
        return str(self.pick(*options))

    def size(self) -> int:
        return int(self.pick(*self.sizes))

    def index(self, length: int) -> str:
        """An index of an axis, nearly always within it."""
        options = [str(self.random.randrange(-length, length))]
        for name, bound in self.indices.items():
            if bound <= length:
                options += [name, name, name, f"{name} - 1", f"{length - 1} - {name}"]
            if bound < length:
                options.append(f"{name} + 1")
        return str(self.pick(*options) if self.chance(0.997) else length)

    def span(self, length: int, wanted: int) -> str | None:
        """A slice of an axis that takes so many entries; None where there is none."""
        if wanted == length:
            return str(self.pick(":", "::-1", f":{length}", "0:"))
        if wanted > length:
            return None
        first = self.random.randint(0, length - wanted)
        spans = [f"{first}:{first + wanted}", f"{first - length}:{first + wanted}"]
        if first + 2 * wanted - 1 <= length:
            spans.append(f"{first}:{first + 2 * wanted - 1}:2")
        return str(self.pick(*spans))

    def part(self, shape: Shape, *, changed: bool = False) -> str | None:
        """A part of a variable, with that shape: an entry, a row, a column or a slice."""
        found: list[str] = []
        for name, own in self.shapes.items():
            if changed and not self.may_change(name):
                continue
            if len(own) == 1 and shape == ():
                found.append(f"{name}[{self.index(own[0])}]")
            elif len(own) == 2 and shape == ():
                found.append(f"{name}[{self.index(own[0])}, {self.index(own[1])}]")
            elif len(own) == 1 and len(shape) == 1 and (span := self.span(own[0], shape[0])):
                found.append(f"{name}[{span}]")
            elif len(own) == 2 and len(shape) == 1:
                if span := self.span(own[1], shape[0]):
                    row = self.index(own[0])
                    found.append(f"{name}[{row}]" if own[1] == shape[0] and self.chance(0.5) else f"{name}[{row}, {span}]")
                if span := self.span(own[0], shape[0]):
                    found.append(f"{name}[{span}, {self.index(own[1])}]")
            elif len(own) == 2 and len(shape) == 2:
                spans = self.span(own[0], shape[0]), self.span(own[1], shape[1])
                if all(spans):
                    found.append(f"{name}[{spans[0]}, {spans[1]}]")
        return str(self.pick(*found)) if found else None

    def expression(self, shape: Shape, depth: int) -> str:
        if depth <= 0 or self.chance(0.15):
            return self.leaf(shape)
        d = depth - 1

        def e(of: Shape = shape) -> str:
            return self.expression(of, d)

        def compared() -> str:
            return f"{e()} {self.pick('<', '>=', '>', '<=')} {e(self.pick(shape, ()))}"

        common = [
            lambda: f"({e()} {self.pick('+', '-', '*')} {e()})", lambda: f"({e(())} {self.pick('+', '-', '*')} {e()})",
            lambda: f"({e()} {self.pick('+', '-', '*')} {e(())})", lambda: f"({e()} {self.pick('+', '-', '*')} {e()})",
            lambda: f"(-{e()})", lambda: f"({e()} / {self.pick('2.0', '4', '-0.5', '(1.5 + pc.arrays.sigmoid(a))')})",
            lambda: self.pick(*SMOOTH).format(e()), lambda: self.pick(*SMOOTH).format(e()),
            lambda: f"{self.pick('np', 'pc.arrays')}.{self.pick('maximum', 'minimum')}({e()}, {e(self.pick(shape, ()))})",
            lambda: f"({e()}) ** {self.pick('2', '3', '2.0')}",
            lambda: f"{self.pick('np', 'pc.arrays')}.where({compared()}, {e()}, {e(self.pick(shape, ()))})",
            lambda: f"({compared()}) * {e()}", lambda: self.part(shape) or self.leaf(shape),
            lambda: self.part(shape) or self.leaf(shape),
        ]
        if self.helper:
            common.append(lambda: f"helper({e()}, {e(self.pick(shape, ()))}{self.pick('', ', 1', ', k=3')})")
        own = (self._scalar, self._vector, self._matrix)[len(shape)](shape, d)
        return str(self.pick(*common, *own)())

    def _scalar(self, shape: Shape, d: int) -> list[Any]:
        def e(*of: int) -> str:
            return self.expression(of, d)

        def any_array() -> str:
            return self.expression(self.pick((self.size(),), (self.size(), self.size())), d)

        def product() -> str:
            n = self.size()
            return str(self.pick(f"({e(n)} @ {e(n)})", f"np.dot({e(n)}, {e(n)})", f"np.inner({e(n)}, {e(n)})"))

        n = self.size()
        return [product, product, lambda: f"{self.pick('np', 'pc.arrays')}.sum({any_array()})",
                lambda: f"({any_array()}).{self.pick('sum', 'mean', 'max', 'min')}()",
                lambda: f"pc.arrays.norm({any_array()})",
                lambda: f"np.trace({e(n, n)})", lambda: f"({e()} if {self.condition(d)} else {e()})",
                lambda: f"{self.pick('max', 'min')}({e()}, {e()})", lambda: f"float({e()})",
                lambda: f"len({self.named((n,)) or 'u'})", lambda: self.pick("A.shape[1]", "S.size", "u.ndim")]

    def _vector(self, shape: Shape, d: int) -> list[Any]:
        (n,) = shape

        def e(*of: int) -> str:
            return self.expression(of, d)

        def product() -> str:
            k = self.size()
            return f"({e(n, k)} @ {e(k)})" if self.chance(0.5) else f"({e(k)} @ {e(k, n)})"

        def reduced() -> str:
            k, how = self.size(), self.pick("sum", "mean", "max", "min")
            return f"np.{how}({e(k, n)}, axis=0)" if self.chance(0.5) else f"({e(n, k)}).{how}(axis={self.pick('1', '-1')})"

        return [product, product, reduced, lambda: f"np.diag({e(n, n)})", lambda: f"pc.arrays.softmax({e(n)})",
                lambda: f"np.{self.pick('zeros', 'ones')}_like({e(n)})", lambda: f"({e(n)}).copy()"]

    def _matrix(self, shape: Shape, d: int) -> list[Any]:
        n, m = shape

        def e(*of: int) -> str:
            return self.expression(of, d)

        def product() -> str:
            k = self.size()
            return f"({e(n, k)} @ {e(k, m)})"

        def kept() -> str:
            axis, how = self.pick(0, 1), self.pick("sum", "mean", "max")
            return f"({e(n, m)} - np.{how}({e(n, m)}, axis={axis}, keepdims=True))"

        square = [lambda: f"np.diag({e(n)})"] if n == m else []
        return [product, product, lambda: f"({e(m, n)}).T", lambda: f"np.transpose({e(m, n)})",
                lambda: f"np.outer({e(n)}, {e(m)})", lambda: f"({e(n, m)} {self.pick('+', '*')} {e(m)})",
                lambda: f"({e(n, m)} - {self.leaf((n,))}[:, None])", kept,
                lambda: f"pc.arrays.softmax({e(n, m)}, axis={self.pick('0', '1')})", *square]

    def condition(self, depth: int) -> str:
        simple = f"{self.expression((), depth - 1)} {self.pick('<', '>', '<=', '>=')} {self.expression((), depth - 1)}"
        if self.indices and self.chance(0.4):
            other = self.pick("0", "1", "2", *self.indices)
            simple = f"{self.pick(*self.indices)} {self.pick('<', '==', '!=', '>=')} {other}"
        if self.chance(0.2):
            return f"{self.pick('not', '')} ({simple}) {self.pick('and', 'or')} {self.condition(depth - 1)}"
        return simple

    # Statements

    def write(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, depth: int, most: int) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(indent, depth)

    def shape(self) -> Shape:
        return self.pick((), *self.shapes.values())  # type: ignore[no-any-return]

    def growth(self, indent: int) -> None:
        """Constants that grow, in a few steps or in too many."""
        first, step, used = self.pick(
            ("3", "g = g * g", "g"), ("(1, 2)", "g = (g, g)", "len(g)"), ("(1,)", "g = g + g", "sum(g)"),
            ("'a'", "g = g * 9", "len(g)"), ("2", "g = g ** 3", "g"), ("1", "g = -g * 10 ** 5", "g"))
        self.write(indent, f"g = {first}")
        for _ in range(self.pick(2, 3, 3, 40)):
            self.write(indent, step)
        self.write(indent, f"x09 = {used} / (1 + {used} * {used})")
        self.shapes["x09"] = ()

    def statement(self, indent: int, depth: int) -> None:
        if self.large and self.chance(self.large / 4):
            self.growth(indent)
        roll = self.random.random()
        if depth > 0 and roll < 0.17:
            self.loop(indent, depth)
        elif depth > 0 and roll < 0.3:
            kept = dict(self.shapes)
            self.write(indent, f"if {self.condition(2)}:")
            self.block(indent + 1, depth - 1, 2)
            if self.chance(0.6):
                self.shapes = dict(kept)
                self.write(indent, "else:")
                self.block(indent + 1, depth - 1, 2)
            self.shapes = kept
        elif roll < 0.36 and self.in_loop:
            self.write(indent, f"if {self.condition(1)}:")
            self.write(indent + 1, str(self.pick("break", "continue")))
        elif roll < 0.5:
            shape = self.pick((), (), (self.size(),), (self.size(),), (self.size(), self.size()))
            part = self.part(shape, changed=True)
            stored = f"{part} {self.pick('=', '=', '+=', '*=')} {self.small(self.pick(shape, ()))}"
            self.write(indent, stored if part else "pass")
        elif roll < 0.58:
            name = str(self.pick(*filter(self.may_change, self.shapes)))
            self.write(indent, f"{name} {self.pick('+=', '-=', '*=')} {self.small(self.pick(self.shapes[name], ()))}")
        elif roll < 0.64:
            names = [str(self.pick(*self.shapes)) for _ in range(2)]
            self.write(indent, f"{', '.join(names)} = {', '.join(self.small(self.shapes[name]) for name in names)}")
        else:
            shape = self.shape()
            target = str(self.pick(self.named(shape) or "x0", f"x{len(shape)}{self.random.randint(1, 3)}"))
            if self.shapes.get(target, shape) != shape:
                target = self.named(shape) or "x9"
            self.write(indent, f"{target} = {self.small(shape)}")
            self.shapes[target] = shape

    def small(self, shape: Shape) -> str:
        """An expression whose values are small, so that loops do not make them grow."""
        text = self.expression(shape, 2)
        return f"pc.arrays.sigmoid({text})" if self.chance(0.6) else f"0.25 * {text}" if self.chance(0.9) else text

    def loop(self, indent: int, depth: int) -> None:
        shapes, outer, before = dict(self.shapes), self.in_loop, dict(self.indices)
        name, n, form = "ijk"[min(2, len(self.indices))], self.size(), self.random.random()
        vectors = [name for name, shape in self.shapes.items() if len(shape) == 1]
        matrix = self.pick(*(name for name, shape in self.shapes.items() if len(shape) == 2))
        if form < 0.6:
            least = self.random.randint(0, n - 1)
            ranges = [(f"{n}", n), (f"{least}, {n}", n), (f"{n - 1}, -1, -1", n), (f"0, {n}, 2", n), ("2", 2),
                      (f"len({matrix})", self.shapes[matrix][0]), (f"{matrix}.shape[1]", self.shapes[matrix][1])]
            ranges += [(text, bound) for i, bound in self.indices.items() for text in (i, f"{i}, {bound}", f"{i} + 1")]
            bounds, below = self.pick(*ranges)
            self.write(indent, f"for {name} in range({bounds}):")
            self.indices[name] = below
        elif form < 0.68:
            self.write(indent, f"for y in {self.pick(*vectors)}{self.pick('', '.copy()')}:")
            self.shapes["y"] = ()
        elif form < 0.76:
            self.write(indent, f"for r{depth} in {matrix}.copy():")
            self.shapes[f"r{depth}"] = self.shapes[matrix][1:]
        elif form < 0.82:
            first, second = self.pick(*vectors), self.pick(*vectors)
            self.write(indent, f"for y, z in zip({first}.copy(), {second}.copy()):")
            self.shapes |= {"y": (), "z": ()}
        elif form < 0.88:
            self.write(indent, f"for {name}, r{depth} in enumerate({matrix}.copy()):")
            self.indices[name], self.shapes[f"r{depth}"] = self.shapes[matrix][0], self.shapes[matrix][1:]
        else:
            count = f"n{depth}"  # its own, or the loop around it would never end
            self.write(indent, f"{count} = 0")
            self.write(indent, f"while {count} < 3:")
            self.write(indent + 1, f"{count} = {count} + 1")
        self.in_loop = form < 0.88 or self.chance(0.5)
        self.block(indent + 1, depth - 1, 3)
        self.shapes, self.in_loop, self.indices = shapes, outer, before


def random_program(seed: int, large: float = 0.0) -> str:
    """The text of a function `made` of all parameters, below a helper that it may call."""
    writer = Writer.of(seed, large)
    parameters = ", ".join(writer.shapes)
    if writer.chance(0.4):
        writer.helper = True
        text = writer.pick(*HELPERS).format(writer.pick("pc.arrays.sigmoid", "np.tanh", "pc.arrays.relu", "np.cos"))
        writer.lines += ["@pc.program", *text.splitlines(), ""]
    writer.write(0, f"def made({parameters}):")
    writer.block(1, 2, 5)
    shapes = [(), *(writer.shape() for _ in range(2))]
    if writer.chance(0.15):
        writer.write(1, f"if {writer.condition(1)}:")
        writer.write(2, f"return {', '.join(writer.small(shape) for shape in shapes)}")
    names = [writer.named(shape) or writer.leaf(shape) for shape in shapes]
    writer.write(1, f"return {', '.join(names)}")
    return "\n".join(writer.lines) + "\n"


def function_of(text: str, seed: int) -> Any:
    """The function of a text, with a source that can be found."""
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType("made")
    vars(module).update(np=np, pc=pc)
    exec(compile(text, file, "exec"), vars(module))
    return vars(module)["made"]


def arguments(seed: int) -> dict[str, Any]:
    """Arguments of the types that the seed's program has: f, c, i and b are of Python where they are scalars."""
    writer, random = Writer.of(seed), np.random.default_rng(seed)
    return {name: _argument(random, shape, writer.types[name]) for name, shape in writer.shapes.items()}


def _argument(random: np.random.Generator, shape: Shape, kind: str) -> Any:
    numbers = random.uniform(-1, 1, shape)
    if kind in "ict":
        whole = random.integers(-2, 4, shape)
        if shape:
            return whole if kind == "i" else whole.tolist()
        return int(whole) if kind == "c" else np.int64(whole)
    if kind == "b":
        return numbers > 0 if shape else bool(numbers > 0)
    if kind == "l":
        return numbers.tolist()
    return numbers.astype(np.float32) if kind == "4" else numbers if shape else float(numbers)
