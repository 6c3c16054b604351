"""What each operation of words computes, on unsigned numbers: integers, or arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

Value = TypeVar("Value")


def operations(number: Callable[[int], Value], truth: Callable[[object], Value],
               pick: Callable[[Value, Value, Value], Value]) -> Mapping[str, Callable[..., Value]]:
    """The operations, by what a number, a truth and a choice are: functions of a word and of its arguments' numbers."""
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


INTEGERS = operations(int, lambda truth: int(bool(truth)), lambda truth, yes, no: yes if truth else no)
