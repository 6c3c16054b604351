"""Random expressions for the calculator, with an interval that their value is in, by mpmath's arithmetic of intervals."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpmath import iv

LARGEST = 1e6
BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
ARITHMETIC: Mapping[str, Callable[[Any], Any]] = {
    "(-{})": operator.neg, "({})%": lambda x: x / 100, "sqrt({})": iv.sqrt, "inverse({})": lambda x: 1 / x,
    **{f"({{}})^{n}": operator.methodcaller("__pow__", n) for n in (-2, -1, 2, 3, 4)}}
FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "exp({})": iv.exp, "log({})": iv.log, "sin({})": iv.sin, "cos({})": iv.cos,
    "tanh({})": lambda x: 1 - 2 / (1 + iv.exp(2 * x))}
DOMAINS = {"sqrt({})": (0.0, LARGEST), "log({})": (0.0, LARGEST), "exp({})": (-20.0, 12.0), "sin({})": (-500.0, 500.0),
           "cos({})": (-500.0, 500.0), "tanh({})": (-300.0, 300.0)}
AWAY_FROM_ZERO = ("sqrt({})", "inverse({})", "log({})", *(f"({{}})^{n}" for n in (-2, -1)))


class NotDefined(Exception):
    """The random expression divides by nearly 0, or leaves a domain."""


@dataclass(frozen=True)
class Case:
    """A text and the ends of an interval that holds its value."""

    text: str
    low: float
    high: float


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
                text, value = self._grow(self.random.randint(1, 4))
            except NotDefined:
                continue
            case = Case(text, float(value.a), float(value.b))
            if any(name in text for name in self.values) and case.high - case.low < 1e-13 * abs(case.low):
                return case

    def _grow(self, depth: int) -> tuple[str, Any]:
        pick = self.random.random()
        if depth == 0 or pick < 0.1:
            return self._leaf()
        text, x = self._grow(depth - 1)
        if pick < 0.75:
            sign, (other, y) = self.random.choice("++--***//"), self._grow(depth - 1)
            if sign == "/":
                _check(y, away=True)
            return f"({text} {sign} {other})", _check(BINARY[sign](x, y))
        form, function = self.random.choice([*ARITHMETIC.items(), *(FUNCTIONS.items() if self.functions else ())])
        _check(x, *DOMAINS.get(form, (-LARGEST, LARGEST)), away=form in AWAY_FROM_ZERO)
        return form.format(text), _check(function(x))

    def _leaf(self) -> tuple[str, Any]:
        if self.random.random() < 0.25:
            text = f"{self.random.uniform(0.01, 20):.{self.random.randint(0, 4)}f}"
            return text, iv.mpf(text)
        name = self.random.choice(("a", "b", "c", "width", "t"))
        if name not in self.values:
            size = self.random.uniform(1, 10) * 10 ** self.random.uniform(-self.decades, self.decades)
            self.values[name] = self.random.choice((1, 1, -1)) * size
        return name, iv.mpf(self.values[name])


def _check(x: Any, low: float = -LARGEST, high: float = LARGEST, *, away: bool = False) -> Any:
    """The interval itself, if it is within these ends and, where it must, far enough from 0."""
    least = min(abs(float(x.a)), abs(float(x.b)))
    if not low < x.a <= x.b < high or (away and (x.a <= 0 <= x.b or least < 1e-6 or x.delta > 1e-10 * least)):
        raise NotDefined
    return x
