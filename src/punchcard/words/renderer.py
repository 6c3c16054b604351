"""What a renderer is: a table that says what each operation becomes. Every word is rendered once, its arguments first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar, cast

from punchcard.words.word import Word, constant

Value = TypeVar("Value")


class Renderer(Generic[Value]):
    """`table` has a function for each op, of the word and what its arguments became. `leaf` renders a variable."""

    def __init__(self, table: Mapping[str, Callable[..., Value]], leaf: Callable[[Word], Value]) -> None:
        self._table = {**table, "variable": leaf}
        self.rendered: dict[Word, Value] = {}
        """What words have become, arguments first."""

    def __call__(self, word: Word) -> Value:
        done, pending = self.rendered, [word]
        while pending:
            top = pending[-1]
            if top in done:
                pending.pop()
                continue
            known = self._table.get(top.op)
            parts = top.arguments if known else (written_out(top),)
            missing = [part for part in parts if part not in done]
            if missing:
                pending += missing
                continue
            pending.pop()
            values = [done[part] for part in parts]
            done[top] = known(top, *values) if known else values[0]
        return done[word]


def written_out(word: Word) -> Word:
    """A sum or a function by its table, in words of the other operations."""
    if word.op == "sum":
        coefficients, number = cast(tuple[tuple[int, ...], int], word.data)
        total = constant(number, word.size)
        for c, term in sorted(zip(coefficients, word.arguments, strict=True), key=lambda pair: pair[0] < 0):
            part = term if abs(c) == 1 else term * abs(c)
            total = total - part if c < 0 else part if total.value == 0 else total + part
        return total
    return _function(cast(tuple[int, ...], word.data), word.arguments, word.size)


def _function(table: tuple[int, ...], words: tuple[Word, ...], size: int) -> Word:
    """The last word decides between two smaller functions."""
    zero, ones = constant(0, size), constant(-1, size)
    if not any(table) or all(table):
        return ones if any(table) else zero
    half, last, rest = len(table) // 2, words[-1], words[:-1]
    low, high = (_function(part, rest, size) for part in (table[:half], table[half:]))
    if low is high:
        return low
    if high in (zero, ones):
        last, low, high = ~last, high, low
    if low is zero:
        return last & high
    if low is ones:
        return ~last | high
    if all(x != y for x, y in zip(table[:half], table[half:], strict=True)):
        return words[-1] ^ low
    return low ^ (last & (high ^ low))
