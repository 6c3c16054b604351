"""Functions of words where nothing is absent (see `literals`), else 0: sums, comparisons, logic, shifts, lanes.

Sums. Bit i depends on s = a[0..i] + b[0..i] + carry alone, 0 <= s < 2^(i+2), and changes at the multiples of 2^i:

    s               0 ..    2^i ..    2 2^i ..    3 2^i ..
    bit i            0         1          0           1         [s >= 2^i] - [s >= 2 2^i] + [s >= 3 2^i]

Six units a bit; the carry out of n bits is [s >= 2^n], two units. x - y is x + not y + 1, and not y is -y. A sum that is too
wide for the number format is made in two layers: the low part and its carry in one, the high part with that carry in the
next.

Comparisons of two numbers whose low parts were compared a layer before. With d = x - y of the high parts, and two bits
about the low parts, `carry` = [x_low >= y_low] and `same` = [x_low = y_low]:

    x < y       d + carry <= 0          a step, two units
    x = y       d = 0 and same          a tent, three units

    d           negative    0, carry 0    0, carry 1    positive
    d + carry   <= 0        0             1             >= 1
    x < y       yes         yes           no            no

Two's complement is compared as unsigned numbers are, with both highest bits turned. More literals in the same units choose
between two words by a comparison: a hidden layer cannot select by what it computes itself.

Logic, bit by bit: with s = x + y, entries 0, 1 or 2,

    s           0    1    2
    x and y     0    0    1      relu(s - 1)                  one unit a bit
    x or y      0    1    1      relu(s) - relu(s - 1)        two
    x xor y     0    1    0      relu(s) - 2 relu(s - 1)      two

A word that is closed is 0: two is taken from s for each literal that is absent.

Shifts by an amount that is itself data: for every amount s one conjunction of a bit and the literals of s.

    left          bit i  =  sum over s <= i of           [amount = s] and x_(i - s)
    right         bit i  =  sum over s < n - i of        [amount = s] and x_(i + s)
    arithmetic    the same, and the highest bit of x where the amount is n - i or more

No two amounts hold at once, so the sums are 0 or 1. n (n + 1) / 2 units a direction for words of n = 2^k bits and amounts of
k bits; the arithmetic shift has n - 1 more, one for each amount.

Lanes, parts of a word, are chosen by the low bits of an address. `lane_where` moves one of n / size lanes to the lowest
bits (a load), `merged_where` puts low bits into the chosen lane of another word (a store):

    load      bit i  =  sum over lanes k of [lane = k] and word_(k size + i),          i < size
    sign      the lane's highest bit, for all bits above
    store     bit j  =  word_j, less [lane = k] and word_j, and [lane = k] and new_(j - k size),    k = j // size

No two lanes are chosen at once, so the sums are 0 or 1. n units for a load, 3 n for a store.
"""

from __future__ import annotations

import numpy as np

from punchcard.primitives.bits import number
from punchcard.primitives.literals import absent, as_numbers, bits_where, conjunction, step_where, zero_where
from punchcard.transformer.expression import Expression, relu, stack


