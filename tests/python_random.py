"""Random array programs over the subset, as text: expressions, nested loops, conditions, parts of arrays.

Values are kept small by clipping with a sigmoid or by halving, so that most programs stay in a range. What a program
may not say is made too, now and then: it must be refused by name, not run wrongly.
"""

from __future__ import annotations

import linecache
import types
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import punchcard as pc

N = 3
PARAMETERS = {"a": (), "b": (), "u": (N,), "v": (N,), "A": (N, N), "B": (N, N)}


@dataclass
class Writer:
    """Writes one program; `kinds` has the shape of each variable that is certain to have a value."""

    random: Random
    lines: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=lambda: {"a": "s", "b": "s", "u": "v", "v": "v", "A": "m", "B": "m"})
    indices: list[str] = field(default_factory=list)
    in_loop: bool = False

    def pick(self, *options: Any) -> Any:
        return options[self.random.randrange(len(options))]

    def name(self, kind: str) -> str:
        return str(self.pick(*(name for name, k in self.kinds.items() if k == kind)))

    def number(self) -> str:
        return str(self.pick("0.5", "-0.25", "1.0", "2", "-1", "0.125", "3"))

    def index(self) -> str:
        options = ["0", "1", "-1", str(N - 1), *self.indices, *self.indices]
        return str(self.pick(*options))

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind: s, v or m."""
        if depth <= 0 or self.random.random() < 0.15:
            return self.number() if kind == "s" and self.random.random() < 0.3 else self.name(kind)
        e = self.expression
        d = depth - 1
        common = [
            lambda: f"({e(kind, d)} {self.pick('+', '-', '*')} {e(kind, d)})",
            lambda: f"({e('s', d)} {self.pick('+', '-', '*')} {e(kind, d)})",
            lambda: f"({e(kind, d)} {self.pick('+', '-', '*')} {e('s', d)})",
            lambda: f"(-{e(kind, d)})",
            lambda: f"({e(kind, d)} / {self.pick('2.0', '4', '-0.5')})",
            lambda: f"pc.{self.pick('relu', 'abs', 'sigmoid')}({e(kind, d)})",
            lambda: f"np.{self.pick('maximum', 'minimum')}({e(kind, d)}, {e(self.pick(kind, 's'), d)})",
            lambda: f"({e(kind, d)}) ** {self.pick('2', '3')}",
            lambda: f"pc.where({e(kind, d)} {self.pick('<', '>=')} {e(kind, d)}, {e(kind, d)}, {e('s', d)})",
        ]
        own = {
            "s": [lambda: f"({e('v', d)} @ {e('v', d)})", lambda: f"{self.name('v')}[{self.index()}]",
                  lambda: f"{self.name('m')}[{self.index()}, {self.index()}]",
                  lambda: f"pc.sum({e(self.pick('v', 'm'), d)})",
                  lambda: f"({e('s', d)} if {self.condition(d)} else {e('s', d)})", lambda: f"({e('v', d)}).max()",
                  lambda: str(self.pick(*self.indices)) if self.indices else "0.5"],
            "v": [lambda: f"({e('m', d)} @ {e('v', d)})", lambda: f"({e('v', d)} @ {e('m', d)})",
                  lambda: f"{self.name('m')}[{self.index()}]", lambda: f"{self.name('m')}[:, {self.index()}]",
                  lambda: f"np.sum({e('m', d)}, axis={self.pick('0', '1')})", lambda: f"pc.ones({N})"],
            "m": [lambda: f"({e('m', d)} @ {e('m', d)})", lambda: f"({e('m', d)}).T",
                  lambda: f"np.outer({e('v', d)}, {e('v', d)})",
                  lambda: f"({e('m', d)} + {e('v', d)})", lambda: f"({e('v', d)} * {e('m', d)})", lambda: f"pc.eye({N})"],
        }[kind]
        return str(self.pick(*common, *own, *own)())

    def condition(self, depth: int) -> str:
        simple = f"{self.expression('s', depth - 1)} {self.pick('<', '>', '<=', '>=')} {self.expression('s', depth - 1)}"
        if self.indices and self.random.random() < 0.4:
            simple = f"{self.pick(*self.indices)} {self.pick('<', '==', '!=', '>=')} {self.pick('0', '1', '2')}"
        if self.random.random() < 0.2:
            return f"{self.pick('not', '')} ({simple}) {self.pick('and', 'or')} {self.condition(depth - 1)}"
        return simple

    def write(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, depth: int, most: int) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(indent, depth)

    def statement(self, indent: int, depth: int) -> None:
        roll = self.random.random()
        kind = str(self.pick("s", "v", "m"))
        if depth > 0 and roll < 0.15:
            self.loop(indent, depth)
        elif depth > 0 and roll < 0.3:
            kept = dict(self.kinds)
            self.write(indent, f"if {self.condition(2)}:")
            self.block(indent + 1, depth - 1, 2)
            if self.random.random() < 0.6:
                self.kinds = dict(kept)
                self.write(indent, "else:")
                self.block(indent + 1, depth - 1, 2)
            self.kinds = kept
        elif roll < 0.36 and self.in_loop:
            self.write(indent, f"if {self.condition(1)}:")
            self.write(indent + 1, str(self.pick("break", "continue")))
        elif roll < 0.46:
            part, value = self.pick((f"{self.name('v')}[{self.index()}]", "s"), (f"{self.name('m')}[{self.index()}]", "v"),
                                    (f"{self.name('m')}[:, {self.index()}]", "v"),
                                    (f"{self.name('m')}[{self.index()}, {self.index()}]", "s"))
            self.write(indent, f"{part} {self.pick('=', '=', '+=')} {self.small(value)}")
        elif roll < 0.54:
            self.write(indent, f"{self.name(kind)} {self.pick('+=', '-=', '*=')} {self.small('s')}")
        elif roll < 0.6:
            other = str(self.pick("s", "v"))
            self.write(indent, f"{self.name(other)}, {self.name(kind)} = {self.small(other)}, {self.small(kind)}")
        else:
            target = str(self.pick(self.name(kind), f"{kind}{self.random.randint(1, 2)}"))
            self.write(indent, f"{target} = {self.small(kind)}")
            self.kinds[target] = kind

    def small(self, kind: str) -> str:
        """An expression whose values are small, so that loops do not make them grow."""
        text = self.expression(kind, 2)
        return f"pc.sigmoid({text})" if self.random.random() < 0.6 else f"0.25 * {text}"

    def loop(self, indent: int, depth: int) -> None:
        kept, outer, before = dict(self.kinds), self.in_loop, list(self.indices)
        name = "ijk"[min(2, len(self.indices))]
        computed = [bound for i in self.indices for bound in (i, f"{i}, {N}")]
        bounds = self.pick(f"{N}", "1, 3", "2", f"{N - 1}, -1, -1", *computed)
        form = self.random.random()
        if form < 0.7:
            self.write(indent, f"for {name} in range({bounds}):")
            self.indices = [*before, name]
        elif form < 0.85:
            self.write(indent, f"for x in {self.name('v')}:")
            self.kinds["x"] = "s"
        else:
            self.write(indent, "n = 0")
            self.write(indent, "while n < 3:")
            self.write(indent + 1, "n = n + 1")
        self.in_loop = form < 0.85 or self.random.random() < 0.5
        self.block(indent + 1, depth - 1, 3)
        self.kinds, self.in_loop, self.indices = kept, outer, before


def random_program(seed: int) -> str:
    """The text of a function `made` of all parameters."""
    writer = Writer(Random(seed))
    writer.write(0, f"def made({', '.join(PARAMETERS)}):")
    writer.block(1, 2, 6)
    writer.write(1, f"return {', '.join(writer.name(kind) for kind in ('s', 'v', 'm'))}")
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
    random = np.random.default_rng(seed)
    return {name: random.uniform(-1, 1, shape) if shape else float(random.uniform(-1, 1)) for name,
            shape in PARAMETERS.items()}
