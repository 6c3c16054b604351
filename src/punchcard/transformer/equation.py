"""Equation (TF) in NumPy, for weights that are arrays: a loop with the card at each of its stages.

    Attn(X) = X + sum_h V_h X softmax(lambda_h (K_h X)^T (Q_h X))
    f(X)    = Attn(X) + W2 relu(W1 Attn(X) + b1 1^T) + b2 1^T

`model.py` is the same equation as an `nn.Module`, and a test compares the two. This file is for views and circuits:

    equation.stages(layers, card)               the card before each layer, after its attention, and after the last layer
    equation.stages(layers, card, hook)         the same, with outputs observed or replaced on the way: activation patching
    equation.attention(layer, head, card)       scores and softmax weights: column j takes weights[i, j] of column i

No matrix of all columns by all columns is made of a large card: some columns attend at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

from punchcard.card.formats import AnyArray
from punchcard.transformer.weights import LayerArrays

SCORES_AT_ONCE = 1 << 22
"""Scores that are in memory at a time."""
EVERY_COLUMN = slice(None)


class Output(NamedTuple):
    """A place inside a loop whose output a hook is called with, all counted from 0.

    head     what a head adds, rows by columns; `number` is the head
    hidden   the hidden units of a layer, units by columns
    change   what the feed-forward adds, rows by columns
    """

    layer: int
    part: Literal["head", "hidden", "change"]
    number: int = 0


Hook: TypeAlias = Callable[[Output, AnyArray], AnyArray]
"""Called with each output as it is computed; what it returns is taken in its place."""


def stages(layers: Sequence[LayerArrays], card: AnyArray, hook: Hook | None = None) -> list[AnyArray]:
    """One loop: the card before each layer and after its attention, and after the last layer."""
    found = [card]
    with silent():
        for number, layer in enumerate(layers):
            for step in (attend, feed_forward):
                found.append(step(layer, found[-1], number, hook))
    return found


def attend(layer: LayerArrays, card: AnyArray, number: int = 0, hook: Hook | None = None) -> AnyArray:
    """Attn(X)."""
    attended = card.copy()
    for head in range(layer.heads):
        attended += (hook or _unchanged)(Output(number, "head", head), head_output(layer, head, card))
    return attended


def feed_forward(layer: LayerArrays, card: AnyArray, number: int = 0, hook: Hook | None = None) -> AnyArray:
    """X + W2 relu(W1 X + b1 1^T) + b2 1^T, added in this order as in the module. A hook is given both terms as one."""
    hidden = np.maximum(layer.w1 @ card + layer.b1, 0)
    found: AnyArray
    if hook is None:
        found = card + layer.w2 @ hidden + layer.b2
    else:
        hidden = hook(Output(number, "hidden"), hidden)
        found = card + hook(Output(number, "change"), layer.w2 @ hidden + layer.b2)
    return found


def head_output(layer: LayerArrays, head: int, card: AnyArray) -> AnyArray:
    """What a head adds to the card: V X softmax(lambda (K X)^T (Q X))."""
    rows, values = moved(layer, head, card)
    keys, found = layer.key[head] @ card, np.zeros_like(card)
    for part in columns_at_once(card.shape[1], card.shape[1]):
        take(found[:, part], rows, values, weights_of(layer, head, keys, card[:, part])[1])
    return found


def moved(layer: LayerArrays, head: int, card: AnyArray) -> tuple[AnyArray, AnyArray]:
    """V X without its rows of zeros: the rows that a head writes to, and what each column offers to them."""
    if not np.isfinite(card).all():  # 0 times what is not a number is not 0
        return np.arange(len(card)), layer.value[head] @ card
    rows, sources = (np.flatnonzero(layer.value[head].any(axis=axis)) for axis in (1, 0))
    return rows, layer.value[head][np.ix_(rows, sources)] @ card[sources]


def take(columns: AnyArray, rows: AnyArray, values: AnyArray, weights: AnyArray) -> None:
    """Add to some columns what they take: to these rows values, and to all others 0, by weights that may not be numbers."""
    columns[rows] += values @ weights
    columns += np.zeros(len(weights), columns.dtype) @ weights


def attention(layer: LayerArrays, head: int, card: AnyArray, part: slice = EVERY_COLUMN) -> tuple[AnyArray, AnyArray]:
    """Scores and softmax weights of a head, for the columns of `part`: both are columns that give by columns that take."""
    with silent():
        return weights_of(layer, head, layer.key[head] @ card, card[:, part])


def weights_of(layer: LayerArrays, head: int, keys: AnyArray, taking: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Scores and softmax weights of some columns' queries, given the keys that they are compared with."""
    scores = keys.T @ (layer.query[head] @ taking)
    return scores, softmax(layer.temperature[head] * scores)


def softmax(scores: AnyArray) -> AnyArray:
    """Down each column."""
    powers = np.exp(scores - scores.max(axis=0))
    found: AnyArray = powers / powers.sum(axis=0)
    return found


def columns_at_once(taking: int, giving: int) -> Iterator[slice]:
    """Columns in parts, so that no more scores are in memory than `SCORES_AT_ONCE`."""
    step = max(1, SCORES_AT_ONCE // giving)
    return (slice(first, min(first + step, taking)) for first in range(0, taking, step))


def _unchanged(output: Output, computed: AnyArray) -> AnyArray:
    return computed


def silent() -> AbstractContextManager[object]:
    """No warnings of what overflows: it is infinite, or not a number, as the equation has it."""
    return np.errstate(over="ignore", invalid="ignore")


@cache
def _thread_pools() -> ThreadpoolController:
    """The thread pools of NumPy's libraries; looking for them takes a while."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Let NumPy use one thread: for small matrices two are slower, ten times so if other programs are at work."""
    limited: AbstractContextManager[object] = _thread_pools().limit(limits=1)
    return limited
