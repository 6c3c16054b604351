"""Bitwise functions of two words where nothing is absent: with s = x + y, entries 0, 1 or 2,

    s           0    1    2
    x and y     0    0    1      relu(s - 1)                  one unit a bit
    x or y      0    1    1      relu(s) - relu(s - 1)        two
    x xor y     0    1    0      relu(s) - 2 relu(s - 1)      two

A word that is closed is 0: two is taken from s for each literal that is absent.
"""

from __future__ import annotations

from punchcard.primitives.literals import as_numbers
from punchcard.transformer.expression import Expression, relu


def and_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    return _above(x, y, 1, missing, one)


def or_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    return _above(x, y, 0, missing, one) - _above(x, y, 1, missing, one)


def xor_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    return _above(x, y, 0, missing, one) - 2 * _above(x, y, 1, missing, one)


def _above(x: Expression, y: Expression, least: int, missing: Expression, one: Expression) -> Expression:
    return relu(as_numbers(x, one) + as_numbers(y, one) - least * one - 2 * missing)
