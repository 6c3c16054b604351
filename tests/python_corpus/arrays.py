# mypy: disable-error-code="no-untyped-def"
"""Array programs of the tests: each function, decorated, with the shapes of its arguments. NumPy runs the same functions.

An argument is a shape of random numbers within ±1, or a value. `near_one` shapes are within 0.5 to 1.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import punchcard as pc

SCALE = 0.5
WEIGHTS = np.array([[0.5, -0.25], [0.125, 1.0]])


@dataclass(frozen=True)
class Case:
    """A program and what it is called with; `fitted` programs need functions that are fitted over a domain."""

    program: Any
    arguments: tuple[Any, ...]
    fitted: bool
    above: bool

    @property
    def name(self) -> str:
        return str(self.program.__name__)

    def given(self, seed: int) -> list[Any]:
        random = np.random.default_rng(seed)
        low, high = (0.5, 1.5) if self.above else (-1.0, 1.0)
        return [random.uniform(low, high, a) if isinstance(a, tuple) else a for a in self.arguments]


CASES: list[Case] = []


def case(*arguments: Any, fitted: bool = False, above: bool = False) -> Callable[[Callable[..., Any]], Any]:
    def add(function: Callable[..., Any]) -> Any:
        program = pc.program(function)
        CASES.append(Case(program, arguments, fitted, above))
        return program

    return add


@case((2, 2), 3)
def newton(A, rounds):
    X = 0.3 * A.T
    for _ in range(rounds):
        X = X @ (2 * pc.arrays.eye(len(A)) - A @ X)
    return X


@case((2, 3), (2, 3), (3, 2))
def sums_and_transposes(A, B, M):
    C = A + B - 0.5
    return C @ M, C.T, -A, (M @ A).T @ M + (A.T @ M.T).T @ M


@case((3,), (3,), 0.25)
def products_of_vectors(u, v, a):
    return u @ v, np.outer(u, v), u * v, pc.arrays.dot(v, v), a * u + v


@case((2, 3), (3,), (2, 1))
def axes(A, row, column):
    sums = A.sum(axis=0), np.sum(A, axis=1), A.sum(), A.mean(), np.mean(A, axis=0)
    return sums[0], sums[1], sums[2], sums[3], sums[4], A + row, A * row, A - column, column * A, 2.0 - A


@case((3,), (2,), (2, 3))
def new_axes(x, y, A):
    return x[:, None] * y[None, :], A * y[:, None] - x[None, :], x[:, None] @ y[None, :]


@case((3,))
def powers_and_kinks(x):
    return (x**2, x**3, x**5, x**1, x**0, pc.arrays.relu(x), pc.arrays.abs(x), pc.arrays.maximum(x, 0.25),
            np.minimum(x, -x))


@case((2, 2), (2, 2))
def masks(A, B):
    return pc.arrays.where(A > B, A, B), (A > 0.1) * B, np.where(A <= B, 1.0, -1.0)


@case((3,), 0.3)
def clipped_scalars(x, limit):
    return max(limit, x[0]), min(x[1], limit, x[2]), abs(x[0])


@case((3,))
def branches(x):
    if x[0] > x[1]:
        y = x[0] - x[1]
    elif x[0] > x[2]:
        y = x[2] * 2.0
    else:
        y = x[1] + x[2]
    return y


@case((3,), 0.2)
def nested_branches(x, a):
    y = pc.arrays.zeros(3)
    if x[0] > 0:
        if x[1] > 0:
            y = x + a
        else:
            y = x - a
        y = y * 2.0
    return y


@case((4,))
def early_return(x):
    if x[0] > 0.0:
        return x * 2.0
    if x[1] > 0.0:
        return x - 1.0
    return pc.arrays.zeros(4)


@case((2, 2), (2,), (2,), 0.1, 2)
def linear_sgd(X, y, w, rate, epochs):
    for _ in range(epochs):
        for i in range(len(y)):
            e = X[i] @ w - y[i]
            w = w - rate * e * X[i]
    return w


@case((2, 2), (2, 2), (2, 2), (2, 2), (2,), 0.1, 1)
def two_layers(X, Y, V1, V2, c2, rate, epochs):
    for _ in range(epochs):
        for x, y in zip(X, Y):
            a = pc.arrays.sigmoid(V1.T @ x)
            d2 = rate * (V2.T @ a + c2 - y)
            d1 = (V2 @ d2) * (a * (1 - a))
            V2 = V2 - np.outer(a, d2)
            c2 = c2 - d2
            V1 = V1 - np.outer(x, d1)
    return V1, V2, c2


@case((4,))
def horner(c):
    x, y = 0.5, 0.0
    for k in range(len(c)):
        y = y * x + c[k]
    return y


@case((4,))
def backwards(c):
    y = 0.0
    for k in range(len(c) - 1, -1, -1):
        y = y * 0.5 + c[k]
    return y


@case((3,))
def loop_variable(x):
    s = 0.0
    for i in range(1, 4):
        s = s + i * x[i - 1]
    return s, s * s


@case(2.0)
def inner_start(a):
    total = a
    for i in range(3):
        x = 2 * i + 1
        for _ in range(2):
            x = x + 0.5 * a
        total = total + x
    return total


@case((3, 3))
def triangle(A):
    s = 0.0
    for i in range(3):
        for j in range(i, 3):
            s = s + A[i, j]
    return s


@case((3, 3))
def computed_bounds(A):
    n = 0.0
    for i in range(3):
        for _ in range(i):
            n = n + 1.0
    return n * A


@case(1.0, 0.3)
def halving(x, limit):
    steps = 0
    while x > limit:
        x = x / 2.0
        steps = steps + 1
    return x, steps


@case((4,))
def first_positive(x):
    found = -1.0
    for i in range(len(x)):
        if x[i] > 0.05:
            found = x[i]
            break
    return found


@case((3,))
def skips(x):
    s = 0.0
    for v in x:
        if v < 0.0:
            continue
        s = s + v
    return s


@case((3, 4))
def reversed_columns(A):
    B = np.zeros((3, 4))
    for j in range(4):
        B[:, 3 - j] = A[:, j]
    return B


@case((3, 3))
def running_sums(A):
    B = A.copy()
    for i in range(1, 3):
        B[i] = B[i] + B[i - 1]
    return B


@case((3,))
def prefix(x):
    y = np.zeros(3)
    s = 0.0
    for i in range(3):
        s += x[i]
        y[i] = s
    return y


@case((2, 2))
def entries(A):
    B = np.zeros((2, 2))
    for i in range(2):
        B[i, i] = A[i, 1] - 1.0
    B[0, 1] = 0.5
    return B, A[1, 1], A[-1, 0]


@case((4, 3))
def slices(A):
    B = A[1:3]
    C = np.zeros((4, 3))
    C[:, 1:] = A[:, :2]
    C[0] = 1.0
    x, y = A[:, 0], np.ones(4)
    y[1:3] = x[:2]
    return B, A[::2, 1], C, x[1:] - x[:-1], y


@case((3,), (3,))
def swapping(a, b):
    for _ in range(3):
        a, b = b, a + 0.5 * b
    return a, b


@case((3, 3), (3,))
def normalised(A, v):
    for _ in range(3):
        v = A @ v
        v = v / 2.0
    return v


@pc.program
def helper(x, shift=0.25):
    y = x - shift
    return y * y


@case((3,))
def calls(x):
    return helper(x) + helper(x, shift=0.5), helper(x[0])


@pc.program
def first_above(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return x[i]
    return limit


@case((2,))
def calls_in_a_loop(x):
    total = 0.0
    limit = -0.5
    for _ in range(2):
        limit = first_above(x, limit) + 0.125
        total = total + limit
    return total, limit


@case((2, 2))
def outside_constants(A):
    return A @ WEIGHTS * SCALE + WEIGHTS


@case((3, 2))
def sizes(A):
    rows, columns = A.shape
    return A * (rows / columns) + len(A) + A.ndim


@case((3,), (3, 3))
def in_place(x, A):
    x += 1.0
    A *= 0.5
    A[1] += x
    y = A @ x
    y -= x
    return y


@case((2, 3), (3, 2))
def unused(A, B):
    C = A @ B
    D = B @ A
    C = C + 1.0
    D = D + D
    return C


@case((3, 3), (3,))
def shared(A, x):
    return A @ x + A @ x, (A @ x) * 2.0 - (A @ x)


@case((3, 3), (3,))
def invariant(A, x):
    y = x
    for _ in range(2):
        y = 0.5 * y + (A @ x) * (A.T @ x)
    return y


@case((3,))
def enumerated(x):
    s = 0.0
    for i, v in enumerate(x, start=1):
        s = s + i * v
    return s


@case((3,), 4)
def counted_while(x, n):
    i = 0
    while i < n:
        x = 0.5 * x + 0.25
        i += 1
        if i == 3:
            x = -x
    return x


@case((2,))
def chained(x):
    y = 1.0 if -0.5 < x[0] < 0.5 else 2.0
    if not (x[1] > 0 and x[0] > 0) or x[1] > 0.5:
        y = y + 1.0
    return y


@case((3, 3))
def extremes(A):
    return A.max(), A.min(axis=0), np.max(A, axis=1)


@case((2, 3), (3, 2))
def traces(A, B):
    return np.trace(A @ B), np.trace(B @ A)


@case((3,), fitted=True, above=True)
def roots(x):
    return np.sqrt(x), 1.0 / x, x**-2, pc.arrays.norm(x)


@case((3,), fitted=True)
def waves(x):
    return np.sin(x), pc.arrays.cos(x), np.tanh(2 * x), np.exp(x)


@case((2, 2), fitted=True, above=True)
def logarithms(A):
    return pc.arrays.log(A), A / (A + 1.0), 2.0 / A[0, 0]


@case((2, 2), (2,), fitted=True)
def softmaxes(A, x):
    return pc.arrays.softmax(A), pc.arrays.softmax(x), pc.arrays.softmax(A, axis=0)


@case((3, 3), (3,), fitted=True, above=True)
def power_iteration(A, v):
    for _ in range(3):
        v = A @ v
        v = v / pc.arrays.norm(v)
    return v, v @ A @ v


@case((3, 3), (3,), 2, fitted=True)
def conjugate_gradients(M, b, rounds):
    A = M.T @ M + 2.0 * pc.arrays.eye(3)
    x = pc.arrays.zeros(3)
    r = b - A @ x
    p = r
    rr = r @ r
    for _ in range(rounds):
        Ap = A @ p
        alpha = rr / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        new = r @ r
        p = r + (new / rr) * p
        rr = new
    return x


@case((3, 3), (3,))
def diagonals(A, x):
    return np.diag(A), np.diag(x) - np.diag(np.diag(A)), np.diag(A + 1.0) @ x


@case((2, 3), (3,))
def kept_axes(A, x):
    low = A.min(axis=1, keepdims=True)
    return A - A.mean(1, keepdims=True), A.sum(axis=0, keepdims=True), A.sum(keepdims=True) * x, low, x.max(keepdims=True)


@case((4,), (3, 2))
def reversed_stores(v, A):
    v[::-1] = 2 * v
    A[:, ::-1] = A + 1
    A[::-1, 1] = A[:, 0]
    return v, A
