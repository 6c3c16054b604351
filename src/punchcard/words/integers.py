"""Words as numbers: Python's integers; or NumPy arrays of 64-bit integers, for words of up to 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, TypeVar

from punchcard.words.renderer import Renderer
from punchcard.words.word import Word, constant

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
Value = TypeVar("Value")


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
        return Renderer(_table(numbers, numbers, pick), lambda leaf: numbers(values[leaf.data]))(word)


def simplify(word: Word, leaf: Callable[[Word], Word] = lambda word: word) -> Word:
    """The word with its variables replaced, and with a constant wherever all that it depends on is known."""
    def rebuild(old: Word, *arguments: Word) -> Word:
        found = Word(old.op, arguments, old.size, old.data)
        if found.arguments and all(argument.value is not None for argument in found.arguments):
            return constant(evaluate(found, {}), found.size)
        return found

    return Renderer(dict.fromkeys((*INTEGERS, "sum", "logic"), rebuild), leaf)(word)


def _table(number: Callable[[int], Value], truth: Callable[[object], Value],
           pick: Callable[[Value, Value, Value], Value]) -> Mapping[str, Callable[..., Value]]:
    """The operations, by what a number, a truth and a choice are."""
    zero, one = number(0), number(1)

    def ones(size: int) -> Value:
        return number((1 << size) - 1)

    def half(size: int) -> Value:
        return number(1 << size - 1)

    return {
        "constant": lambda w: number(w.data),
        "add": lambda w, x, y: x + y & ones(w.size),
        "subtract": lambda w, x, y: x - y & ones(w.size),
        "multiply": lambda w, x, y: x * y & ones(w.size),
        "quotient": lambda w, x, y: pick(y, x // pick(y, y, one), ones(w.size)),
        "remainder": lambda w, x, y: pick(y, x % pick(y, y, one), x),
        "and_": lambda w, x, y: x & y,
        "or_": lambda w, x, y: x | y,
        "xor": lambda w, x, y: x ^ y,
        "not_": lambda w, x: x ^ ones(w.size),
        "shift_left": lambda w, x, by: x << by & ones(w.size),
        "shift_right": lambda w, x, by: (
            (x ^ (sign := pick(x & half(w.size), ones(w.size), zero))) >> by ^ sign if w.data else x >> by),
        "equal": lambda w, x, y: truth(x == y),
        "less": lambda w, x, y: truth(
            x ^ (flip := half(w.arguments[0].size)) < y ^ flip if w.data else x < y),
        "choose": lambda w, condition, yes, no: pick(condition, yes, no),
        "bits": lambda w, x: x >> number(w.data) & ones(w.size),
        "join": lambda w, low, high: low | high << number(w.arguments[0].size),
        "extend": lambda w, x: (x ^ (sign := half(w.arguments[0].size))) - sign & ones(w.size) if w.data else x,
    }


INTEGERS = _table(int, lambda truth: int(bool(truth)), lambda truth, yes, no: yes if truth else no)
