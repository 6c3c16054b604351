"""Sums of ReLUs of an integer that are flat but for steps: where the steps are, and whether they are periodic.

A sum of c relu(a T + b) is piecewise linear in T, and a hidden unit of a design of bits is mostly part of a step:
relu(T + 1) - relu(T) is [T >= 0] for an integer T. What is exact here is exact for the weights: integers and fractions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeVar

Number = TypeVar("Number", int, Fraction)


def steps_of(low: int, high: int, kinks: Iterable[tuple[Number, Number]], value: Callable[[int], Number],
             most: int | None = None) -> list[tuple[int, Number]] | None:
    """A piecewise linear function of an integer from `low` to `high` by its steps: (from, value) in order.

    The first place is `low`. The kinks are fractions, between which the function is linear.
    None: the function is not flat between its steps, or has more than `most` of them.

    Lemma. Take both ends, and the integers next to each kink, on both sides. Between two such places that follow each other
    and are further than 1 apart there is no kink, so the function is linear there: it is flat if it is equal at both,
    and not flat otherwise.
    """
    places = {low, high}
    for numerator, denominator in kinks:
        below = numerator // denominator
        places.update(place for place in (below, below + 1) if low <= place <= high)
    found: list[tuple[int, Number]] = []
    before = low
    for place in sorted(places):
        now = value(place)
        if not found or found[-1][1] != now:
            if found and place - before > 1:
                return None
            found.append((place, now))
            if most is not None and len(found) > most + 1:
                return None
        before = place
    return found


class Period(NamedTuple):
    """Where the second of two values begins, for how long it lasts, and that it begins again after 2^bits."""

    first: int
    length: int
    bits: int


def period_of(low: int, high: int, places: Sequence[int]) -> Period | None:
    """The period of a function of an integer from `low` to `high` with two values that alternate at these places.

    Lemma. The function has its second value exactly where (T - first) mod 2^bits < length. For the places are those where
    this condition changes, from `first` on; below `first` it next holds at first - 2^bits + length - 1, which is below
    `low`; and it next changes after the last place at a place above `high`.
    None: there are fewer than two places, or they do not repeat after a power of two.
    """
    if len(places) < 2:
        return None
    first, length = places[0], places[1] - places[0]
    if len(places) == 2:  # any period that is long enough
        most = max(first - low + length, high - first + 1)
        bits = (most - 1).bit_length()
    else:
        bits = (places[2] - first).bit_length() - 1
    period = 1 << bits
    ends = [first + k // 2 * period + k % 2 * length for k in range(len(places) + 1)]
    if first - low > period - length or list(places) != ends[:-1] or high >= ends[-1]:
        return None
    return Period(first, length, bits)