def sum_where(a: Expression, b: Expression, carry: Expression, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of a + b + carry modulo 2^n where nothing is absent, else 0. `carry` is 0 or 1."""
    return stack(*(bit_where(number(a[: i + 1], one) + number(b[: i + 1], one) + carry, i, 0, (4 << i) - 1, missing, one)
                   for i in range(a.size)))


def carry_where(a: Expression, b: Expression, carry: Expression, missing: Expression, one: Expression) -> Expression:
    """1 where a + b + carry has a carry out of its highest bit and nothing is absent, else 0."""
    size = 1 << a.size
    return step_where(number(a, one) + number(b, one) + carry - size * one, missing, one, size - 1)


def from_where(form: Expression, first: int, low: int, high: int, missing: Expression, one: Expression) -> Expression:
    """1 where an integer form from low to high is `first` or more and nothing is absent, else 0. Two or three units.

    It is a step upwards, or 1 less a step downwards: of the two, that with the smaller numbers.
    """
    if first > high:
        return 0.0 * one
    if first <= low:
        return conjunction(missing, one)
    if high - first <= first - 1 - low:
        return step_where(form - first * one, missing, one, high - first)
    return conjunction(missing, one) - step_where((first - 1) * one - form, missing, one, first - 1 - low)


def offset_where(a: Expression, offset: Expression, low: int, high: int, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of a + offset modulo 2^n where nothing is absent, else 0, for a form from low to high."""
    return stack(*(bit_where(number(a[: i + 1], one) + offset, i, low, (2 << i) - 1 + high, missing, one)
                   for i in range(a.size)))


def bit_where(form: Expression, i: int, low: int, high: int, missing: Expression, one: Expression) -> Expression:
    """Bit i, 0 or 1, of an integer form from low to high where nothing is absent, else 0.

    All its steps are closed by the same amount, so that they are steps of one form.
    """
    power, most = 1 << i, high - low
    first = low // power
    bit: Expression = 0.0 * one
    if first % 2:  # the bit of `low` itself, from the least value on
        bit = bit + conjunction(missing, one)
    for multiple in range(first + 1, high // power + 1):
        sign = 1 if multiple % 2 else -1
        bit = bit + sign * step_where(form - multiple * power * one, missing, one, most)
    return bit


def less_where(x: Expression, y: Expression, carry: Expression, missing: Expression, one: Expression) -> Expression:
    """1 where x < y and nothing is absent, else 0; an entry for each entry of `missing`."""
    return step_where(number(y, one) - number(x, one) - carry, missing, one, (1 << x.size) - 1)


def equal_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    """1 where x = y and nothing is absent, else 0. That the low parts are the same is one of the literals."""
    return zero_where(number(x, one) - number(y, one), missing, one, 1 << x.size)


def and_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    return _above(x, y, 1, missing, one)


def or_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    return _above(x, y, 0, missing, one) - _above(x, y, 1, missing, one)


def xor_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    return _above(x, y, 0, missing, one) - 2 * _above(x, y, 1, missing, one)


def _above(x: Expression, y: Expression, least: int, missing: Expression, one: Expression) -> Expression:
    return relu(as_numbers(x, one) + as_numbers(y, one) - least * one - 2 * missing)


def left_where(x: Expression, amount: Expression, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of x shifted to the left where nothing is absent, else 0."""
    return _shifted(x, amount, missing, one, -1)


def right_where(x: Expression, amount: Expression, missing: Expression, one: Expression) -> Expression:
    """The same to the right, with zeros coming in."""
    return _shifted(x, amount, missing, one, 1)


def _shifted(x: Expression, amount: Expression, missing: Expression, one: Expression, direction: int) -> Expression:
    n = x.size
    units: list[Expression] = []
    into: list[int] = []
    for s in range(n):
        bits = range(s, n) if direction < 0 else range(n - s)
        here = missing + absent(amount, {j: s >> j & 1 for j in range(amount.size)}, one)
        source = x[: n - s] if direction < 0 else x[s:]
        units.append(bits_where(source, here.repeat(len(bits)), one))
        into += bits
    placed = np.zeros((n, len(into)))
    placed[into, np.arange(len(into))] = 1.0
    return stack(*units).through(placed)


def sign_where(x: Expression, amount: Expression, missing: Expression, one: Expression) -> Expression:
    """What comes in from above in an arithmetic shift to the right, where nothing is absent: the bits, 0 or 1."""
    n = x.size
    units = [bits_where(x[n - 1], missing + absent(amount, {j: s >> j & 1 for j in range(amount.size)}, one), one)
             for s in range(1, n)]
    comes = np.array([[float(i + s >= n) for s in range(1, n)] for i in range(n)])
    return stack(*units).through(comes)


def lane_where(word: Expression, size: int, lane: Expression, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of the chosen lane where nothing is absent, else 0. `lane` are the ±1 bits of its number."""
    chosen = 0.0 * one
    for k, here in enumerate(_lanes(word, size, lane, missing, one)):
        chosen = chosen + bits_where(word[k * size : (k + 1) * size], here.repeat(size), one)
    return chosen.repeat(size)


def merged_where(word: Expression, new: Expression, size: int, lane: Expression, missing: Expression,
                 one: Expression) -> Expression:
    """The bits, 0 or 1, of a word whose chosen lane is the lowest bits of `new`, where nothing is absent, else 0."""
    parts = []
    for k, here in enumerate(_lanes(word, size, lane, missing, one)):
        old = word[k * size : (k + 1) * size]
        parts.append(bits_where(old, missing.repeat(size), one) - bits_where(old, here.repeat(size), one)
                     + bits_where(new[:size], here.repeat(size), one))
    return stack(*parts)


def _lanes(word: Expression, size: int, lane: Expression, missing: Expression, one: Expression) -> list[Expression]:
    """For each lane, what is absent for it to be the chosen one."""
    return [missing + absent(lane, {j: k >> j & 1 for j in range(lane.size)}, one) for k in range(word.size // size)]
