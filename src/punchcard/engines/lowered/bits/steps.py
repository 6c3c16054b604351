"""Functions of an integer that are flat but for steps: which integer operation they are.

A sum of ReLUs of a linear form over bits is piecewise linear in an integer T. Where it is flat but for steps (see
`transformer/relu_steps.py`), it is one of

    a bit of T + k              the steps lie 2^p apart
    whether (T + k) mod 2^p is below a limit   the steps repeat after 2^p
    flags, T at least b         anything else with few steps
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from punchcard.engines.lowered.bits.builder import FULL, WordBuilder, is_flag
from punchcard.engines.lowered.bits.packing import alike
from punchcard.engines.lowered.bits.table import BitTable, bit_table, constant_table, scaled, without_idle_bits
from punchcard.engines.lowered.rules import RuleTable
from punchcard.transformer.relu_steps import Period, period_of
from punchcard.words.word import Word

MOST_STEPS, MOST_FLAGS = 16, 6
"""The most steps of a function, and of one that needs a flag for each step."""
Steps: TypeAlias = list[tuple[int, int]]
"""From where on a function has which value, in order; the first place is its least argument."""


@dataclass(frozen=True)
class Total:
    """An integer: coefficients times words, each masked and then shifted to the right; `low` and `high` bound it."""

    terms: tuple[tuple[int, Word, int, int], ...]
    low: int
    high: int

    def word(self, words: WordBuilder) -> Word:
        """The integer as it is."""
        return words.once(self.terms, lambda: words.sum(
            ((c, words.shifted(words.masked(w, mask), shift)) for c, w, mask, shift in self.terms), 0))

    def lowest(self, words: WordBuilder, bits: int, constant: int, sign: int = 1) -> Word:
        """A word that agrees with the integer or its negative, plus a constant, in its lowest bits.

        Higher bits of its terms may come in.
        """
        terms = []
        for c, word, mask, shift in self.terms:
            valuation = (c & -c).bit_length() - 1
            idle = max(0, bits - valuation) + shift  # from here on, a bit of the word changes only what does not count
            whole = mask | ((1 << word.width) - 1 & ~((1 << idle) - 1))
            if whole >> shift == (1 << max(0, word.width - shift)) - 1:
                terms.append((sign * c, words.shifted(word, shift)))
            else:
                terms.append((sign * c, words.shifted(words.masked(word, mask), shift)))
        return words.sum(terms, constant)

    @property
    def negative(self) -> Total:
        return Total(tuple((-c, word, mask, shift) for c, word, mask, shift in self.terms), -self.high, -self.low)

    @property
    def plain(self) -> tuple[Word, int] | None:
        """The one word that it is a part of, and by how many places it is shifted."""
        (coefficient, word, _, shift), *more = self.terms
        return (word, shift) if coefficient == 1 and not more else None


def table_of_steps(words: WordBuilder, total: Total, steps: Steps) -> BitTable | None:
    """A function by its steps, over bits; None where it has too many of them."""
    return STEPS.first(words, total, steps)


STEPS: RuleTable[[WordBuilder, Total, Steps], BitTable] = RuleTable("steps")
"""A function of an integer, flat but for steps, as a function of bits."""


@STEPS
def tabulate_one_value(words: WordBuilder, total: Total, steps: Steps) -> BitTable | None:
    """Without a step it is a constant."""
    return constant_table(steps[0][1]) if len(steps) == 1 else None


@STEPS
def take_highest_bit(words: WordBuilder, total: Total, steps: Steps) -> BitTable | None:
    """One step, at 2^p, of part of a word that is below 2^(p + 1): bit p of the word."""
    plain = total.plain
    if len(steps) != 2 or plain is None or total.low != 0:
        return None
    first = steps[1][0]
    if first & (first - 1) or total.high >= 2 * first:
        return None
    return bit_table(words.bit(plain[0], first.bit_length() - 1 + plain[1]), steps[0][1], steps[1][1])


@STEPS
def take_bit_of_sum(words: WordBuilder, total: Total, steps: Steps) -> BitTable | None:
    """Two values that alternate every 2^p from k on: bit p of T - k + 2^p, or its complement, that of T - k.

    The bits of -T - k - 1 are the complement of those of T + k: of the four sums, the one with the least constant is taken.
    """
    found = _period(total, steps)
    if found is None or 2 * found.length != 1 << found.bits:
        return None
    first, length, bits = found
    plain, turned = (_least(k, bits) for k in (length - first, -first))
    options = [(abs(k), off, of, k) for k, off, of in (
        (plain, 0, 1), (turned, 1, 1), (-turned - 1, 0, -1), (-plain - 1, 1, -1))]
    _, off, sign, constant = min(options, key=lambda option: (option[0], option[1], -option[2]))
    bit = words.bit(total.lowest(words, bits, constant, sign), bits - 1)
    outside, inside = steps[0][1], steps[1][1]
    return bit_table(bit, *((inside, outside) if off else (outside, inside)))


@STEPS
def compare_remainder(words: WordBuilder, total: Total, steps: Steps) -> BitTable | None:
    """Two values that alternate with the period 2^p, one of them for `length` from k on: (T - k) mod 2^p < length."""
    found = _period(total, steps)
    if found is None:
        return None
    first, length, bits = found
    flag = words.below(total.lowest(words, bits, _least(-first, bits)), bits, length)
    return bit_table(words.bit(flag), steps[0][1], steps[1][1])


@STEPS
def compare_with_steps(words: WordBuilder, total: Total, steps: Steps) -> BitTable | None:
    """The last step that T has reached says which value it is: a flag for each step."""
    if len(steps) > MOST_FLAGS + 1:
        return None
    values, word = dict(steps), total.word(words)
    flags = {place: words.bit(words.at_least(word, place)) for place, _ in steps[1:]}
    ordered = tuple(sorted(flags.values()))
    table = []
    for setting in range(1 << len(ordered)):
        reached = [place for place, flag in flags.items() if setting >> ordered.index(flag) & 1]
        table.append(values[reached[-1]] if reached else steps[0][1])
    return without_idle_bits(ordered, table)


def _period(total: Total, steps: Steps) -> Period | None:
    """The period of a function with two values that alternate, from the least to the greatest T."""
    places = [place for place, _ in steps[1:]]
    if len({value for _, value in steps}) != 2:
        return None
    found = period_of(total.low, total.high, places)
    return found if found is not None and found.bits < FULL - 1 else None


def _least(number: int, bits: int) -> int:
    """The number nearest to 0 that agrees with another in its lowest bits."""
    rest = number & (1 << bits) - 1
    return rest - (1 << bits) if rest > 1 << bits - 1 else rest


Sum: TypeAlias = dict[BitTable, int]
"""Functions that are 0 or 1, and their coefficients in units of 2^-64."""
Units: TypeAlias = list[tuple[int, int, int]]
"""ReLUs of one number: c relu(factor x + bias)."""
Line: TypeAlias = tuple[tuple[Word, ...], tuple[int, ...], tuple[int, ...], int, int]


def needed_terms(terms: Sum, constant: int, alone: Sum, units: Units) -> Sum:
    """Of the functions that are alone in a sum: those without which every ReLU of the sum is closed."""
    upwards = units[0][1] > 0
    if any((factor > 0) != upwards for _, factor, _ in units):
        return {}
    most = constant + sum(c for c in terms.values() if (c > 0) == upwards)
    return {function: c for function, c in alone.items()
            if all(scaled(factor, most - (abs(c) if upwards else -abs(c))) + bias <= 0 for _, factor, bias in units)}


def multiple(terms: Sum, of: Sum) -> Fraction | None:
    """How often a sum has all terms of another; None if it does not have all of them equally often."""
    function, c = next(reversed(of.items()))
    times = Fraction(terms.get(function, 0), c)
    return times if times and all(terms.get(part) == times * own for part, own in of.items()) else None


def without_gates(terms: Sum) -> tuple[Sum, Sum]:
    """A sum without its gates, and the gates: bits that are alone in it, where others are the bits of one word."""
    lines: dict[Line, list[BitTable]] = {}
    for function, c in terms.items():
        lines.setdefault(_line(function, c), []).append(function)
    several = {function: terms[function] for line in lines.values() if len(line) > 1 for function in line}
    if not several:
        return terms, {}
    return several, {function: c for function, c in terms.items() if function not in several}


def carry_splits(terms: Sum) -> Iterator[tuple[Sum, Sum]]:
    """Ways to look at a sum: what is added up, and the gates. A bit with the weight of the lowest ones may be a carry."""
    total, gates = without_gates(terms)
    unit = min(map(abs, total.values()), default=0)
    if carries := [function for function, c in gates.items() if abs(c) == unit]:
        rest = {function: c for function, c in gates.items() if function not in carries}
        yield {function: c for function, c in terms.items() if function not in rest}, rest
    yield total, gates


def _line(function: BitTable, c: int) -> Line:
    """What bits have in common that are the bits of a word, or of the same function of words, with weights 2^i."""
    place = function.bits[0].place
    odd, power = odd_and_power(c)
    if len(function.bits) == 1:
        return (function.bits[0].word,), function.values, (0,), odd, power - place
    words = tuple(bit.word for bit in function.bits)
    places = tuple(0 if is_flag(bit.word) else bit.place - place for bit in function.bits)
    return words, function.values, places, odd, power - place


def odd_and_power(c: int) -> tuple[int, int]:
    """An odd number and the power of 2 that it is multiplied by."""
    power = (c & -c).bit_length() - 1
    return c >> power, power


def aligned(words: WordBuilder, terms: Sum, constant: int) -> tuple[Sum, int]:
    """The same sum, with bits that equal a bit of a sum's word replaced by that bit, beside the other bits of the word."""
    lines = {(line[0][0], line[3], line[4]): None for line in (_line(function, c) for function, c in terms.items()
             if len(function.bits) == 1 and function.bits[0].word.op == "sum")}
    if not lines:
        return terms, constant
    result: Sum = {}
    for function, c in terms.items():
        (odd, power), found, count = odd_and_power(c), function, c
        for word, other, less in lines:
            bit = BitTable((words.bit(word, power - less),), (0, 1))
            if abs(odd) != abs(other) or power < less or bit in terms:
                continue
            same = odd == other
            values = function.values if same else tuple(1 - value for value in function.values)
            if alike(BitTable(function.bits, values), bit):
                found, count = bit, c if same else -c
                constant += 0 if same else c
                break
        result[found] = result.get(found, 0) + count
    return {function: c for function, c in result.items() if c}, constant
