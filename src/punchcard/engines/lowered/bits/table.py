"""Numbers that depend on a few bits alone: a table of all their values.

Values are exact: integers in units of 2^-64. What is not a multiple of that has no table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from punchcard.engines.lowered.bits.builder import IMPOSSIBLE, Bit

MOST_BITS = 7
SCALE = 64
ONE = 1 << SCALE


class Inexact(Exception):
    """A number that is not a multiple of 2^-64."""


@lru_cache(1 << 16)
def exact(number: float) -> int:
    """A number in units of 2^-64."""
    numerator, denominator = float(number).as_integer_ratio()
    if denominator > ONE:
        raise Inexact
    return numerator * (ONE // denominator)


def scaled(a: int, b: int) -> int:
    """The product of two numbers in these units."""
    product = a * b
    if product & (ONE - 1):
        raise Inexact
    return product >> SCALE


class BitTable:
    """Bits, and a value for each of their settings: bit j of the place in `values` is `bits[j]`. No bit is idle.

    There are many, and they are the names of much: so it has slots, and its hash is worked out once.
    """

    __slots__ = ("_hash", "bits", "values")

    def __init__(self, bits: tuple[Bit, ...], values: tuple[int, ...]) -> None:
        self.bits, self.values = bits, values
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, BitTable) and self.values == other.values and self.bits == other.bits

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.bits, self.values))
        return self._hash

    def __repr__(self) -> str:
        return f"BitTable({self.bits}, {self.values})"

    @property
    def ends(self) -> tuple[int, ...]:
        """The different values, in order."""
        return tuple(sorted(set(self.values)))

    @property
    def truth(self) -> tuple[int, ...]:
        """1 where the value is the greatest, for a number with two values."""
        most = max(self.values)
        return tuple([int(value == most) for value in self.values])

    def each(self, change: Callable[[int], int]) -> BitTable:
        """A function of the value."""
        values = self.values
        if len(values) == 2:  # most have one bit
            low, high = change(values[0]), change(values[1])
            return BitTable(self.bits, (low, high)) if low != high else BitTable((), (low,))
        changed = {value: change(value) for value in set(values)}
        found = [changed[value] for value in values]
        if len(set(changed.values())) == len(changed):  # no bit becomes idle
            return BitTable(self.bits, tuple(found))
        return without_idle_bits(self.bits, found)


def constant_table(value: int) -> BitTable:
    return BitTable((), (value,))


def bit_table(bit: Bit, low: int, high: int) -> BitTable:
    """One value where a bit is 0, another where it is 1."""
    return BitTable((bit,), (low, high))


def combine(change: Callable[[int, int], int], a: BitTable, b: BitTable) -> BitTable | None:
    """A function of two numbers; None where it depends on too many bits."""
    if a.bits == b.bits:
        return without_idle_bits(a.bits, [change(x, y) for x, y in zip(a.values, b.values, strict=True)])
    if not b.bits:
        return a.each(lambda x: change(x, b.values[0]))
    if not a.bits:
        return b.each(lambda y: change(a.values[0], y))
    bits = tuple(sorted({*a.bits, *b.bits}))
    if len(bits) > MOST_BITS:
        return None
    left, right = _places(bits, a.bits), _places(bits, b.bits)
    values = [change(a.values[i], b.values[j]) for i, j in zip(left, right, strict=True)]
    return without_idle_bits(bits, _possible(bits, values))


def _possible(bits: tuple[Bit, ...], values: list[int]) -> list[int]:
    """Values for settings of flags and other bits that never occur: those of a setting that does, with one flag less."""
    flags = [j for j, bit in enumerate(bits) if bit.word.op in ("equal", "less")]
    for one, other in product(flags, range(len(bits))):
        never = IMPOSSIBLE.first(bits[one], bits[other]) if one != other else None
        if never is not None and (one < other or other not in flags or never != (1, 1)):
            first, both = 1 << one, 1 << one | 1 << other
            setting = never[0] << one | never[1] << other
            values = [values[i & ~first] if i & both == setting else value for i, value in enumerate(values)]
    return values


def restrict(table: BitTable, bits: tuple[Bit, ...], setting: int) -> BitTable:
    """A function where some bits have a certain value."""
    known = {table.bits.index(bit): setting >> j & 1 for j, bit in enumerate(bits) if bit in table.bits}
    kept = [j for j in range(len(table.bits)) if j not in known]
    base = sum(value << j for j, value in known.items())
    values = [table.values[base | sum((i >> k & 1) << j for k, j in enumerate(kept))] for i in range(1 << len(kept))]
    return without_idle_bits(tuple(table.bits[j] for j in kept), values)


@dataclass(frozen=True)
class SplitTable:
    """A function of many bits, by the settings of a few of them: for each, a function of few others."""

    bits: tuple[Bit, ...]
    parts: tuple[BitTable, ...]

    @property
    def values(self) -> set[int]:
        return {value for part in self.parts for value in part.values}


def split_sum(terms: list[BitTable]) -> SplitTable | None:
    """A sum of functions that have some bits in common, by these: most of them are 0 for all but one setting."""
    real = [term for term in terms if term.bits]
    common = set(real[0].bits).intersection(*(term.bits for term in real[1:])) if real else set()
    if not 0 < len(common) <= MOST_BITS - 1:
        return None
    bits = tuple(sorted(common))
    parts: list[BitTable] = [constant_table(sum(term.values[0] for term in terms if not term.bits))] * (1 << len(bits))
    for term in real:
        inside = [term.bits.index(bit) for bit in bits]
        met = {sum((i >> j & 1) << k for k, j in enumerate(inside)) for i, value in enumerate(term.values) if value}
        for setting in met:  # elsewhere it is 0
            total = combine(int.__add__, parts[setting], restrict(term, bits, setting))
            if total is None:
                return None
            parts[setting] = total
    return SplitTable(bits, tuple(parts))


def _places(bits: tuple[Bit, ...], part: tuple[Bit, ...]) -> tuple[int, ...]:
    """For each setting of all bits, the place in the table of some of them."""
    return _spread(tuple([1 << part.index(bit) if bit in part else 0 for bit in bits]))


@lru_cache(1 << 12)
def _spread(steps: tuple[int, ...]) -> tuple[int, ...]:
    """For each setting of some bits, the sum of the steps of those that are 1."""
    places = [0]
    for step in steps:
        places += [place | step for place in places] if step else places
    return tuple(places)


def without_idle_bits(bits: tuple[Bit, ...], values: list[int]) -> BitTable:
    """Without the bits that change nothing."""
    for j in reversed(range(len(bits))):
        step = 1 << j
        if values[0] != values[step]:  # most bits count, and show it here
            continue
        starts = range(0, len(values), 2 * step)
        if step == 1:
            same = values[::2] == values[1::2]
        else:
            same = all(values[i : i + step] == values[i + step : i + 2 * step] for i in starts)
        if same:
            values = [value for i in starts for value in values[i : i + step]]
            bits = bits[:j] + bits[j + 1 :]
    return BitTable(bits, tuple(values))
