"""Words: expressions over numbers of a fixed number of bits, as values.

A word of `size` bits is a number from 0 to 2^size - 1; all arithmetic is modulo 2^size. A truth is a word of one bit. Equal
words are one object, so `==` compares expressions; `x.equals(y)` is the truth that two words are the same number.

    op                      arguments       data                      the number
    constant                                the number
    variable                                a name
    add subtract multiply   x, y
    quotient remainder      x, y                                      without signs; all ones and x where y is 0
    and_ or_ xor not_       words                                     bit by bit
    shift_left              x, amount                                 zeros come in; the amount is below the size
    shift_right             x, amount       signed                    zeros come in, or the highest bit where signed
    equal                   x, y                                      1 where they are the same
    less                    x, y            signed                    1 where x < y
    choose                  truth, yes, no
    bits                    x               first                     `size` bits of x from `first` on
    join                    low, high                                 one above the other
    extend                  x               signed                    zeros above, or the highest bit where signed
    sum                     words           coefficients, constant    the constant, and coefficients times words
    logic                   words           table                     bit by bit: bit j of the place in it is of word j

`sum` and `logic` are made of the others where a renderer has no own way (`renderer`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import and_, or_
from threading import Lock
from typing import TypeAlias, TypeVar
from weakref import WeakValueDictionary

Number: TypeAlias = "Word | int"
Value = TypeVar("Value")


def as_signed(number: int, bits: int) -> int:
    """The number that agrees with another in its lowest bits, the highest of which is its sign: two's complement."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


class Word:
    """One operation on words. `width`: all bits from this one on are known to be 0."""

    __slots__ = ("__weakref__", "arguments", "data", "op", "size", "width")

    op: str
    arguments: tuple[Word, ...]
    size: int
    data: Hashable
    width: int

    def __new__(
        cls, op: str, arguments: tuple[Word, ...], size: int, data: Hashable = None, width: int | None = None,
    ) -> Word:
        simpler = _simpler(op, arguments, size, data) if arguments else None
        if simpler is not None:
            return simpler
        known = _width(op, arguments, size, data) if width is None else min(width, size)
        name = op, arguments, size, data, known
        with _LOCK:
            found = _WORDS.get(name)
            if found is None:
                _WORDS[name] = found = cls._made(op, arguments, size, data, known)
        return found

    @classmethod
    def _made(cls, op: str, arguments: tuple[Word, ...], size: int, data: Hashable, width: int) -> Word:
        made = super().__new__(cls)
        made.op, made.arguments, made.size, made.data, made.width = op, arguments, size, data, width
        return made

    def __repr__(self) -> str:
        if not self.arguments:
            return str(self.data)
        data = "" if self.data is None else f"[{self.data}]"
        return f"{self.op}{data}({', '.join(map(repr, self.arguments))})"

    @property
    def value(self) -> int | None:
        """The number of a constant, or None."""
        return self.data if self.op == "constant" else None  # type: ignore[return-value]

    def _with(self, op: str, other: Number, size: int | None = None, data: Hashable = None) -> Word:
        """An operation on this word and another of its size, or a number."""
        if isinstance(other, int):
            other = constant(other, self.size)
        if other.size != self.size:
            raise ValueError(f"{op} of words of {self.size} and {other.size} bits: {self}, {other}")
        return Word(op, (self, other), size or self.size, data)

    def __add__(self, other: Number) -> Word:
        return self._with("add", other)

    def __sub__(self, other: Number) -> Word:
        return self._with("subtract", other)

    def __neg__(self) -> Word:
        return constant(0, self.size) - self

    def __mul__(self, other: Number) -> Word:
        return self._with("multiply", other)

    def __and__(self, other: Number) -> Word:
        return self._with("and_", other)

    def __or__(self, other: Number) -> Word:
        return self._with("or_", other)

    def __xor__(self, other: Number) -> Word:
        return self._with("xor", other)

    def __invert__(self) -> Word:
        return Word("not_", (self,), self.size)

    def __lshift__(self, amount: Number) -> Word:
        """Zeros come in; 0 where the amount is the size or more."""
        within, by = self._amount(amount)
        return within.choose(self._with("shift_left", by), 0)

    def __rshift__(self, amount: Number) -> Word:
        """Zeros come in; 0 where the amount is the size or more."""
        within, by = self._amount(amount)
        return within.choose(self._with("shift_right", by, data=False), 0)

    def signed_shift(self, amount: Number) -> Word:
        """To the right. The highest bit comes in; it is in all places where the amount is the size or more."""
        within, by = self._amount(amount)
        return self._with("shift_right", within.choose(by, self.size - 1), data=True)

    def _amount(self, amount: Number) -> tuple[Word, Word]:
        """Whether an amount is below the size, and an amount that always is."""
        by = constant(amount, self.size) if isinstance(amount, int) else amount
        known = (by.value if by.value is not None else (1 << by.width) - 1) < self.size
        within = TRUE if known else FALSE if by.value is not None else by.less(self.size)
        return within, within.choose(by, 0)

    def divide(self, divisor: Word, signed: bool = False) -> Word:
        """Rounded towards 0. By 0: all ones. With signs, the least number by -1 is itself."""
        if not signed:
            return self._with("quotient", divisor)
        size = self.absolute().divide(divisor.absolute())
        turned = (self.is_negative ^ divisor.is_negative).choose(-size, size)
        return divisor.equals(0).choose(constant(-1, self.size), turned)

    def remainder(self, divisor: Word, signed: bool = False) -> Word:
        """Of the division; with the sign of the dividend. By 0: the dividend."""
        if not signed:
            return self._with("remainder", divisor)
        size = self.absolute().remainder(divisor.absolute())
        return divisor.equals(0).choose(self, self.is_negative.choose(-size, size))

    @property
    def is_negative(self) -> Word:
        """The highest bit."""
        return self[self.size - 1]

    def absolute(self) -> Word:
        """A signed number without its sign."""
        return self.is_negative.choose(-self, self)

    def equals(self, other: Number) -> Word:
        return self._with("equal", other, 1)

    def differs(self, other: Number) -> Word:
        return ~self.equals(other)

    def less(self, other: Number, signed: bool = False) -> Word:
        """Whether it is less. All words are less than a number, without sign, that has more bits than they do."""
        if isinstance(other, int) and not signed and other >> self.size:
            if other < 0:
                raise ValueError(f"{other} is below 0, and words without signs are not: {self}")
            return TRUE
        return self._with("less", other, 1, signed)

    def at_least(self, other: Number, signed: bool = False) -> Word:
        return ~self.less(other, signed)

    def choose(self, yes: Word, no: Number) -> Word:
        """For a truth: one word where it is 1, and the other where it is 0."""
        return Word("choose", (self, yes, constant(no, yes.size) if isinstance(no, int) else no), yes.size)

    def __getitem__(self, places: int | slice) -> Word:
        """One bit, or the bits of a slice."""
        if isinstance(places, int):
            places = slice(places, places + 1)
        first, stop = places.start or 0, self.size if places.stop is None else places.stop
        if not 0 <= first < stop <= self.size:
            raise IndexError(f"bits {first} to {stop} of a word of {self.size}: {self}")
        return Word("bits", (self,), stop - first, first)

    __iter__ = None  # a word is not a sequence

    def extend(self, size: int, signed: bool = False) -> Word:
        """The same number in more bits."""
        return self if size == self.size else Word("extend", (self,), size, signed)


