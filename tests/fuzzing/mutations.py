"""Seeded damage to texts and bytes, and values that are wrong almost everywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

LONGEST = 1 << 16
"""Bytes that a repeated part may grow to."""
LONG = 0.005
"""The share of repetitions that grow so far; the others stay small, so that an input costs little."""

WINDOW = 1 << 12
"""Of more bytes than these only a part is changed, so that the search for words and numbers costs little."""

NUMBERS = ("0", "-1", "1", "2", "7", "-0", "127", "128", "255", "256", "32767", "32768", "-32769", "65536", "1000000",
           str(2**31), str(-2**31 - 1), str(2**63), str(2**64), str(10**30), "9" * 5000, "0x10", "0b1", "0x", "1_0", "+3",
           "1.5", "-0.0", ".5", "5.", "1e3", "1e308", "1e309", "-1e400", "5e-324", "1e-400", "nan", "inf", "-inf", "1/3",
           "1/0", "²", "٣", "½", "１", "1j", "'A'", "''", "'")
WORDS = ("", " ", "\0", "\t", "\r", "\n", "\r\n", "\x0b", "\x85", "\u2028", "\ufeff", "\u202e", "é", "😀", "ß", "\ud800",
         "\\", "'", '"', "`", "$", "%", "%s", "{}", "{0}", "#", ";", ":", ",", ".", "=", "==", "+", "-", "--", "*", "**",
         "/", "//", "(", ")", "[", "]", "{", "}", "<", ">", "@", "?", "!", "|", "&", "^", "~", "_", "x" * 300, "None",
         "__class__", "(" * 50, "[" * 50, "-" * 50)
JSON_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 255, 10**6, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"), "",
    "x", "0", "\0", "float64", "float16", "int8", "subleq", "fleq", "mul", "huber", "relu", [], [0], [[]], ["x"], {},
    {"x": 1}, [1] * 100, "y" * 10_000)

Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def encoded(text: str) -> bytes:
    """As UTF-8; half of a surrogate pair, which is none, as the bytes it would have."""
    return text.encode("utf-8", "surrogatepass")


def mutated(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    """The data with one change or a few, mostly of one; `samples` lend their parts."""
    if len(data) > WINDOW:
        at = rng.randrange(len(data) - WINDOW)
        part = mutated(rng, data[at : at + WINDOW], [sample[at : at + WINDOW] for sample in samples])
        return data[:at] + part + data[at + WINDOW :] if rng.random() < 0.9 else data[:at] + part
    while True:
        data = rng.choice(CHANGES)(rng, data, samples)
        if rng.random() < 0.5:
            return data


def forged(rng: random.Random, value: Any) -> Any:
    """A value of JSON, with one of its parts replaced, dropped, doubled or changed a little."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if rng.random() < 0.05:
            return {**value, rng.choice(WORDS): value[key]}
        return {**value, key: forged(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        kept = forged(rng, value[index])
        return value[:index] + rng.choice(([], [kept], [kept], [kept, kept])) + value[index + 1:]
    if isinstance(value, str) and value and rng.random() < 0.5:
        return mutated(rng, encoded(value), [encoded(value)]).decode("utf-8", "replace")
    if isinstance(value, int | float) and rng.random() < 0.3:
        return value + rng.choice((1, -1, 0.5))
    return rng.choice(JSON_VALUES)


def _place(rng: random.Random, data: bytes) -> tuple[int, int]:
    """Where a part begins and ends; short ones are more likely."""
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + 2 ** rng.randrange(7))


def _flip(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    if not data:
        return b"\0"
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]


def _byte(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2):]


def _drop(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    start, end = _place(rng, data)
    return data[:start] + data[end:]


def _cut(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    return data[:rng.randrange(len(data) + 1)]


def _word(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + encoded(rng.choice(WORDS)) + data[at:]


def _number(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    """Another number where one stands."""
    found = list(re.finditer(rb"-?[0-9][0-9.]*", data))
    if not found:
        return _word(rng, data, samples)
    match = rng.choice(found)
    return data[:match.start()] + encoded(rng.choice(NUMBERS)) + data[match.end():]


def _lend(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    """A word of a sample instead of one of the data's."""
    lent: list[bytes] = re.findall(rb"[\w.]+|[^\w\s]", rng.choice(samples)) or [b""]
    found = list(re.finditer(rb"[\w.]+|[^\w\s]", data))
    if not found:
        return rng.choice(lent)
    match = rng.choice(found)
    return data[:match.start()] + rng.choice(lent) + data[match.end():]


def _lines(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    """A line dropped, doubled, moved, or taken from a sample."""
    lines = data.split(b"\n")
    taken = lines.pop(rng.randrange(len(lines)))
    if rng.random() < 0.3:
        taken = rng.choice(rng.choice(samples).split(b"\n"))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), taken)
    return b"\n".join(lines)


def _splice(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    other = rng.choice(samples)
    return data[:rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1):]


def _repeat(rng: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    start, end = _place(rng, data)
    part = data[start:end] or encoded(rng.choice(WORDS))
    wanted = LONGEST if rng.random() < LONG else rng.randrange(2, 200)
    return data[:start] + part * (wanted // max(1, len(part)) + 1) + data[end:]


CHANGES: tuple[Change, ...] = (_flip, _byte, _drop, _cut, _word, _number, _number, _lend, _lend, _lines, _splice, _repeat)
