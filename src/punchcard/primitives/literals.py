"""Literals and conjunctions: one hidden unit says whether all of several bits are as they should be.

A literal is a ±1 bit, or its negation, as 0 or 1: (one + b) / 2 or (one - b) / 2. With `absent` the number of literals that
do not hold,

    [all hold]             relu(one - absent)                one unit
    [all hold] and bit     relu((one + bit) / 2 - absent)    one unit

    absent       0      1 or more
    first        1      0
    second       bit    0

A sum of absent literals is again one, so a gate is more literals in the same unit, and costs no unit of its own. In columns
where `one` is 0 and the bits are 0, all of it is 0.

`decide` sorts codes of bits into classes, by a decision tree. A leaf of the tree is a conjunction, and no two leaves hold
at once: whatever the bits are, just one class is chosen. Codes that are in no class go to any.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from punchcard.transformer.expression import Expression, relu

Code: TypeAlias = tuple[int, ...]
Cube: TypeAlias = Mapping[int, int]
"""What some bits of a code must be, by their places."""
Class = TypeVar("Class", bound=Hashable)


def as_numbers(bits: Expression, one: Expression) -> Expression:
    """±1 bits as 0 and 1."""
    return 0.5 * (bits + one)


def absent(bits: Expression, cube: Cube, one: Expression) -> Expression:
    """How many of the bits are not what the cube says; 0 where all are."""
    weights = [0.0] * bits.size
    for place, value in cube.items():
        weights[place] = -0.5 if value else 0.5
    return bits.total(weights) + 0.5 * len(cube) * one


def conjunction(missing: Expression, one: Expression) -> Expression:
    """1 where nothing is absent, else 0. One unit."""
    return relu(one - missing)


def bits_where(bits: Expression, missing: Expression, one: Expression) -> Expression:
    """±1 bits as 0 and 1 where nothing is absent, else 0. One unit a bit."""
    return relu(as_numbers(bits, one) - missing)


def step_where(form: Expression, missing: Expression, one: Expression, most: float) -> Expression:
    """[F >= 0] of an integer form where nothing is absent, else 0; F is `most` at most. Two units.

    nothing absent: relu(F + 1) - relu(F) is 1 for F >= 0, and 0 for F <= -1.    else: both are closed by most + 1.
    """
    closed = (most + 1) * missing
    return relu(form + one - closed) - relu(form - closed)


def zero_where(form: Expression, missing: Expression, one: Expression, most: float) -> Expression:
    """[F = 0] of an integer form where nothing is absent, else 0: relu(F + 1) - 2 relu(F) + relu(F - 1). Three units."""
    closed = (most + 1) * missing
    return relu(form + one - closed) - 2 * relu(form - closed) + relu(form - one - closed)


def decide(classes: Mapping[Code, Class]) -> dict[Class, list[Cube]]:
    """The leaves of a decision tree, by class: for every code the leaf where it is, and no other, holds."""
    found: dict[Class, list[Cube]] = {name: [] for name in dict.fromkeys(classes.values())}
    pending: list[tuple[dict[Code, Class], dict[int, int]]] = [(dict(classes), {})]
    while pending:
        codes, cube = pending.pop()
        if len(set(codes.values())) == 1:
            found[next(iter(codes.values()))].append(cube)
            continue
        place = min(_places(codes), key=lambda place: _mixed(codes, place))
        for value in (1, 0):
            pending.append(({code: name for code, name in codes.items() if code[place] == value}, {**cube, place: value}))
    return found


def _places(codes: Mapping[Code, Class]) -> Sequence[int]:
    """The places in which codes differ."""
    return [place for place in range(len(next(iter(codes)))) if len({code[place] for code in codes}) > 1]


def _mixed(codes: Mapping[Code, Class], place: int) -> int:
    """How many classes are left in both halves together, less is better; a class in both counts twice."""
    return sum(len({name for code, name in codes.items() if code[place] == value}) ** 2 for value in (0, 1))