_WORDS: WeakValueDictionary[tuple[object, ...], Word] = WeakValueDictionary()
_LOCK = Lock()


class Numbering(dict[Word, int]):
    """Numbers words in the order in which they are first asked for: an order that does not depend on other work."""

    def __missing__(self, word: Word) -> int:
        self[word] = number = len(self)
        return number


@lru_cache(1 << 12)
def constant(value: int, size: int) -> Word:
    return Word("constant", (), size, value % (1 << size))


def variable(name: Hashable, size: int, width: int | None = None) -> Word:
    """A number from elsewhere. `width`: only so many of its bits can be set; default: all."""
    return Word("variable", (), size, name, width)


def all_of(*truths: Word) -> Word:
    return reduce(and_, truths, TRUE)


def any_of(*truths: Word) -> Word:
    return reduce(or_, truths, FALSE)


def join(low: Word, *more: Word) -> Word:
    """Words one above the other, the lowest first."""
    return reduce(lambda below, word: Word("join", (below, word), below.size + word.size), more, low)


def select(index: Word, parts: Sequence[Word]) -> Word:
    """One of several words by its number, modulo their count, which is a power of 2."""
    for place in range(index.size):
        if len(parts) == 1:
            break
        parts = [index[place].choose(odd, even) for even, odd in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def sum_of(terms: Iterable[tuple[int, Word]], number: int, size: int) -> Word:
    """Coefficients times words, and a number."""
    pairs = tuple(terms)
    if not pairs:
        return constant(number, size)
    return Word("sum", tuple(word for _, word in pairs), size, (tuple(c for c, _ in pairs), number))


def logic(table: Sequence[int], words: Sequence[Word]) -> Word:
    """A function of bits in each place: bit j of the place in `table` is the bit of word j."""
    return Word("logic", tuple(words), words[0].size, tuple(table))


def parts_of(word: Word) -> Iterator[Word]:
    """A word, and all words that it is made of, each once."""
    pending, seen = [word], {word}
    while pending:
        yield (top := pending.pop())
        new = [argument for argument in dict.fromkeys(top.arguments) if argument not in seen]
        seen.update(new)
        pending += new


def variables_of(word: Word) -> set[Hashable]:
    """The names of the variables in a word."""
    return {part.data for part in parts_of(word) if part.op == "variable"}


def operations(number: Callable[[int], Value], truth: Callable[[object], Value],
               pick: Callable[[Value, Value, Value], Value]) -> Mapping[str, Callable[..., Value]]:
    """What each operation computes, on unsigned numbers: functions of a word and of its arguments' numbers.

    By what a number, a truth and a choice are: integers, or arrays of them.
    """
    zero, one = number(0), number(1)

    def ones(size: int) -> Value:
        return number((1 << size) - 1)

    def half(size: int) -> Value:
        return number(1 << size - 1)

    return {
        "constant": lambda w: number(w.data),
        "add": lambda w, x, y: x + y & ones(w.size),
        "subtract": lambda w, x, y: x - y & ones(w.size),
        "multiply": lambda w, x, y: x * y & ones(w.size),
        "quotient": lambda w, x, y: pick(y, x // pick(y, y, one), ones(w.size)),
        "remainder": lambda w, x, y: pick(y, x % pick(y, y, one), x),
        "and_": lambda w, x, y: x & y,
        "or_": lambda w, x, y: x | y,
        "xor": lambda w, x, y: x ^ y,
        "not_": lambda w, x: x ^ ones(w.size),
        "shift_left": lambda w, x, by: x << by & ones(w.size),
        "shift_right": lambda w, x, by: (
            (x ^ (sign := pick(x & half(w.size), ones(w.size), zero))) >> by ^ sign if w.data else x >> by),
        "equal": lambda w, x, y: truth(x == y),
        "less": lambda w, x, y: truth(
            x ^ (flip := half(w.arguments[0].size)) < y ^ flip if w.data else x < y),
        "choose": lambda w, condition, yes, no: pick(condition, yes, no),
        "bits": lambda w, x: x >> number(w.data) & ones(w.size),
        "join": lambda w, low, high: low | high << number(w.arguments[0].size),
        "extend": lambda w, x: (x ^ (sign := half(w.arguments[0].size))) - sign & ones(w.size) if w.data else x,
    }


INTEGERS = operations(int, lambda truth: int(bool(truth)), lambda truth, yes, no: yes if truth else no)


def _simpler(op: str, arguments: tuple[Word, ...], size: int, data: Hashable) -> Word | None:
    """The same number as a shorter expression, if the arguments allow one, or None."""
    first, last = arguments[0], arguments[-1]
    if first.op == last.op == "constant" and op in INTEGERS and None not in (values := [word.value for word in arguments]):
        return constant(INTEGERS[op](Word._made(op, arguments, size, data, size), *values), size)
    match op:
        case "add" | "subtract" if last.value is not None and first.op in ("add", "subtract") and (
                first.arguments[1].value is not None):
            return first.arguments[0] + (_addend(first) + (last.value if op == "add" else -last.value))
        case "add" if last.value is not None and 2 * last.value >= 1 << size:
            return first - -last.value
        case "add" if last.op == "subtract" and last.arguments[0].value == 0:
            return first - last.arguments[1]
        case "add" | "or_" | "xor" | "and_" if first.value is not None and last.value is None:
            return Word(op, (last, first), size)
        case "add" | "subtract" | "or_" | "xor" | "shift_left" | "shift_right" if last.value == 0:
            return first
        case "and_" if last.value is not None and (last.value == 0 or (1 << first.width) - 1 & ~last.value == 0):
            return first if last.value else last
        case "or_" if last.value == (1 << size) - 1:
            return last
        case "sum" if data == ((1,), 0):
            return first
        case "not_" if first.op == "not_":
            return first.arguments[0]
        case "choose" if first.value is not None or arguments[1] is last:
            return arguments[1] if first.value else last
        case "bits" | "extend" if size == first.size:
            return first
    return None


def _addend(word: Word) -> int:
    """The constant that a word adds, which may be negative."""
    value = word.arguments[1].value or 0
    return value if word.op == "add" else -value


def _width(op: str, arguments: tuple[Word, ...], size: int, data: Hashable) -> int:
    """How many of the lowest bits may be set."""
    widths = [word.width for word in arguments]
    by = arguments[1].value if len(arguments) > 1 else None
    match op:
        case "add" | "multiply" | "shift_left":
            return min(size, full_width(op, arguments))
        case "constant":
            assert isinstance(data, int)
            return data.bit_length()
        case "and_" | "or_" | "xor":
            return min(widths) if op == "and_" else max(widths)
        case "choose":
            return max(widths[1:])
        case "shift_right" if by is not None and not data:
            return max(0, widths[0] - by)
        case "bits":
            assert isinstance(data, int)
            return max(0, min(size, widths[0] - data))
        case "extend" if not data or widths[0] < arguments[0].size:
            return widths[0]
    return size


def full_width(op: str, arguments: tuple[Word, ...]) -> int:
    """How many bits the number has before it is taken modulo 2^size."""
    x, y = (word.width for word in arguments)
    if op == "shift_left":
        by = arguments[1].value
        return x + (by if by is not None else (1 << y) - 1)
    return max(x, y) + 1 if op == "add" else x + y


TRUE, FALSE = constant(1, 1), constant(0, 1)
