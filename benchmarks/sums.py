"""Random sums and their answers, by fractions of integers: what the skill `sums` is compared with."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

DECIMALS, ROUNDED = 40, 10
SIGNS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
PHRASINGS = ("{a} {sign} {b} =", "What is {a}{sign}{b}?\nAnswer:", "What is {a} {word} {b}?")
"""The last is a message of a chat, in the tokenizer's template."""


@dataclass(frozen=True)
class Sum:
    """A question, and its answer."""

    text: str
    answer: str
    is_chat: bool = False


def written_out(value: Fraction) -> str | None:
    """A number in decimals: all of them if they end within 40; else ten, or ten from the first that is not zero on."""
    if value < 0:
        found = written_out(-value)
        return None if found is None else f"-{found}"
    whole, rest = divmod(value, 1)
    scaled = rest * 10**DECIMALS
    if scaled.denominator == 1:
        digits = str(int(scaled)).rjust(DECIMALS, "0").rstrip("0")
        return f"{whole}.{digits}" if digits else str(whole)
    first = DECIMALS - len(str(int(scaled))) if int(scaled) else DECIMALS
    kept = ROUNDED + (0 if whole else first)
    if kept > DECIMALS:
        return None
    text = str(int(value * 10**kept + Fraction(1, 2))).rjust(kept + 1, "0")
    return f"{text[:-kept]}.{text[-kept:]}".rstrip("0").rstrip(".")


def sums(digits: int, sign: str, phrasing: int, count: int, seed: int = 0) -> Iterator[Sum]:
    """Random operands of so many digits; a divisor is not 0."""
    draw = random.Random(f"{seed} {digits} {sign} {phrasing}")
    least = 0 if digits == 1 else 10 ** (digits - 1)
    for _ in range(count):
        a, b = draw.randrange(least, 10**digits), draw.randrange(max(least, sign == "/"), 10**digits)
        value = {"+": Fraction(a + b), "-": Fraction(a - b), "*": Fraction(a * b), "/": Fraction(a, b or 1)}[sign]
        answer = written_out(value)
        assert answer is not None
        yield Sum(PHRASINGS[phrasing].format(a=a, b=b, sign=sign, word=SIGNS[sign]), answer, phrasing == 2)
