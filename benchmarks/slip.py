"""A slip of the paper: what is printed, and the smallest input on which it fails, with both results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np

from punchcard.machines.fleq.functions import Array

T = TypeVar("T")


class Slip(NamedTuple):
    """What the paper prints; the smallest input on which that fails; what it gives there; what is right there.

    `run` is False for what is wrong in the wording or in a listing, so that there is nothing to compute: it was read.
    """

    printed: str
    input: str
    gives: str
    right: str
    run: bool = True


def relu(x: float) -> float:
    return max(x, 0.0)


def softmax(scores: Array) -> Array:
    """Down each column."""
    e = np.exp(scores - scores.max(axis=0))
    return np.asarray(e / e.sum(axis=0))


def first(inputs: Iterable[T], printed: Callable[[T], object], right: Callable[[T], object]) -> tuple[T, object, object]:
    """The first input, from the smallest on, for which the print and what is right differ; and both."""
    for x in inputs:
        if (gives := printed(x)) != (wanted := right(x)):
            return x, gives, wanted
    raise ValueError("the print is right for all of these inputs")


def shown(value: object) -> str:
    """A value in a few characters."""
    if isinstance(value, np.ndarray):
        value = np.round(value, 3).tolist()
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
