"""Lemmas on integers, for all of them: what products and quotients have to do with their digits.

A solver of words cannot tell that a sum of 256 bits is a product. So a proof speaks of products and quotients as words of
which it knows just what these lemmas say (`products`). Each is proven once, by a solver of integers, in steps that are
linear or nearly so. Induction over the bits or digits of a number is written out as its beginning and its step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import z3

from punchcard.proof.forms import Term
from punchcard.proof.solver import Failed, Undecided, check

SECONDS = 60
"""So long may a step of a lemma take; each takes some hundredths of a second."""
HALF, WORD = 1 << 16, 1 << 32
BASE = 16
"""Long division is by digits of four bits."""

Steps = Iterator[tuple[str, list[Term], Term]]
"""What is proven, what is given, and what follows."""


class Lemma(NamedTuple):
    """A statement on integers, and the steps that show it."""

    about: str
    steps: Callable[[], Steps]


def _bits_of_products() -> Steps:
    low, rest, other = z3.Ints("low rest other")
    yield ("the product of an even number and one bit more", [z3.Or(low == 0, low == 1)],
           (2 * rest + low) * other == 2 * (rest * other) + z3.If(low == 1, other, 0))


def _halves() -> Steps:
    a, b, c, d = z3.Ints("a b c d")
    yield ("the product of numbers by their halves", [],
           (HALF * a + b) * (HALF * c + d) == WORD * (a * c) + HALF * (a * d + b * c) + b * d)
    low, middle, high, carry, more, last, rest = z3.Ints("low middle high carry more last rest")
    yield ("the carries between them", [low == HALF * carry + last, middle + carry == HALF * more + rest],
           WORD * high + HALF * middle + low == WORD * (high + more) + HALF * rest + last)


def _signs() -> Steps:
    x, y = z3.Ints("x y")
    for s in (0, 1):
        for t in (0, 1):
            yield (f"the product of numbers, the first {'negative' * s or 'not'}, the second {'negative' * t or 'not'}", [],
                   (x - WORD * s) * (y - WORD * t) == x * y - WORD * (s * y + t * x) + WORD * WORD * s * t)


def _long_division() -> Steps:
    number, quotient, divisor, rest, digit = z3.Ints("number quotient divisor rest digit")
    found, more, less, factor = z3.Ints("found more less factor")
    divides = [divisor > 0, rest >= 0, rest < divisor, number == quotient * divisor + rest]
    so_far = BASE * rest + digit
    a_digit = [digit >= 0, digit < BASE]

    def fits(value: Term | int) -> Term:
        return z3.And(so_far - value * divisor >= 0, so_far - value * divisor < divisor)

    yield "it begins with 0", [divisor > 0], z3.And(0 * divisor + 0 == 0, divisor > 0)
    yield "there is a next digit", [*divides[:3], *a_digit], z3.Or(*(fits(value) for value in range(BASE)))
    yield ("the next digit and rest are those of the longer number",
           [*divides, *a_digit, more == found * divisor, fits(found)],
           z3.And(BASE * number + digit == (BASE * quotient + found) * divisor + (so_far - more), so_far - more < divisor))
    for value in range(BASE):
        yield (f"where the digit is {value}, a multiple of the divisor is in it just where its factor is {value} at most",
               [divisor > 0, fits(value)],
               z3.And(*((so_far >= times * divisor) == (times <= value) for times in range(1, BASE))))
    yield "a multiple is as large as its number", [factor >= 1, divisor > 0], factor * divisor >= divisor
    other = quotient + factor
    yield ("quotient and rest are the only ones",
           [*divides, factor >= 1, more == factor * divisor, more >= divisor, less >= 0],
           number != other * divisor + less)
    nothing = [divisor == 0, rest == number, number >= 0, *a_digit]
    yield "by 0 nothing is taken away", nothing, so_far - (BASE - 1) * divisor == BASE * number + digit
    yield "every multiple of 0 is in it", nothing, z3.And(*(so_far >= times * divisor for times in range(1, BASE)))


LEMMAS = {
    "products by bits": Lemma("a product is the sum of 2^(i + j) over the bits i and j that are 1", _bits_of_products),
    "products by halves": Lemma("a product of words is that of their halves", _halves),
    "signs of products": Lemma("a product with signs is the product without, less 2^32 times the other word", _signs),
    "long division": Lemma("quotient and rest, digit after digit; by 0 all digits are 15", _long_division),
}


def show_lemma(name: str) -> int:
    """Prove a lemma, step by step; how many there were. Raises `Failed` where one does not hold."""
    count = 0
    for about, given, then in LEMMAS[name].steps():
        solver = z3.Solver()
        solver.set("timeout", 1000 * SECONDS)
        solver.add(*given, z3.simplify(z3.Not(then), som=True))  # products of sums as sums of products
        answer = check(solver)
        if answer == z3.unknown:
            raise Undecided(f"{name}, {about}: {solver.reason_unknown()}")
        if answer == z3.sat:
            raise Failed(f"lemma, {name}: {about}", None)
        count += 1
    return count
