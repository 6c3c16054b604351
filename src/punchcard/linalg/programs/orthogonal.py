"""Gram-Schmidt as a loop over columns: what QR decomposition and the Krylov methods share.

A new vector u is freed of its components along the columns of Q and normalised, and both again: a vector that nearly
depends on the others is short after the first time, so that the error of the product is large beside it. Then it is
stored as the next column. Columns of Q that are not there yet are 0 and change nothing, so every round is the same; only
the pointer of the instruction `store` moves on.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from punchcard.linalg.programs import normalise
from punchcard.linalg.programs.normalise import AT_ONCE
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter


def declare(p: Builder, rows: int, columns: int, start: ArrayLike | None = None) -> None:
    """Q and what a round needs."""
    p.matrix("Q", shape=(rows, columns))
    p.matrix("Qt", shape=(columns, rows))
    p.vector("r", columns)
    p.vector("p", rows)
    normalise.declare(p, rows, start)


def newton_counter(p: Builder, steps: int) -> Counter:
    """Counts the steps of `normalise`, three at once; their number is rounded up."""
    return Counter(p, "k", math.ceil(steps / AT_ONCE))


def orthogonal_round(p: Builder, newton: Counter) -> None:
    """u, made orthogonal to Q and normalised, becomes the next column of Q."""
    p.transpose("Q", into="Qt")
    _project(p)
    with newton.repeat("normalise"):
        normalise.normalise(p, AT_ONCE)
    newton.restart()
    _project(p)
    normalise.normalise(p, AT_ONCE)
    p.transpose("u", into="ut")
    store = p.label("store")
    p.mul("ut", "shorten", into=p["Q"][0])
    p.incr_pointer(store, "c")


def _project(p: Builder) -> None:
    """Take from u what lies along the columns of Q."""
    p.mul("Q", "u", into="r")
    p.mul("Qt", "r", into="p")
    p.sub("u", "p", into="u")
