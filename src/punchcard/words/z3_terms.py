"""Words as terms of z3. A truth that is made of truths is a Bool; other words of one bit are bit vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import z3

from punchcard.words.renderer import Renderer
from punchcard.words.word import Word

Term: TypeAlias = z3.ExprRef


def z3_terms(leaf: Callable[[Word], Term], own: Mapping[str, Callable[..., Term]] | None = None) -> Renderer[Term]:
    """`leaf` gives a bit vector of a variable's size, or for a truth a Bool. `own` renders some operations otherwise."""
    return Renderer({**TERMS, **(own or {})}, leaf)


def as_bits(term: Term) -> Term:
    """A Bool as a bit vector of one bit; a bit vector as it is."""
    return z3.If(term, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) if z3.is_bool(term) else term


def as_truth(term: Term) -> Term:
    """A bit vector of one bit as a Bool; a Bool as it is."""
    return term if z3.is_bool(term) else term == z3.BitVecVal(1, 1)


def _by_sort(on_truths: Callable[..., Term], on_bits: Callable[..., Term]) -> Callable[..., Term]:
    """An operation on truths where one of the arguments is a Bool, and on bit vectors otherwise."""
    return lambda w, *arguments: (
        on_truths(*map(as_truth, arguments)) if any(map(z3.is_bool, arguments)) else on_bits(*arguments))


def _bitwise(operation: Callable[..., Term]) -> Callable[..., Term]:
    """An operation on bit vectors alone."""
    return lambda w, *arguments: operation(w, *map(as_bits, arguments))


def _choose(w: Word, condition: Term, yes: Term, no: Term) -> Term:
    if z3.is_bool(yes) or z3.is_bool(no):
        yes, no = as_truth(yes), as_truth(no)
    return z3.If(as_truth(condition), yes, no)


TERMS: Mapping[str, Callable[..., Term]] = {
    "constant": lambda w: z3.BitVecVal(w.data, w.size),
    "add": _bitwise(lambda w, x, y: x + y),
    "subtract": _bitwise(lambda w, x, y: x - y),
    "multiply": _bitwise(lambda w, x, y: x * y),
    "quotient": _bitwise(lambda w, x, y: z3.UDiv(x, y)),
    "remainder": _bitwise(lambda w, x, y: z3.URem(x, y)),
    "and_": _by_sort(z3.And, lambda x, y: x & y),
    "or_": _by_sort(z3.Or, lambda x, y: x | y),
    "xor": _by_sort(z3.Xor, lambda x, y: x ^ y),
    "not_": _by_sort(z3.Not, lambda x: ~x),
    "shift_left": _bitwise(lambda w, x, by: x << by),
    "shift_right": _bitwise(lambda w, x, by: x >> by if w.data else z3.LShR(x, by)),
    "equal": _by_sort(lambda x, y: x == y, lambda x, y: x == y),
    "less": _bitwise(lambda w, x, y: x < y if w.data else z3.ULT(x, y)),
    "choose": _choose,
    "bits": _bitwise(lambda w, x: z3.Extract(w.data + w.size - 1, w.data, x)),
    "join": _bitwise(lambda w, low, high: z3.Concat(high, low)),
    "extend": _bitwise(lambda w, x: (z3.SignExt if w.data else z3.ZeroExt)(w.size - w.arguments[0].size, x)),
}
