"""Divisions, digit after digit: how often an integer is in another, found in sums of comparisons, and what is left then.

A digit of a quotient is a sum of comparisons A >= k D, for k from 1 to b - 1, with numbers A and D that are not negative:
each of them is Q >= k, for the number Q of those that hold. If A < b D or D = 0, Q is A div D, or b - 1 where D is 0; and
A - Q D is A mod D, or A.

A may be made of what a digit before it has left. Then both are of the whole number that was divided so far: see `WHOLES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from punchcard.engines.lowered.bits.builder import FULL, Bit, WordBuilder
from punchcard.engines.lowered.bits.packing import pack
from punchcard.engines.lowered.bits.steps import Sum, Total, Units
from punchcard.engines.lowered.bits.table import BitTable, bit_table, combine, restrict, scaled, without_idle_bits
from punchcard.engines.lowered.rules import RuleTable
from punchcard.transformer.relu_steps import steps_of
from punchcard.words.word import Word

FEW_FLAGS = 2
"""So many comparisons are as good as a digit."""
MOST_COUNTED = 63
LARGEST = 1 << 126


class Quantity(NamedTuple):
    """A sum of functions that are 0 or 1, each so often, and a constant."""

    terms: Sum
    constant: int

    def times(self, factor: int, constant: int = 0) -> Quantity:
        return Quantity({function: scaled(c, factor) for function, c in self.terms.items()},
                        scaled(self.constant, factor) + constant)

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
        """Whether that is proven."""
        return (low <= self.low and self.high <= high) or (low <= (ends := self._ends())[0] and ends[1] <= high)

    def _ends(self) -> tuple[int, int]:
        """Bounds of it that may be better: where the bit that most of its functions share is 0, and where it is 1."""
        shared = Counter(bit for function in self.terms if len(function.bits) > 1 for bit in function.bits)
        if not shared:
            return self.low, self.high
        (bit, _), = shared.most_common(1)
        parts = [[[c * value for value in restrict(function, (bit,), setting).values] for function, c in self.terms.items()]
                 for setting in (0, 1)]
        return (self.constant + min(sum(map(min, part)) for part in parts),
                self.constant + max(sum(map(max, part)) for part in parts))


    def joined(self) -> Quantity:
        """The same, where the sum or difference of functions that count equally is one function that is 0 or 1 again."""
        found: Sum = {}
        for function, c in self.terms.items():
            for other in [other for other, own in found.items() if abs(own) == abs(c) and set(other.bits) & set(function.bits)]:
                both = combine(int.__add__ if found[other] == c else int.__sub__, function, other)
                if both is not None and set(both.values) in ({0, 1}, {-1, 0}, {0}):
                    del found[other]
                    function, c = both.each(abs), c * (-1) ** (min(both.values) < 0)
            found[function] = c
        return Quantity({function: c for function, c in found.items() if function.bits}, self.constant)


class Comparison(NamedTuple):
    """A number with two values: `below` where a quantity is negative, else `reached`."""

    of: Quantity
    below: int
    reached: int


def comparison(summed: Quantity, units: Units) -> Comparison | None:
    """A sum of ReLUs of one quantity as a comparison, where it is one: it is flat but for one step (see `relu_steps`)."""
    factors = {factor for _, factor, _ in units}
    if len(factors) != 1 or not summed.terms:
        return None
    moved = summed.times(factors.pop())
    start, unit = moved.constant, Quantity(moved.terms, 0).unit
    steps = steps_of((moved.low - start) // unit, (moved.high - start) // unit, [(-start - bias, unit) for *_, bias in units],
                     lambda at: sum(scaled(c, max(0, unit * at + start + bias)) for c, _, bias in units), 1)
    if steps is None or len(steps) != 2:
        return None
    (_, below), (first, reached) = steps
    return Comparison(Quantity(moved.terms, -unit * first), below, reached)


@dataclass(frozen=True, eq=False)
class Division:
    """A digit of a quotient, A div D, by its bits; and A mod D, by its bits. Both are so for the whole number N as well."""

    dividend: Quantity
    divisor: Quantity
    whole: Quantity
    unit: int
    digit: tuple[Bit, ...]
    rest: tuple[Bit, ...]
    words: tuple[Word, Word]
    """N and D."""
    spent: Quantity | None
    """A - Q D as it is written, part after part; None where it depends on too many bits."""

    @property
    def left(self) -> Quantity:
        """A mod D."""
        return Quantity({bit_table(bit, 0, 1): self.unit << place for place, bit in enumerate(self.rest)}, 0)

    def place_of(self, compared: Quantity) -> int | None:
        """The k so that a quantity is A - k D."""
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
"""A number N, for a dividend A, a divisor D, their unit and a base b, so that of N by D the last digit of the quotient, in
this base, is A div D, and less than b without that; and the rest is A mod D. Where D is 0, N is A.
"""


@WHOLES
def begin_division(dividend: Quantity, divisor: Quantity, unit: int, base: int, known: Sequence[Division]) -> Whole | None:
    """A itself, if A < b: then A div D <= A < b where D is not 0."""
    whole = dividend.joined()
    return Whole(whole) if whole.is_within(0, base * unit - 1) else None


@WHOLES
def continue_division(dividend: Quantity, divisor: Quantity, unit: int, base: int,
                      known: Sequence[Division]) -> Whole | None:
    """b M + n, if A = b (M mod D) + n with 0 <= n < b. Where D is not 0, M mod D <= D - 1, so A <= b D - 1 and A div D < b;
    and b M + n = b D (M div D) + A, so it leaves the same rest, and its quotient is b (M div D) more. Where D is 0,
    M mod D is M.
    """
    for division in known:
        next_digit = dividend.plus(division.left, -base).joined()
        if division.divisor == divisor and division.unit == unit and next_digit.is_within(0, base * unit - 1):
            return Whole(next_digit.plus(division.whole, base), division)
    return None


class Divisions:
    """The divisions that were found in one place. `total` gives a sum as an integer and a unit."""

    def __init__(self, words: WordBuilder, homes: dict[BitTable, Bit],
                 total: Callable[[Sum], tuple[Total, int] | None]) -> None:
        self._words, self._homes, self._total = words, homes, total
        self._known: list[Division] = []
        self._digits: dict[Word, Division] = {}
        self._next: dict[Division, Division] = {}

    def may_count(self, bases: Collection[Units]) -> bool:
        """Whether sums of so many ReLUs, of several numbers, may be a function of a digit."""
        return (bool(self._known) or FEW_FLAGS < len(bases) <= MOST_COUNTED) and all(len(units) > 1 for units in bases)

    def count(self, comparisons: Sequence[Comparison], constant: int) -> BitTable | None:
        """A sum of comparisons, each A >= k D for some k, and a constant: a function of how often D is in A."""
        if not comparisons:
            return None
        division = next((known for known in self._known if known.place_of(comparisons[0].of)), None) or self._found(comparisons)
        places = [] if division is None else [division.place_of(compared.of) for compared in comparisons]
        if division is None or None in places:
            return None
        values = [constant + sum(compared.reached if place <= digit else compared.below  # type: ignore[operator]
                                 for place, compared in zip(places, comparisons, strict=True))
                  for digit in range(1 << len(division.digit))]
        return without_idle_bits(division.digit, values)

    def _found(self, comparisons: Sequence[Comparison]) -> Division | None:
        """The division whose digit is counted by all of its comparisons."""
        base = len(comparisons) + 1
        if base & (base - 1) or base == 2:
            return None
        for first, second in _beginnings([compared.of for compared in comparisons]):
            divisor = first.plus(second, -1)
            dividend = first.plus(divisor)
            unit = min(dividend.unit or divisor.unit, divisor.unit)
            whole = WHOLES.first(dividend, divisor, unit, base, self._known)
            found = None if whole is None or not divisor.terms or not divisor.is_within(0, LARGEST) else self._divide(dividend, divisor, whole, unit, base)
            if found is not None:
                self._known.append(found)
                return found
        return None

    def _divide(self, dividend: Quantity, divisor: Quantity, whole: Whole, unit: int, base: int) -> Division | None:
        number, by = self._word(whole.number, unit), self._word(divisor, unit)
        if number is None or by is None:
            return None
        size = (base - 1).bit_length()
        quotient, rest = self._words.digit(number, by, 0, size), self._words.remainder(number, by)
        digit = tuple(self._words.bit(quotient, place) for place in range(size))
        bits = tuple(self._words.bit(rest, place) for place in range((whole.number.high // unit).bit_length()))
        spent: Quantity | None = dividend
        for place, bit in enumerate(digit):
            part = _where(divisor, bit)
            spent = None if spent is None or part is None else spent.plus(part, -1 << place)
        found = Division(dividend, divisor, whole.number, unit, digit, bits, (number, by), spent)
        self._digits[quotient] = found
        if whole.before is not None:
            self._next[whole.before] = found
        return found

    def written(self, word: Word) -> Word | None:
        """The digit of a quotient as one of the whole quotient, if more digits of it were found. As b M + n is divided in
        the next step, M is (b M + n) div b; and (N div b) div D is (N div D) div b.
        """
        first = division = self._digits.get(word)
        places = 0
        while division in self._next and places + 2 * len(first.digit) <= FULL:
            division = self._next[division]
            places += len(first.digit)
        return self._words.digit(*division.words, places, len(first.digit)) if places else None

    def _word(self, quantity: Quantity, unit: int) -> Word | None:
        """A quantity that is not negative, in units of so much."""
        places = {(c // unit).bit_length() - 1: function for function, c in quantity.terms.items() if c > 0}
        if len(places) == len(quantity.terms) and not quantity.constant and all(
                quantity.terms[function] == unit << place for place, function in places.items()):
            return pack(self._words, places, self._homes)
        total = self._total(quantity.terms)
        if total is None:
            return None
        word = self._words.sum([(total[1] // unit, total[0].lowest(self._words, FULL, 0))], quantity.constant // unit)
        return self._words.masked(word, (1 << (quantity.high // unit).bit_length()) - 1)

    def with_rests(self, quantity: Quantity) -> Quantity:
        """The same quantity, with what divisions leave by its bits."""
        for division in self._known:
            if division.spent is None:
                continue
            function, c = next(reversed(division.spent.terms.items()))
            times, rest = divmod(quantity.terms.get(function, 0), c)
            if times and not rest and all(quantity.terms.get(part) == times * own
                                          for part, own in division.spent.terms.items()):
                quantity = quantity.plus(division.spent, -times).plus(division.left, times)
        return quantity


def _beginnings(compared: Sequence[Quantity]) -> Iterator[tuple[Quantity, Quantity]]:
    """The first two of quantities A - D, A - 2 D and so on, in both directions, by one of their terms."""
    one, other = compared[:2]
    changed = next((function for function in {**one.terms, **other.terms}
                    if one.terms.get(function) != other.terms.get(function)), None)
    if changed is not None:
        ordered = sorted(compared, key=lambda quantity: quantity.terms.get(changed, 0))
        yield ordered[-1], ordered[-2]
        yield ordered[0], ordered[1]


def _where(quantity: Quantity, bit: Bit) -> Quantity | None:
    """A quantity where a bit is 1, else 0."""
    gate = bit_table(bit, 0, 1)
    total = Quantity({gate: quantity.constant} if quantity.constant else {}, 0)
    for function, c in quantity.terms.items():
        both = combine(int.__mul__, function, gate)
        if both is None:
            return None
        if both.bits:
            total = total.plus(Quantity({both: c}, 0))
    return total
