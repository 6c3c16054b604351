"""An orthonormal basis of a Krylov space, span(b, A b, A^2 b, ...), and A restricted to it: H = Q^T A Q.

Arnoldi's iteration makes each A q orthogonal to all earlier columns; H is upper Hessenberg. Lanczos' is for symmetric
matrices, where all but the last two components vanish by themselves: H is tridiagonal. Here Lanczos too frees the
vector of all of them, as one does against the well known loss of orthogonality; so both are one program, and what
differs is what H is promised to be.
"""

from __future__ import annotations

import numpy as np

from punchcard.linalg.programs.normalise import LENGTH
from punchcard.linalg.programs.orthogonal import declare, newton_counter, orthogonal_round
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.isa import Array, FleqProgram

RANGE = 2.0


def arnoldi_program(matrix: Array, dimension: int, steps: int, start: Array | None = None) -> FleqProgram:
    """`Q`, a basis of the Krylov space of this dimension, and `H`, for a matrix with ||A|| <= 1.

    `start` is b, by default ones; its length does not matter. `steps` of Newton's iteration normalise each column.
    """
    d = len(matrix)
    first = np.ones(d) if start is None else np.asarray(start, dtype=np.float64).reshape(d)
    p = Builder()
    a = p.matrix("A", matrix)
    declare(p, d, dimension, LENGTH * first / np.linalg.norm(first))
    aq, h = p.matrix("AQ", shape=(d, dimension)), p.matrix("H", shape=(dimension, dimension))
    each, newton = Counter(p, "t", dimension), newton_counter(p, steps)
    p.transpose(a, into=a)
    with each.repeat("column"):
        orthogonal_round(p, newton)
        p.mul(a, "u", into="u")  # the next vector is A q, up to its length
    p.mul(a, "Q", into=aq)
    p.mul("Q", aq, into=h)
    return p.program(RANGE)
