"""What the hidden units of front layers must compute: every case, with columns before and what must be in them after.

Each layer's units are tried on all cases of what they read. The heads bring exactly what is in another column, so that
these cases together are all texts: see `claims`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from punchcard.card.layout import Layout
from punchcard.transformer.expression import Array

WIDE = 64
"""Digits at the beginning of a text that are tried: of more, the share of other tokens is smaller still."""


@dataclass(frozen=True)
class Cases:
    """Columns, one a row, and the names of what must be in them after the units of a layer, as it is there."""

    about: str
    layer: int
    columns: Array
    after: Array
    names: tuple[str, ...]


class _Table:
    """Cases that are collected one by one: values by name, before and after."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.before, self.after = list[Array](), list[Array]()

    def add(self, before: dict[str, object], after: dict[str, object]) -> None:
        start = self._column({"one": 1.0, **before})
        self.before.append(start)
        self.after.append(self._column(after))

    def _column(self, values: dict[str, object]) -> Array:
        found = np.zeros(self.layout.width)
        for name, value in values.items():
            found[self.layout.rows(name)] = value
        return found

    def done(self, about: str, layer: int, *names: str) -> Cases:
        return Cases(about, layer, np.array(self.before), np.array(self.after), names)


def all_cases(layout: Layout, digits: int) -> Iterator[Cases]:
    """The cases of all layers."""
    makers: tuple[Callable[[Layout, int], Cases], ...] = (shares, openings, numbers, pairs, carries, signs, answers, sayings)
    for make in makers:
        yield make(layout, digits)


def _upto(count: int, size: int) -> Array:
    """1 for the first `count` of `size`."""
    return np.asarray((np.arange(size) < count).astype(float))


def _one_hot(place: int, size: int) -> Array:
    return np.asarray((np.arange(size) == place).astype(float))


def shares(layout: Layout, digits: int) -> Cases:
    """After k digits at the beginning of a text, the share of other tokens is 1 / (k + 1)."""
    table = _Table(layout)
    for k in range(WIDE):
        table.add({"others": 1 / (k + 1)}, {"may_have": _upto(k, digits + 1)})
    return table.done("lengths at the beginning of a text", 0, "may_have")


def openings(layout: Layout, digits: int) -> Cases:
    """A sum may begin after a blank with a word before it, and after a token that says so."""
    table = _Table(layout)
    for blank, led, digit, only in product((0, 1), repeat=4):
        opened = blank * led + digit * only
        table.add({"blank": blank, "led": led, "is_digit": digit, "only_digits": only}, {"open": opened})
    return table.done("where a sum may begin", 0, "open")


def numbers(layout: Layout, digits: int) -> Cases:
    """The number before a column, for all of what the tokens before it are."""
    table, draw, n = _Table(layout), np.random.default_rng(0), digits
    for flags in product((0, 1), repeat=n + 1):
        run = next((i for i, flag in enumerate(flags) if not flag), n + 1)
        for began, may, own in product((0, 1), range(n + 2), (0, 1)):
            counted = may if began and may <= n else 0
            length = _upto(run if run <= n else counted, n)
            back = draw.integers(0, 10, n)
            written = _one_hot(run if own else -1, n + 1)
            table.add({"back": back, "is_back": flags, "began": began, "may_have": _upto(may, n + 1), "is_digit": own},
                      {"length": length, "number": length * back, "written": written})
    return table.done("numbers and their lengths", 1, "length", "number", "written")


