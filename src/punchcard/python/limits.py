"""The limits of what the compilers compute: how large a value may be, and how much work all values of a program may take.

Everything that is known when a program is compiled goes through here before it is made: constants of a file, operators on
constants, arrays of constants, and the run in NumPy. So a text of a few lines cannot fill the memory, or keep a compiler
busy for hours.

    limits = Limits()                                     # of one program
    limits.combined("**", operator.pow, 10, 400)          # Refusal: ... has at most 1,000 bits
    limits.make(10**12, "np.zeros")                       # Refusal: ... has at most 1,048,576 entries

A `Refusal` has no place: the caller knows the node of the source, and puts a caret there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from punchcard.budget import require
from punchcard.errors import SizeError, shortened

MOST_BITS = 1000
"""Of an integer. A float holds each of them, and Python writes each in decimal, whatever limit it has for that."""
MOST_ENTRIES = 1 << 20
"""Of an array or a text."""
MOST_ITEMS = 1 << 18
"""Of a list, with all that is inside it."""
MOST_NESTED = 64
"""Lists inside each other."""
MOST_WORK = 1 << 29
"""Of one program. A unit is about 10 ns: an entry that is computed."""
MOST_STATEMENTS, MOST_RUN_WORK = 2_000_000, 1 << 32
"""Of the run in NumPy that shows how large values get: what it executes, and the entries that this computes."""
STEP, ITEM = 512, 8
"""The work of compiling an expression, and that of an item of a list."""
PRODUCTS = 16
"""Products of a matrix product that take the time of one entry."""
BYTES = 8
MANY = (f"a list of a program has at most {MOST_ITEMS:,} items, those inside counted, and a text at most {MOST_ENTRIES:,} "
        "characters")
LARGE = f"an integer of a program has at most {MOST_BITS:,} bits, about {MOST_BITS * 3 // 10} digits"

Value = TypeVar("Value")


class Refusal(Exception):
    """An operation that cannot be done, with a message; the caller adds the place in the source."""

    def __init__(self, message: str, instead: str = "") -> None:
        super().__init__(message)
        self.message, self.instead = message, instead


class Limits:
    """What one program has computed so far: the work, and the entries that may still be in memory."""

    def __init__(self, most_work: int | None = None) -> None:
        self.most_work, self.work, self.entries = most_work or MOST_WORK, 0, 0

    def spend(self, work: int = STEP) -> None:
        """Refuse to compute for longer."""
        self.work += work
        if self.work > self.most_work:
            raise Refusal("the program computes too much before it runs: loops over constants are carried out when it is "
                          "compiled", "compute less with constants, or give them as arguments")

    def make(self, entries: int, what: str) -> None:
        """Refuse an array of so many entries, before it is made."""
        check_entries(entries, what)
        self.entries += entries
        try:
            require(self.entries * BYTES, f"{what} of {entries:,} entries, with the constants before it,")
        except SizeError as error:
            raise Refusal(str(error)) from None
        self.spend(entries)

    def multiply(self, rows: int, inner: int, columns: int) -> None:
        """The work of a matrix product."""
        self.spend(rows * inner * columns // PRODUCTS)

    def known(self, value: Value, what: str = "") -> Value:
        """A value that is known already, where it is not too large."""
        count, text = 0, what or shortened(value)
        for entries, bits, depth in _parts(value):
            count += entries
            if bits > MOST_BITS:
                raise Refusal(f"{text}: {LARGE}", "use a smaller one")
            if depth > MOST_NESTED:
                raise Refusal(f"{text}: lists of a program have at most {MOST_NESTED} levels", "use a smaller one")
            if count > (MOST_ITEMS if isinstance(value, list | tuple | range) else MOST_ENTRIES):
                raise Refusal(f"{text}: {MANY}", "use a smaller one")
        self.spend(ITEM * count)
        return value

    def combined(self, sign: str, compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        """An operator on known values; what would be too large is refused before it is computed."""
        self.spend()
        what = f"{shortened(left)} {sign} {shortened(right)}"
        if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
            self._arrays(sign, np.shape(left), np.shape(right), what)
            return compute(left, right)
        if isinstance(left, int) and isinstance(right, int) and _least_bits(sign, left, right) > MOST_BITS:
            raise Refusal(f"{what}: {LARGE}", "compute with smaller numbers")
        if sign == "%" and isinstance(left, str | bytes):
            raise Refusal(f"{what}: no text is formatted when a program is compiled", "write the text out")
        for items, count in ((left, right), (right, left)):
            if sign == "*" and isinstance(items, list | tuple | str | bytes) and isinstance(count, int | np.integer) and (
                    len(items) * int(count) > (MOST_ENTRIES if isinstance(items, str | bytes) else MOST_ITEMS)):
                raise Refusal(f"{what}: {MANY}", "use a smaller one")
        return self.known(compute(left, right), what)

    def _arrays(self, sign: str, left: tuple[int, ...], right: tuple[int, ...], what: str) -> None:
        if sign == "@" and left and right:
            rows, columns = math.prod(left[:-1]), math.prod(right[:-2] + right[-1:]) if len(right) > 1 else 1
            self.make(rows * columns, what)
            self.multiply(rows, left[-1], columns)
            return
        try:
            shape = np.broadcast_shapes(left, right)
        except ValueError:
            return  # NumPy says what is wrong
        self.make(math.prod(shape), what)


def check_entries(entries: int, what: str) -> None:
    """Refuse an array that would have so many entries."""
    if entries > MOST_ENTRIES:
        count = f"{entries:,}" if entries < 10**30 else "10^30 or more"
        raise Refusal(f"{what} of {count} entries: an array of a program has at most {MOST_ENTRIES:,}", "use smaller sizes")


def _parts(value: object) -> Iterator[tuple[int, int, int]]:
    """The entries of a value and of all that is inside it, the bits of integers, and how deep it is.

    A list that is there twice counts twice, and an empty one as an entry. The depth is checked on the way in: a list
    that holds itself is refused too.
    """
    ahead = [iter((value,))]
    while ahead:
        for item in ahead[-1]:
            if isinstance(item, list | tuple):
                if set(map(type, item)) == {int}:
                    yield len(item), max(map(int.bit_length, item)), len(ahead)
                    continue
                yield int(not item), 0, len(ahead)
                ahead.append(iter(item))
                break
            yield _own_entries(item), item.bit_length() if isinstance(item, int) else 0, len(ahead) - 1
        else:
            ahead.pop()


def rounds_of(numbers: range) -> int:
    """How many numbers there are. Python's len is for those that fit a machine word."""
    return max(0, -(-(numbers.stop - numbers.start) // numbers.step))


def _own_entries(value: object) -> int:
    """The entries of a value itself, not of what is inside it."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    return len(value) if isinstance(value, str | bytes) else rounds_of(value) if isinstance(value, range) else 1


def _least_bits(sign: str, left: int, right: int) -> int:
    """Bits that a result has at least, without its value; it has at most twice as many."""
    one, two = left.bit_length(), right.bit_length()
    if sign == "*":
        return one + two - 1
    if sign == "<<":
        return one + right if left else 0
    return (one - 1) * right if sign == "**" else 0
