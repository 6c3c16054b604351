"""Slips in the paper's programs (sections 8 and 9), run: on the plain interpreter, or in NumPy."""

from __future__ import annotations

import math
from itertools import count

import numpy as np

from benchmarks.slip import Slip, first, shown
from punchcard.errors import ProgramError, SourceError
from punchcard.machines.fleq.functions import Array, sigmoid
from punchcard.machines.fleq.oracle import FleqInterpreter, run
from punchcard.machines.fleq.text.assembler import assemble


def counted(start: int) -> int:
    """The rounds of a loop whose counter starts there, on the interpreter."""
    program = assemble(f".data\nt scalar {start}\nn scalar\none scalar 1\n.code\nloop: n = add(n, one)\nt = add(t, one)\n"
                       "if t <= 0 goto loop\nhalt")
    return int(program.named(run(program, 1000).state.memory)["n"].item())


def refused(data: str, code: str) -> str:
    """Why the assembler refuses a line: its shapes."""
    try:
        assemble(f".data\n{data}\n.code\n{code}\nhalt")
    except SourceError as error:
        return next(part for part in str(error).split(": ") if " and " in part and "x" in part)
    raise ValueError(f"{code!r} assembles")


def counters() -> Slip:
    rounds, gives, right = first(count(1), lambda t: counted(-t), lambda t: t)
    return Slip("counters start at -T", f"T = {rounds}", f"{gives} rounds", f"{right}, from -T + 1")


def newton(matrix: Array, start: Array, rounds: int) -> Array:
    x = start
    with np.errstate(all="ignore"):
        for _ in range(rounds):
            x = x @ (2 * np.eye(len(matrix)) - matrix @ x)
    return x


def newton_start() -> Slip:
    """X = eps A; the least matrix that differs from its transpose enough is a quarter turn."""
    a = np.array([[0.0, -1.0], [1.0, 0.0]])
    printed, right = newton(a, 0.1 * a, 6), newton(a, 0.1 * a.T, 8)
    return Slip("Newton: X_0 = eps A", "A = (0 -1 ; 1 0), eps = 0.1, 6 rounds", f"entries up to {np.abs(printed).max():.2g}",
                f"{shown(right)}, from eps A^T")


def newton_lines() -> Slip:
    """y = transpose(y); x = mul(x, y) is x^T y^T."""
    a = np.array([[2.0, 1.0], [0.0, 2.0]])
    x = y = 0.2 * a.T
    for _ in range(12):
        x = x.T @ (2 * np.eye(2) - a @ x).T
        y = y @ (2 * np.eye(2) - a @ y)
    return Slip("Newton, lines 5 and 6: y = tr(y), x = mul(x, y)", "A = (2 1 ; 0 2), 12 rounds", f"A X = {shown(a @ x)}",
                f"A X = {shown(a @ y)}")


def power_start() -> Slip:
    """1 / sqrt S from x = 1."""

    def inverse_root(square: float) -> str:
        x = 1.0
        for _ in range(60):
            x = x * (1.5 - 0.5 * square * x * x)
            if abs(x) > 1e100:
                return "overflow"
        return f"{x:.3f}"

    square, gives, right = first(count(1), inverse_root, lambda s: f"{s**-0.5:.3f}")
    return Slip("power iteration: 1 / sqrt S from x_0 = 1", f"S = {square}", str(gives), f"{right}, with S scaled below 3")


def power_scaling() -> Slip:
    gives = refused("b vector 2 1 1\ninv scalar 0.5", "b = mul(b, inv)")
    return Slip("power iteration: b = mul(b, inv_norm)", "b of two entries", f"refused: {gives}", "bt = tr(b), mul(bt, inv)")


def power_name() -> Slip:
    """mem[t] is read where mem[t_1] was written."""
    try:
        assemble(".data\nb vector 2 1 1\nt1 scalar\n.code\nt1 = mul(b, b)\nt1 = mul(t, t1)\nhalt")
    except SourceError as error:
        return Slip("power iteration reads mem[t]", "any b", str(error).split(": ", 1)[-1].split(" (")[0], "mem[t_1]")
    raise ValueError("it assembles")


def sgd_shapes() -> Slip:
    gives = refused("x vector 2 1 1\ntemp scalar 1", "temp = mul(x, temp)")
    return Slip("linear SGD, line 3: temp = mul(x, temp)", "two features", f"refused: {gives}",
                "xt = tr(x), g = mul(xt, delta)")


def sgd_step() -> Slip:
    gives = refused("g vector 2 1 1\neta scalar 0.1", "g = mul(g, eta)")
    return Slip("linear SGD, line 4: temp = mul(temp, eta)", "two features", f"refused: {gives}",
                "the error is scaled by eta")


def sgd_batch() -> Slip:
    """The text takes the sum over all points, the program changes w after each."""
    x, y, eta, w = np.array([1.0, 1.0]), np.array([1.0, 1.0]), 0.5, 0.0
    program = w
    for point, label in zip(x, y, strict=True):
        program -= eta * (program * point - label) * point
    text = w - eta * float(np.sum((w * x - y) * x))
    return Slip("linear SGD: the text's sum over all points", "two points x = y = 1, eta = 0.5, w = 0",
                f"text w = {text:g}", f"program w = {program:g}: both are built")


