"""What is timed on the FLEQ machine: Newton's iteration and gradient descent without end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.kind import Workload

SIZES = (4, 8)
ROUNDS = 12
"""Newton's iterations until it starts again: enough to converge at any of the sizes."""


def newton(d: int) -> FleqProgram:
    """X = A^-1 by Newton's iteration, X (2 I - A X) from eps A^T, of a d x d matrix, again and again."""
    rng = np.random.default_rng(d)
    matrix = np.round(rng.uniform(-1, 1, (d, d)) + 2 * np.eye(d), 3)
    eps = 1 / (np.abs(matrix).sum(axis=0).max() * np.abs(matrix).sum(axis=1).max())
    p = Builder()
    a, e, two = p.matrix("A", matrix), p.matrix("E", eps * np.eye(d)), p.matrix("two", 2 * np.eye(d))
    x, at, xt, y = (p.matrix(name, shape=(d, d)) for name in ("X", "At", "Xt", "Y"))
    first, t, one, zero = p.scalar("first", 1 - ROUNDS), p.scalar("t"), p.scalar("one", 1), p.scalar("zero")
    p.label("again")
    p.mul(a, e, into=x)
    p.transpose(a, into=at)
    p.add(first, zero, into=t)
    p.label("loop")
    p.mul(at, x, into=y)
    p.sub(two, y, into=y)
    p.transpose(x, into=xt)
    p.mul(xt, y, into=x)
    p.add(t, one, into=t, goto="loop", if_leq=t)
    p.goto("again")
    return p.program()


def sgd(d: int, points: int) -> FleqProgram:
    """w by gradient descent for y = w^T x, point by point, again and again; instructions walk through the data."""
    rng = np.random.default_rng(d)
    values = np.round(rng.uniform(-1, 1, (d, points)), 3)
    weights = np.round(rng.uniform(-1, 1, (d, 1)), 3)
    p = Builder()
    x, y, w, row = p.matrix("x", values), p.matrix("y", weights.T @ values), p.vector("w", d), p.matrix("row", shape=(1, d))
    guess, error, eta, change = p.scalar("guess"), p.scalar("error"), p.scalar("eta", 0.5 / d), p.vector("change", d)
    first, t, one, zero = p.scalar("first", 1 - points), p.scalar("t"), p.scalar("one", 1), p.scalar("zero")
    p.label("again")
    p.add(first, zero, into=t)
    p.label("predict")
    p.mul(w, x[0], into=guess)
    p.label("compare")
    p.sub(y[0], guess, into=error)
    p.mul(error, eta, into=error)
    p.label("turn")
    p.transpose(x[0], into=row)
    p.mul(row, error, into=change)
    p.add(w, change, into=w)
    p.incr_pointer("predict", "b")
    p.incr_pointer("compare", "a")
    p.incr_pointer("turn", "a")
    p.add(t, one, into=t, goto="predict", if_leq=t)
    p.reset_pointer("predict", "b", x)
    p.reset_pointer("compare", "a", y)
    p.reset_pointer("turn", "a", x)
    p.goto("again")
    return p.program(max(16.0, 2.0 ** np.ceil(np.log2(points))))


def workloads(design: str, columns: int) -> Iterator[Workload | str]:
    """Both programs at both sizes on a card of so many columns."""
    for d in SIZES:
        yield _filling("newton", newton(d), design, columns, d)
    for d in SIZES:
        room = columns - FleqMachine.for_program(sgd(d, 2), design=design).layout.columns
        yield _filling("sgd", sgd(d, 2 + max(0, room) // 2), design, columns, d)


def _filling(name: str, program: FleqProgram, design: str, columns: int, d: int) -> Workload | str:
    """A program on a machine whose memory fills the card."""
    machine = FleqMachine.for_program(program, design=design)
    least = machine.layout.columns
    if columns < least:
        return f"fleq, {name}, size {d}, {columns} columns: left out, the program needs {least}"
    options = {"design": design, "memory": machine.sizes.memory + columns - least}
    return Workload(name, program, options, {"size": d}, sparse=True)
