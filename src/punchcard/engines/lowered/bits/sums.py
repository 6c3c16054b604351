"""Sums of functions of bits: which of their terms are the bits of one word, and which stand alone."""

from __future__ import annotations

from typing import TypeAlias

from punchcard.engines.lowered.bits.builder import WordBuilder, is_flag
from punchcard.engines.lowered.bits.packing import alike
from punchcard.engines.lowered.bits.table import BitTable, scaled
from punchcard.words.word import Word

Sum: TypeAlias = dict[BitTable, int]
"""Functions that are 0 or 1, and their coefficients in units of 2^-64."""
Units: TypeAlias = list[tuple[int, int, int]]
"""ReLUs of one number: c relu(factor x + bias)."""
Line: TypeAlias = tuple[tuple[Word, ...], tuple[int, ...], tuple[int, ...], int, int]


def needed_terms(terms: Sum, constant: int, alone: Sum, units: Units) -> Sum:
    """Of the functions that stand alone in a sum: those without which every ReLU of the sum is closed."""
    upwards = units[0][1] > 0
    if any((factor > 0) != upwards for _, factor, _ in units):
        return {}
    most = constant + sum(c for c in terms.values() if (c > 0) == upwards)
    return {function: c for function, c in alone.items()
            if all(scaled(factor, most - (abs(c) if upwards else -abs(c))) + bias <= 0 for _, factor, bias in units)}


def without_gates(terms: Sum) -> tuple[Sum, Sum]:
    """A sum without its gates, and the gates: bits that stand alone in it, where others are the bits of one word."""
    lines: dict[Line, list[BitTable]] = {}
    for function, c in terms.items():
        lines.setdefault(_line(function, c), []).append(function)
    several = {function: terms[function] for line in lines.values() if len(line) > 1 for function in line}
    if not several:
        return terms, {}
    return several, {function: c for function, c in terms.items() if function not in several}


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