UNITS = """
.range 1e6
.data
k scalar 1
m scalar 2
q scalar 1
flag scalar
s scalar
z matrix 1x2 0.3 -0.2
delta matrix 1x2 1 1
.code
      flag = sub(k, m)
l13:  {test}
l14:  s = sigmoid(z[0])
l17:  delta[0] = mul(s, delta[0])
      incr_pointer(l14.a)
      incr_pointer(l17.b)
      incr_pointer(l17.c)
l20:  k = add(k, q)
l21:  {again}
l22:  halt
"""


def units(test: str, again: str) -> str:
    """Lines 13 to 21 for two units, on the interpreter: how many were handled, and how it ended."""
    program = assemble(UNITS.format(test=test, again=again))
    interpreter = FleqInterpreter(program)
    try:
        interpreter.run(1000)
        ending = "" if interpreter.halted else ", for ever"
    except ProgramError:
        ending = ", then off the memory"
    handled = int(np.sum(program.named(interpreter.memory)["delta"] != 1.0))
    return f"{handled} units{ending}"


RIGHT = ("flag = sub(k, m)", "flag = sub(k, m); if flag <= 0 goto l14")


def backprop_condition() -> Slip:
    return Slip("backprop, line 13: if k - m <= 0 goto 20", "m = 2 units", units("if flag <= 0 goto l20", "goto l13"),
                units(*RIGHT))


def backprop_target() -> Slip:
    """With the target mended, the condition is still the wrong way round."""
    return Slip("backprop, line 13: if k - m <= 0 goto 22", "m = 2 units", units("if flag <= 0 goto l22", "goto l13"),
                units(*RIGHT))


def backprop_flag() -> Slip:
    """With the condition turned, the flag of line 10 is never computed again."""
    return Slip("backprop, line 21: goto 13, past line 10", "m = 2 units, the condition turned",
                units("if flag <= 0 goto l14", "goto l13"), units(*RIGHT))


def backprop_resets() -> Slip:
    """Lines 18 and 19 increment instructions 14 and 17; lines 22 and 23 reset 1 and 15."""
    return Slip("backprop, lines 22 and 23 reset instructions 1 and 15", "a second point",
                "14 and 17 still point behind the first", "14 and 17 are reset", run=False)


def backprop_shapes() -> Slip:
    lines = {
        6: ("W2 vector 2\nt matrix 1x2\na vector 2\no scalar", "t = transpose(W2)\no = mul(t, a)"),
        9: ("W2 vector 2\ne scalar\nd vector 2", "d = mul(W2, e)"),
        24: ("e scalar\na vector 2\ng vector 2", "g = mul(e, a)"),
        26: ("d vector 2\nx vector 3\ng matrix 2x3", "g = mul(d, x)"),
    }
    found = {line: refused(*texts) for line, texts in lines.items()}
    return Slip("backprop, lines 5, 6, 9, 24, 26: products", "two units, three features",
                "refused: " + "; ".join(f"{line}: {shapes}" for line, shapes in found.items()),
                "operands of equally many rows")


def backprop_stale() -> Slip:
    """Lines 26 and 27 use delta_1 as line 9 left it; sigma' went into the cells of its transpose."""
    w2, error, z = 1.0, 1.0, 0.0
    stale = w2 * error
    slope = float(sigmoid(np.array(z)) * (1 - sigmoid(np.array(z))))
    return Slip("backprop, lines 26 and 27 use mem[delta_1]", "one unit, z = 0, W2 = o - y = 1",
                f"grad b_1 = {shown(stale)}", f"grad b_1 = {shown(slope * stale)}")


def backprop_operands() -> Slip:
    """f_sigmoids(z, q) in line 4, f_sigmoids(p, z) in line 14: the second takes the sigmoid of p = 0."""
    z, p = 2.0, 0.0
    return Slip("backprop, line 14: f_sigmoids(mem[p], mem[p_z])", "z_i = 2, with the order of line 4",
                shown(float(sigmoid(np.array(p)))), shown(float(sigmoid(np.array(z)))))


def backprop_sigmoid() -> Slip:
    """The lemma's block gives one number, sum_i c_i sigma(x . a_i); line 4 wants sigma of every entry."""
    z = np.array([0.0, math.log(3)])
    one = float(sigmoid(z @ np.array([1.0, 0.0])))
    return Slip("backprop, line 4: a = f_sigmoids(z)", "z = (0, log 3), a_1 = (1, 0)", shown([one]), shown(sigmoid(z)))


def wrapper_line() -> Slip:
    """Line 9 of the wrapper is the linear program's: it resets instruction 3, which here increments a pointer."""
    return Slip("SGD, line 9: reset_pointer(instr_3, x_0)", "any data", "resets line 3, itself p_x = incr_pointer(p_x)",
                "not there: line 7 has done it", run=False)


def twice_z() -> Slip:
    """One cell is given two values."""
    return Slip("SGD: mem[z] = e, the loss indicator, and mem[z] = n", "any loss", "mem[z] is both",
                "e in a cell of its own", run=False)
