"""Rounds of a loop, counted within a small range.

Errors of a product grow with the machine's range, and every value stays within it, a counter's too. A counter that
starts at -T + 1 would make the range T for data that need 2. So rounds are counted as an odometer counts, digit by
digit, each from -2 to 1, or where the range is below 2 from -1 to 1.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from punchcard.errors import ProgramError

RADIX = 3
_CONSTANTS = {"one": 1.0, "zero": 0.0, "minus_one": -1.0, "minus_two": -2.0}
_STARTS = ("zero", "minus_one", "minus_two")


Variable = TypeVar("Variable")
"""What names a variable of the program."""


class ProgramWriter(Protocol[Variable]):
    """What a counter is written with: a `Builder`, or the assembler of a text."""

    @property
    def values(self) -> Container[str]: ...

    def scalar(self, name: str, value: float) -> Variable: ...

    def label(self, name: str) -> str: ...

    def call(self, function: str, *operands: Variable | str, into: Variable, goto: str | None = None,
             if_leq: Variable | None = None) -> object: ...


def radix_within(limit: float) -> int:
    """The radix of a counter whose digits stay within a range."""
    return RADIX if limit >= RADIX - 1 else 2


def declare_constants(p: ProgramWriter[Variable]) -> None:
    """The constants of every counter, declared once in a program that has some."""
    for name, value in _CONSTANTS.items():
        if name not in p.values:
            p.scalar(name, value)


class Counter(Generic[Variable]):
    """Makes a number of rounds: T - 1 in base 3 (or 2), digit i in the scalar `name` i with a minus.

    A digit that comes to 1 is set back to -2 (or -1), and the next one moves on.
    """

    def __init__(self, p: ProgramWriter[Variable], name: str, rounds: int, radix: int = RADIX) -> None:
        if rounds < 1:
            raise ProgramError(f"{rounds} rounds: a loop makes at least one")
        self.p, self.rounds, self.radix = p, rounds, radix
        self.digits: list[int] = []
        """The rounds that are left after the first, least digit first."""
        left = rounds - 1
        while left or not self.digits:
            left, digit = divmod(left, radix)
            self.digits.append(digit)
        declare_constants(p)
        self.places = [p.scalar(f"{name}{i}", 0.0 - digit) for i, digit in enumerate(self.digits)]

    @contextmanager
    def repeat(self, label: str) -> Iterator[None]:
        """What is written in this block is done in every round; `label` names its first instruction."""
        self.p.label(label)
        yield
        self.again(label)

    def again(self, target: str) -> None:
        """Go back to `target` until all rounds are made."""
        for i, place in enumerate(self.places):
            self.p.call("add", place, "one", into=place, goto=target, if_leq=place)
            if i + 1 < len(self.places):
                self._set(place, self.radix - 1)

    def restart(self) -> None:
        """After the last round, set the digits back, for a loop inside a loop; the lower ones are there already."""
        last = len(self.digits) - 1
        for i, (place, digit) in enumerate(zip(self.places, self.digits, strict=True)):
            if i == last or digit != self.radix - 1:
                self._set(place, digit)

    def _set(self, place: Variable, digit: int) -> None:
        self.p.call("add", _STARTS[digit], "zero", into=place)

    @property
    def steps(self) -> int:
        """Instructions that `again` executes in all rounds: a digit counts once for each carry of the one below it."""
        made, counts = 0, self.rounds
        for i, digit in enumerate(self.digits):
            made += counts
            counts = 0 if counts < digit + 1 else 1 + (counts - digit - 1) // self.radix
            made += counts if i + 1 < len(self.digits) else 0
        return made