def pairs(layout: Layout, digits: int) -> Cases:
    """Every two digits, at every place; the `+` of a sum; the digits of an answer from their first on."""
    table, n = _Table(layout), digits
    for a, b in product(range(10), repeat=2):
        total = np.full(n, a + b)
        table.add({"number": np.full(n, a), "other": np.full(n, b)},
                  {"makes_ten": total >= 10, "makes_nine": total >= 9, "makes_one": total >= 1})
    for plus, opened, length in product((0, 1), repeat=3):
        table.add({"plus": plus, "opened": opened, "length": _upto(length, n)}, {"is_first": plus * opened * length})
    for last, shift in product(range(n + 1), range(10)):
        number = (np.arange(n) + shift) % 10
        answer = [*(number[last - i - 1] for i in range(last)), 7, *[0] * (n - last)]
        made = number >= 10, number >= 9, number >= 1
        table.add({"number": number, "written": _one_hot(last, n + 1), "digit": 7},
                  {"answer": answer, "makes_ten": made[0], "makes_nine": made[1], "makes_one": made[2]})
    return table.done("pairs of digits", 2, "makes_ten", "makes_nine", "makes_one", "is_first", "answer")


def carries(layout: Layout, digits: int) -> Cases:
    """Every pattern of digits that make 0, less than 9, 9, and 10 or more: 4^digits sums, with their carries."""
    n = digits
    totals = np.array(list(product((0, 5, 9, 14), repeat=n)), dtype=np.int64)
    found = [np.zeros((len(totals), layout.width)) for _ in range(2)]

    def put(which: int, name: str, values: Array | float) -> None:
        found[which][:, layout.rows(name)] = values

    first = np.minimum(totals, 9)
    for name, values in (("one", 1.0), ("number", first), ("other", totals - first), ("makes_ten", totals >= 10),
                         ("makes_nine", totals >= 9), ("makes_one", totals >= 1)):
        put(0, name, np.asarray(values, dtype=float))
    whole = totals @ 10 ** np.arange(n)
    put(1, "sum", (whole[:, None] // 10 ** np.arange(n + 1) % 10).astype(float))
    put(1, "reaches", (whole[:, None] >= 10 ** np.arange(1, n + 1)).astype(float))
    return Cases("all patterns of carries", 3, found[0], found[1], ("sum", "reaches"))


def signs(layout: Layout, digits: int) -> Cases:
    """The `=` of a sum."""
    table = _Table(layout)
    for equals, first, length in product((0, 1), repeat=3):
        table.add({"equals": equals, "first": first, "length": _upto(length, digits)}, {"is_sum": equals * first * length})
    return table.done("the `=` of a sum", 3, "is_sum")


def answers(layout: Layout, digits: int) -> Cases:
    """For sums of every length, after every number of written digits: the next digit, and whether one is wrong."""
    table, n = _Table(layout), digits
    for top in range(n + 1):
        for count, shift in product(range(n + 2), range(10)):
            due = np.where(np.arange(n + 1) <= top, (3 * np.arange(n + 1) + shift) % 10, 0)
            answer = [int(due[top - i]) if i <= top else 0 for i in range(n + 1)]
            written = np.where(np.arange(n + 1) < count, answer, 0)
            known = {"due": due, "due_reaches": _upto(top, n), "equals": not count, "written": _one_hot(count - 1, n + 1)}
            follows = due[top - count] + 1 if count <= top else 11 if count == top + 1 else 0
            table.add(known | {"answer": written}, {"next": follows})
            for i in range(min(count, top + 1)):
                changed = written.copy()
                changed[i] = (changed[i] + 1 + shift % 9) % 10
                table.add(known | {"answer": changed}, {"next": follows, "wrong": 2 * abs(changed[i] - written[i]) - 1})
    return table.done("next digits", 4, "next", "wrong")


def sayings(layout: Layout, digits: int) -> Cases:
    """The answer, for every next digit; nothing where none is due, or what is written is wrong."""
    table = _Table(layout)
    for follows, due, wrong in product(range(12), (0, 1), (0, 1, 3, 17)):
        says = follows if due and not wrong else 0
        table.add({"next": follows, "is_due": due, "wrong": wrong},
                  {"said": _one_hot(says - 1, 10), "ended": says == 11})
    return table.done("what is said", 5, "said", "ended")
