"""What a renderer is: a table that says what each operation becomes. Every word is rendered once, its arguments first.

The plainest renderers give numbers: Python's integers, or NumPy arrays of 64-bit integers, for words of up to 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from punchcard.words.word import INTEGERS, Word, constant, operations

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]

Value = TypeVar("Value")


class Renderer(Generic[Value]):
    """`table` has a function for each op, of the word and what its arguments became. `leaf` renders a variable.

    `rewrite` gives a word that is the same number and to be rendered instead, or None.
    """

    def __init__(self, table: Mapping[str, Callable[..., Value]], leaf: Callable[[Word], Value],
                 rewrite: Callable[[Word], Word | None] = lambda word: None) -> None:
        self._table, self._rewrite = {**table, "variable": leaf}, rewrite
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
            other = self._rewrite(top) or (None if known else written_out(top))
            parts = top.arguments if other is None else (other,)
            missing = [part for part in parts if part not in done]
            if missing:
                pending += missing
                continue
            pending.pop()
            values = [done[part] for part in parts]
            done[top] = known(top, *values) if known is not None and other is None else values[0]
        return done[word]


def evaluate(word: Word, values: Mapping[Hashable, int]) -> int:
    """The number of a word, for numbers of its variables by name."""
    return Renderer(INTEGERS, lambda leaf: values[leaf.data])(word)


def evaluate_arrays(word: Word, values: Mapping[Hashable, Numbers]) -> Numbers:
    """The numbers of a word, for arrays of numbers of its variables. The arrays are brought to one shape, as NumPy does."""
    import numpy as np

    def numbers(value: object) -> Numbers:
        return np.asarray(value).astype(np.uint64)

    def pick(truth: Numbers, yes: Numbers, no: Numbers) -> Numbers:
        return np.where(truth != 0, yes, no)

    with np.errstate(over="ignore"):
        return Renderer(operations(numbers, numbers, pick), lambda leaf: numbers(values[leaf.data]))(word)


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
