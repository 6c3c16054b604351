"""Random expressions for the calculator, with their value and its rounding by plain float64 arithmetic."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

UNIT = 2.0**-53
LARGEST = 1e6


class NotDefined(Exception):
    """The random expression divides by nearly 0, or leaves a domain."""


@dataclass(frozen=True)
class Case:
    """A text, its value in float64, and how much the rounding of float64 may have changed it, to first order."""

    text: str
    value: float
    slack: float


@dataclass
class Expressions:
    """Grows random expressions over variables whose values it draws; `functions` adds exp, log, sin, cos and tanh."""

    seed: int
    functions: bool = False
    decades: float = 1.5
    values: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def next(self) -> Case:
        """An expression that is defined, and whose value is not lost to cancellation."""
        while True:
            self.values = {}
            try:
                case = self._grow(self.random.randint(1, 4))
            except NotDefined:
                continue
            if any(name in case.text for name in self.values) and case.slack < 1e-13 * abs(case.value):
                return case

    def _grow(self, depth: int) -> Case:
        pick = self.random.random()
        if depth == 0 or pick < 0.1:
            return self._leaf()
        if pick < 0.75:
            return self._binary(self.random.choice("++--***//"), self._grow(depth - 1), self._grow(depth - 1))
        operand = self._grow(depth - 1)
        names = ["neg", "%", "^", "sqrt", "inverse"] + ["exp", "log", "sin", "cos", "tanh"] * self.functions
        return self._unary(self.random.choice(names), operand)

    def _leaf(self) -> Case:
        if self.random.random() < 0.25:
            text = f"{self.random.uniform(0.01, 20):.{self.random.randint(0, 4)}f}"
            return Case(text, float(text), UNIT * abs(float(text)))
        name = self.random.choice(("a", "b", "c", "width", "t"))
        if name not in self.values:
            size = self.random.uniform(1, 10) * 10 ** self.random.uniform(-self.decades, self.decades)
            self.values[name] = self.random.choice((1, 1, -1)) * size
        return Case(name, self.values[name], 0.0)

    def _binary(self, operator: str, a: Case, b: Case) -> Case:
        text = f"({a.text} {operator} {b.text})"
        if operator == "+":
            return _case(text, a.value + b.value, a.slack + b.slack)
        if operator == "-":
            return _case(text, a.value - b.value, a.slack + b.slack)
        if operator == "*":
            return _case(text, a.value * b.value, abs(a.value) * b.slack + abs(b.value) * a.slack)
        _far_from_zero(b)
        value = a.value / b.value
        return _case(text, value, (a.slack + abs(value) * b.slack) / abs(b.value))

    def _unary(self, name: str, a: Case) -> Case:
        x = a.value
        if name == "neg":
            return _case(f"(-{a.text})", -x, a.slack)
        if name == "%":
            return _case(f"({a.text})%", x / 100, a.slack / 100)
        if name == "^":
            exponent = self.random.choice((-2, -1, 2, 3, 4))
            _far_from_zero(a)
            value = _power(x, exponent)
            return _case(f"({a.text})^{exponent}", value, abs(exponent * value / x) * a.slack + 8 * UNIT * abs(value))
        if name in ("sqrt", "inverse", "log"):
            _far_from_zero(a)
        if (name in ("sqrt", "log") and x < 0) or (name == "exp" and not -20 < x < 12) or abs(x) > 500 * (name in "sincos"):
            raise NotDefined
        value, slope = {
            "sqrt": lambda: (math.sqrt(x), 0.5 / math.sqrt(x)), "inverse": lambda: (1 / x, 1 / x**2),
            "exp": lambda: (math.exp(x), math.exp(x)), "log": lambda: (math.log(x), 1 / x),
            "sin": lambda: (math.sin(x), 1.0), "cos": lambda: (math.cos(x), 1.0), "tanh": lambda: (math.tanh(x), 1.0),
        }[name]()
        return _case(f"{name}({a.text})", value, slope * a.slack)


def _power(x: float, exponent: int) -> float:
    try:
        return float(x**exponent)
    except OverflowError:
        raise NotDefined from None


def _case(text: str, value: float, slack: float) -> Case:
    if not abs(value) < LARGEST:
        raise NotDefined
    return Case(text, value, slack + 2 * UNIT * abs(value))


def _far_from_zero(a: Case) -> None:
    if abs(a.value) < 1e-6 or a.slack > 1e-10 * abs(a.value):
        raise NotDefined
