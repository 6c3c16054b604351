"""Divisions, digit after digit: how often a number is in another, found in sums of comparisons, and what is left then.

A digit of a quotient is a sum of comparisons A >= k D, each k from 1 to b - 1 once, of numbers A and D that are 0 or more;
b is a power of two, 4 or more.
The sum is a function of Q, how many of them hold, since those that hold come first. If A < b D or D = 0, then

    D     Q         A - Q D
    > 0   A div D   A mod D
    0     b - 1     A

A may be made of what a digit before this one has left. Then both are of the whole number that was divided so far: see
`WHOLES`. So what is left keeps the bound that the next digit needs, and all digits are those of one division of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from punchcard.engines.lowered.bits.builder import FULL, Bit, WordBuilder
from punchcard.engines.lowered.bits.packing import pack
from punchcard.engines.lowered.bits.steps import Sum, Total, Units, multiple
from punchcard.engines.lowered.bits.table import BitTable, bit_table, combine, restrict, scaled, without_idle_bits
from punchcard.engines.lowered.rules import RuleTable
from punchcard.transformer.relu_steps import steps_of
from punchcard.words.word import Word

LEAST_BASE, MOST_COMPARISONS = 4, 63
"""In base 2 a digit is one comparison, which does not tell the divisor."""
LARGEST = 1 << 62
"""Of an integer that is a sum."""


class Quantity(NamedTuple):
    """A sum of functions that are 0 or 1, each so often, and a constant."""

    terms: Sum
    constant: int

    def times(self, factor: int, more: int = 0) -> Quantity:
        """So many times it, and a constant more."""
        return Quantity({function: scaled(c, factor) for function, c in self.terms.items()},
                        scaled(self.constant, factor) + more)

    def plus(self, other: Quantity, times: int = 1) -> Quantity:
        """With another, so many times."""
        terms = dict(self.terms)
        for function, c in other.terms.items():
            terms[function] = terms.get(function, 0) + times * c
        return Quantity({function: c for function, c in terms.items() if c}, self.constant + times * other.constant)

    @property
    def low(self) -> int:
        """It is no less than that, whatever the functions are."""
        return self.constant + sum(c for c in self.terms.values() if c < 0)

    @property
    def high(self) -> int:
        """It is no more than that."""
        return self.constant + sum(c for c in self.terms.values() if c > 0)

    @property
    def unit(self) -> int:
        """A power of two that divides all of it."""
        return min((c & -c for c in (*self.terms.values(), self.constant) if c), default=0)

    def is_within(self, low: int, high: int) -> bool:
        """Whether that is proven: for all its functions by themselves, or also for both values of a bit that many share."""
        return (low <= self.low and self.high <= high) or all(low <= least and most <= high for least, most in self._ends())

    def _ends(self) -> Iterator[tuple[int, int]]:
        """Its bounds where the bit that most of its functions share is 0, and where it is 1."""
        shared = Counter(bit for function in self.terms for bit in function.bits)
        bits = tuple(bit for bit, _ in shared.most_common(1))
        for setting in (0, 1):
            parts = [[c * value for value in restrict(function, bits, setting).values] for function, c in self.terms.items()]
            yield self.constant + sum(map(min, parts)), self.constant + sum(map(max, parts))

    def joined(self) -> Quantity:
        """The same, where the sum or difference of functions that count equally is one function that is 0 or 1 again."""
        found: Sum = {}
        for function, c in self.terms.items():
            bits = set(function.bits)
            for other in [other for other, own in found.items() if abs(own) == abs(c) and not bits.isdisjoint(other.bits)]:
                both = combine(int.__add__ if found[other] == c else int.__sub__, function, other)
                if both is not None and set(both.values) in ({0, 1}, {-1, 0}, {0}):
                    del found[other]
                    function, c = both.each(abs), -c if min(both.values) < 0 else c
            found[function] = found.get(function, 0) + c
        return Quantity({function: c for function, c in found.items() if c and function.bits}, self.constant)

    def where(self, bit: Bit) -> Quantity | None:
        """It where a bit is 1, else 0; None where that depends on too many bits."""
        gate = bit_table(bit, 0, 1)
        total = Quantity({gate: self.constant} if self.constant else {}, 0)
        for function, c in self.terms.items():
            both = combine(int.__mul__, function, gate)
            if both is None:
                return None
            if both.bits:
                total.terms[both] = total.terms.get(both, 0) + c
        return total


class Comparison(NamedTuple):
    """A number with two values: `below` where a quantity is negative, else `reached`."""

    of: Quantity
    below: int
    reached: int


def comparison(summed: Quantity, units: Units) -> Comparison | None:
    """A sum of ReLUs of a quantity as a comparison, where it is flat but for one step (see `relu_steps`)."""
    factors = {factor for _, factor, _ in units}
    if len(factors) != 1 or not summed.terms:
        return None
    moved = summed.times(factors.pop())
    start, unit = moved.constant, Quantity(moved.terms, 0).unit
    kinks = [(-start - bias, unit) for *_, bias in units]
    steps = steps_of((moved.low - start) // unit, (moved.high - start) // unit, kinks,
                     lambda at: sum(scaled(c, max(0, unit * at + start + bias)) for c, _, bias in units), 1)
    if steps is None or len(steps) != 2:
        return None
    (_, below), (first, reached) = steps
    return Comparison(Quantity(moved.terms, -unit * first), below, reached)


@dataclass(frozen=True, eq=False)
class Division:
    """A digit of a quotient, A div D, by its bits; and A mod D, by its bits. `words`: of what both are in all, and D.

    `size`: the bits of the quotient, with the digits before this one.
    """

    dividend: Quantity
    divisor: Quantity
    whole: Quantity
    unit: int
    words: tuple[Word, Word]
    size: int
    digit: tuple[Bit, ...]
    rest: tuple[Bit, ...]

    @property
    def left(self) -> Quantity:
        """A mod D."""
        return Quantity({bit_table(bit, 0, 1): self.unit << place for place, bit in enumerate(self.rest)}, 0)

    def spent(self) -> Quantity | None:
        """A - Q D as it may be written: D where bit j of Q is 1, 2^j times."""
        total: Quantity | None = self.dividend
        for place, bit in enumerate(self.digit):
            part = self.divisor.where(bit)
            total = None if total is None or part is None else total.plus(part, -1 << place)
        return total

    def place_of(self, compared: Quantity) -> int | None:
        """The k, as a digit may be, so that a quantity is A - k D."""
        function, c = next(iter(self.divisor.terms.items()))
        k, rest = divmod(self.dividend.terms.get(function, 0) - compared.terms.get(function, 0), c)
        if rest or not 0 < k < 1 << len(self.digit) or compared != self.dividend.plus(self.divisor, -k):
            return None
        return k


class Whole(NamedTuple):
    """What is divided in all, and the digit before the last one."""

    number: Quantity
    before: Division | None = None


WHOLES: RuleTable[[Quantity, Quantity, int, int, Sequence[Division]], Whole] = RuleTable("wholes of divisions")
"""For numbers A and D, their unit, a base b and known divisions: a number N so that A < b D or D = 0, and the last digit of
N div D in this base is A div D, and N mod D is A mod D. Where D is 0, N is A.
"""


@WHOLES
def begin_division(dividend: Quantity, divisor: Quantity, unit: int, base: int, known: Sequence[Division]) -> Whole | None:
    """A itself, if 0 <= A < b: then A < b D where D is 1 or more, and A div D is a digit."""
    whole = dividend.joined()
    return Whole(whole) if whole.is_within(0, base * unit - 1) else None


@WHOLES
def continue_division(dividend: Quantity, divisor: Quantity, unit: int, base: int,
                      known: Sequence[Division]) -> Whole | None:
    """b M + n, if A = b (M mod D) + n with 0 <= n < b. Where D is not 0, M mod D is D - 1 at most, so A < b D; and b M + n
    is A + b (M div D) D: it leaves the same rest, and has a quotient larger by b (M div D). Where D is 0, M mod D is M.
    """
    for division in known:
        if division.divisor == divisor and division.unit == unit:
            digit = dividend.plus(division.left, -base).joined()
            if digit.is_within(0, base * unit - 1):
                return Whole(digit.plus(division.whole, base), division)
    return None


class Divisions:
    """The divisions that were found in one place. `total` gives a sum as an integer and a unit."""

    def __init__(self, words: WordBuilder, homes: dict[BitTable, Bit],
                 total: Callable[[Sum], tuple[Total, int] | None]) -> None:
        self._words, self._homes, self._total = words, homes, total
        self._spent: dict[Division, Quantity | None] = {}
        self._digits: dict[Word, Division] = {}
        self._next: dict[Division, Division] = {}

    def may_count(self, bases: Collection[Units]) -> bool:
        """Whether sums of ReLUs, each of another number, may be comparisons that count a digit."""
        is_digit = LEAST_BASE - 1 <= len(bases) <= MOST_COMPARISONS
        return (bool(self._spent) or is_digit) and any(len(units) > 1 for units in bases)

    def count(self, comparisons: Sequence[Comparison], constant: int) -> BitTable | None:
        """A sum of comparisons, each of them A >= k D for some k, and a constant: a function of a digit of A div D."""
        first = comparisons[0].of
        division = next((known for known in self._spent if known.place_of(first)), None) or self._found(comparisons)
        if division is None:
            return None
        places = [division.place_of(compared.of) for compared in comparisons]
        values = [constant] * (1 << len(division.digit))
        for place, compared in zip(places, comparisons, strict=True):
            if place is None:
                return None
            values = [value + (compared.reached if place <= digit else compared.below) for digit, value in enumerate(values)]
        return without_idle_bits(division.digit, values)

    def _found(self, comparisons: Sequence[Comparison]) -> Division | None:
        """The division of which all comparisons for a digit are there."""
        base = len(comparisons) + 1
        if base & (base - 1) or base < LEAST_BASE:
            return None
        for first, second in _beginnings([compared.of for compared in comparisons]):
            divisor = first.plus(second, -1)
            dividend = first.plus(divisor)
            unit = min(unit for unit in (dividend.unit, divisor.unit) if unit) if divisor.terms else 0
            whole = WHOLES.first(dividend, divisor, unit, base, list(self._spent)) if unit else None
            found = None if whole is None else self._divide(dividend, divisor, unit, base, whole)
            if found is not None:
                return found
        return None

    def _divide(self, dividend: Quantity, divisor: Quantity, unit: int, base: int, whole: Whole) -> Division | None:
        number, by = self._word(whole.number, unit), self._word(divisor, unit)
        if number is None or by is None:
            return None
        size, most = (base - 1).bit_length(), (whole.number.high // unit).bit_length()
        digit, rest = self._words.digit(number, by, 0, size), self._words.remainder(number, by)
        before = whole.before.size if whole.before is not None else 0
        found = Division(dividend, divisor, whole.number, unit, (number, by), size + before,
                         tuple(self._words.bit(digit, place) for place in range(size)),
                         tuple(self._words.bit(rest, place) for place in range(most)))
        self._spent[found], self._digits[digit] = found.spent(), found
        if whole.before is not None:
            self._next[whole.before] = found
        return found

    def _word(self, quantity: Quantity, unit: int) -> Word | None:
        """A quantity in units of so much, if it is proven not to be negative; by its bits, where it is given so."""
        if not quantity.is_within(0, LARGEST * unit - 1):
            return None
        places = {(c // unit).bit_length() - 1: function for function, c in quantity.terms.items()}
        if quantity == ({function: unit << max(0, place) for place, function in places.items()}, 0):
            return pack(self._words, places, self._homes)
        total = self._total(quantity.terms)
        if total is None:
            return None
        word = self._words.sum([(total[1] // unit, total[0].lowest(self._words, FULL, 0))], quantity.constant // unit)
        return self._words.masked(word, (1 << (quantity.high // unit).bit_length()) - 1)

    def has_digit(self, function: BitTable) -> bool:
        """Whether a function is a bit of a quotient."""
        return len(function.bits) == 1 and function.bits[0].word in self._digits

    def with_rests(self, quantity: Quantity) -> Quantity:
        """The same quantity, with what divisions leave by its bits."""
        for division, spent in self._spent.items():
            if spent is None or not spent.terms:
                continue
            times = multiple(quantity.terms, spent.terms)
            if times and (times * division.unit).denominator == (times * spent.constant).denominator == 1:
                others = {function: c for function, c in quantity.terms.items() if function not in spent.terms}
                left = {function: int(times * c) for function, c in division.left.terms.items()}
                quantity = Quantity(others, quantity.constant - int(times * spent.constant)).plus(Quantity(left, 0))
        return quantity

    def with_quotients(self, quantity: Quantity) -> Quantity:
        """The same quantity, with bits of quotients as bits of one word."""
        digits = {function: c for function, c in quantity.terms.items() if self.has_digit(function)}
        for function, c in digits.items():
            quantity = quantity.plus(Quantity({function: -c}, 0)).plus(Quantity({self.renamed(function): c}, 0))
        return quantity

    def written(self, word: Word) -> Word | None:
        """A digit of a quotient as one of the last quotient that it is in, so that all are of one."""
        division = self._digits.get(word)
        last, places = (None, 0) if division is None else self._last(division)
        return self._words.digit(*last.words, places, len(division.digit)) if division and last and places else None

    def renamed(self, function: BitTable) -> BitTable:
        """The same function, with bits of digits as those of the last quotient that they are in: they are in one word."""
        bits = tuple(self._bit(bit) if bit.word in self._digits else bit for bit in function.bits)
        return function if bits == function.bits else BitTable(bits, function.values)

    def _bit(self, bit: Bit) -> Bit:
        last, places = self._last(self._digits[bit.word])
        return self._words.bit(self._words.digit(*last.words, 0, last.size), places + bit.place)

    def _last(self, division: Division) -> tuple[Division, int]:
        """The last division in which a digit is, and the place where it is in that quotient. If the next one is of b N + n,
        then N is (b N + n) div b; and (M div b) div D is (M div D) div b. Where D is 0, all bits of a word are 1.
        """
        places = 0
        while division in self._next and self._next[division].size <= FULL:
            division = self._next[division]
            places += len(division.digit)
        return division, places


def _beginnings(compared: Sequence[Quantity]) -> Iterator[tuple[Quantity, Quantity]]:
    """The first two of quantities A - D, A - 2 D and so on, in both directions, by one of their terms."""
    one, other = compared[:2]
    changed = next((function for function in {**one.terms, **other.terms}
                    if one.terms.get(function) != other.terms.get(function)), None)
    if changed is not None:
        ordered = sorted(compared, key=lambda quantity: quantity.terms.get(changed, 0))
        yield ordered[-1], ordered[-2]
        yield ordered[0], ordered[1]
