"""The programs that are timed. None of them ever ends: a run is as long as it is asked to be."""

from __future__ import annotations

import numpy as np

from punchcard.machines.fleq.functions import Array
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text import assembler as fleq
from punchcard.machines.subleq import text as subleq
from punchcard.machines.subleq.isa import Program

MULTIPLY = """
; product = a * b by adding, over and over; products wrap, as words do
.data
a        1234
b        1000
product  0
count    0
minus_a  0
minus_b  0
one      1
zero     0
.code
        subleq a, minus_a
        subleq b, minus_b
again:  subleq product, product
        subleq count, count
        subleq minus_b, count
loop:   subleq minus_a, product, next
next:   subleq one, count, again
        subleq zero, zero, loop
"""

NEWTON = """
# X = A^-1 by Newton's iteration, X <- X (2 I - A X) from X = E A^T with E = eps I, over and over
.data
A      matrix {d}x{d}   {A}
E      matrix {d}x{d}   {E}
two    matrix {d}x{d}   {two}
X      matrix {d}x{d}
At     matrix {d}x{d}
Xt     matrix {d}x{d}
Y      matrix {d}x{d}
first  scalar {first}
t      scalar
one    scalar 1
zero   scalar
.code
again:  X = mul(A, E)
        At = transpose(A)
        t = add(first, zero)
loop:   Y = mul(At, X)
        Y = sub(two, Y)
        Xt = transpose(X)
        X = mul(Xt, Y)
        t = add(t, one); if t <= 0 goto loop
        goto again
"""

SGD = """
# w by stochastic gradient descent for y = w^T x, point by point, over and over; instructions walk through the data
.data
x      matrix {d}x{points}   {x}
y      matrix 1x{points}   {y}
w      vector {d}
row    matrix 1x{d}
guess  scalar
error  scalar
eta    scalar {eta}
change vector {d}
first  scalar {first}
t      scalar
one    scalar 1
zero   scalar
.code
again:  t = add(first, zero)
predict: guess = mul(w, x[0])
compare: error = sub(y[0], guess)
        error = mul(error, eta)
turn:   row = transpose(x[0])
        change = mul(row, error)
        w = add(w, change)
        incr_pointer(predict.b)
        incr_pointer(compare.a)
        incr_pointer(turn.a)
        t = add(t, one); if t <= 0 goto predict
        reset_pointer(predict.b, x)
        reset_pointer(compare.a, y)
        reset_pointer(turn.a, x)
        goto again
"""

ROUNDS = 12
"""Newton's iterations until it starts again: enough to converge at any of the sizes."""


def multiply() -> Program:
    """SUBLEQ: products by repeated addition, without end."""
    return subleq.assemble(MULTIPLY)


def newton(d: int) -> FleqProgram:
    """FLEQ: the inverse of a d x d matrix, again and again."""
    rng = np.random.default_rng(d)
    a = np.round(rng.uniform(-1, 1, (d, d)) + 2 * np.eye(d), 3)
    eps = 1 / (np.abs(a).sum(axis=0).max() * np.abs(a).sum(axis=1).max())
    return fleq.assemble(NEWTON.format(d=d, A=_values(a), E=_values(eps * np.eye(d)), two=_values(2 * np.eye(d)),
                                       first=1 - ROUNDS))


def sgd(d: int, points: int) -> FleqProgram:
    """FLEQ: a linear model learned from so many points, again and again."""
    rng = np.random.default_rng(d)
    x = np.round(rng.uniform(-1, 1, (d, points)), 3)
    weights = np.round(rng.uniform(-1, 1, (d, 1)), 3)
    limit = max(16.0, 2.0 ** np.ceil(np.log2(points)))
    program = SGD.format(d=d, points=points, x=_values(x), y=_values(weights.T @ x), eta=0.5 / d, first=1 - points)
    return fleq.assemble(f".range {limit:g}\n{program}")


def _values(matrix: Array) -> str:
    return " ; ".join(" ".join(repr(float(entry)) for entry in row) for row in matrix)
