"""What the compiler knows of a value: its kind, and for numbers an interval that it lies in.

Everything the compiler leaves out (a bounds check, a test that a comparison cannot overflow) rests on these intervals, so
they only ever err by being too wide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal, TypeAlias

from punchcard.python.intervals import Interval

Kind: TypeAlias = Literal["int", "bool", "number", "char", "str", "list", "results", "none", "mixed"]
NUMBERS = ("int", "bool", "number")
"""`number` is an int or a bool: all the same in a sum, but not when it is printed."""
WORDS = {"int": "an int", "bool": "a bool", "number": "an int or a bool", "char": "a character", "str": "a str",
         "list": "a list", "results": "several values", "none": "None", "mixed": "of different types"}


class Unreached(Exception):
    """Nothing is known yet of what is used here: no call has returned, no item was stored. The next round knows more."""


@dataclass(frozen=True)
class AbstractValue:
    """A value of the program; `unbound` where a name may have no value at all."""

    kind: Kind
    low: int = 0
    high: int = 0
    items: AbstractList | None = field(default=None, compare=False)
    results: tuple[AbstractValue, ...] = ()
    unbound: bool = False

    @property
    def constant(self) -> int | None:
        return self.low if self.kind in (*NUMBERS, "char") and self.low == self.high else None

    @property
    def interval(self) -> Interval[int]:
        return Interval(self.low, self.high)

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS

    @property
    def words(self) -> str:
        return "a tuple" if self.kind == "list" and self.list.is_tuple else WORDS[self.kind]

    @property
    def list(self) -> AbstractList:
        """What is known of the list that this is."""
        assert self.items is not None
        return self.items.root

    def between(self, interval: Interval[int]) -> AbstractValue:
        """The same kind of value in another interval."""
        return replace(self, low=interval.low, high=interval.high)

    def within(self, low: int, high: int) -> bool:
        return low <= self.low and self.high <= high


class AbstractList:
    """What is known of all lists that may be in one place: their items, and how many there are.

    Lists that meet in one variable are merged, so that a store through either is seen by both.
    """

    def __init__(self, item: AbstractValue | None, low: int, high: int, *, is_tuple: bool = False) -> None:
        self._same: AbstractList | None = None
        self.item, self.low, self.high, self.is_tuple = item, low, high, is_tuple
        self.updates = 0

    @property
    def root(self) -> AbstractList:
        found = self
        while found._same is not None:
            found = found._same
        return found

    @property
    def length(self) -> int | None:
        """How many items there are, where that is known."""
        root = self.root
        return root.low if root.low == root.high else None

    @property
    def count(self) -> AbstractValue:
        """How many items there may be."""
        return number(self.root.low, self.root.high)

    def merge(self, other: AbstractList) -> None:
        """Make the two one."""
        one, two = self.root, other.root
        if one is two:
            return
        one.low, one.high = min(one.low, two.low), max(one.high, two.high)
        one.is_tuple = one.is_tuple or two.is_tuple
        two._same = one
        if two.item is not None:
            one.item = two.item if one.item is None else join(one.item, two.item)
        one.updates += 1


def number(low: int, high: int | None = None) -> AbstractValue:
    return AbstractValue("int", low, low if high is None else high)


def truth(low: int = 0, high: int = 1) -> AbstractValue:
    return AbstractValue("bool", low, high)


NONE = AbstractValue("none")
CHAR = AbstractValue("char", 0, 127)
TEXT = AbstractValue("str")


def join(one: AbstractValue, two: AbstractValue) -> AbstractValue:
    """What both can be."""
    unbound = one.unbound or two.unbound
    if one.kind == two.kind == "list":
        if one.list.is_tuple != two.list.is_tuple:
            return AbstractValue("mixed", unbound=unbound)  # they are printed differently, and only one can be changed
        one.list.merge(two.list)
        return replace(one, unbound=unbound)
    if {one.kind, two.kind} == {"list", "results"}:
        one, two = spread(one), spread(two)
    if one.kind == two.kind == "results":
        if len(one.results) != len(two.results):
            return AbstractValue("mixed", unbound=unbound)
        return AbstractValue("results", results=tuple(map(join, one.results, two.results)), unbound=unbound)
    kind: Kind = one.kind
    if one.kind != two.kind:
        kind = "number" if one.is_number and two.is_number else "mixed"
    return AbstractValue(kind, min(one.low, two.low), max(one.high, two.high), unbound=unbound)


def spread(value: AbstractValue) -> AbstractValue:
    """A tuple of known length as several values, which is how a function returns one that it writes out."""
    if value.kind != "list" or not value.list.is_tuple or value.list.length is None or value.list.item is None:
        return value
    return AbstractValue("results", results=(value.list.item,) * value.list.length, unbound=value.unbound)


def join_all(values: Iterable[AbstractValue]) -> AbstractValue:
    return reduce(join, values)


Names: TypeAlias = dict[str, AbstractValue]


def join_names(one: Names | None, two: Names | None) -> Names | None:
    """What names may hold where two ways meet; None is a way that nothing comes along."""
    if one is None or two is None:
        return dict(two) if one is None and two is not None else one
    joined = {name: replace(value, unbound=True) for name, value in {**one, **two}.items()}
    for name, here in one.items():
        if name in two:
            there = two[name]
            joined[name] = here if here == there and here.items is there.items else join(here, there)
    return joined
