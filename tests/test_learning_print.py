"""The paper's learning programs as printed, run on the plain interpreter: what is wrong with them, shown."""

from __future__ import annotations

import numpy as np
import pytest

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.oracle import run
from punchcard.machines.fleq.text.assembler import assemble
from tests.learning_cases import interpreted

SGD = """
.range 1e6
.data
x      matrix 2x3   1 1 1 ; 0.5 -1 2
past   vector 2     100 100
y      matrix 1x3   1 2 3
beyond scalar 7
w      vector 2
eta    scalar 0.1
temp   {temp}
xt     matrix 1x2
g      vector 2
one    scalar 1
j      scalar {start}
.code
{code}
        halt
"""
LINE_1_AND_2 = """
first:  temp = mul(x[0], w)
second: temp = sub(temp, y[0])
"""
CORRECTED = """
first:  temp = mul(x[0], w)
second: temp = sub(temp, y[0])
        temp = mul(temp, eta)
third:  xt = transpose(x[0])
        g = mul(xt, temp)
        w = sub(w, g)
        incr_pointer(first.a)
        incr_pointer(second.b)
        incr_pointer(third.a)
        j = add(j, one); if j <= 0 goto first
"""


@pytest.mark.parametrize("code", [LINE_1_AND_2 + "temp = mul(x[0], temp)", "g = mul(g, eta)"], ids=["line 3", "line 4"])
def test_line_3_of_linear_sgd_has_the_wrong_shape(code: str) -> None:
    """mul(x, temp) is x^T temp, and x has as many rows as there are features, temp one. So it is with mul(gradient, eta)."""
    with pytest.raises(SourceError, match=r"2x1 and 1x1: mul.* the operands must have equally many rows"):
        assemble(SGD.format(temp="scalar", start=-3, code=code))


def test_a_counter_from_minus_the_number_of_points_reads_past_the_last_one() -> None:
    """Three points, printed: four rounds, the last with the column after the data. From -2: three."""
    printed, steps = interpreted(assemble(SGD.format(temp="scalar", start=-3, code=CORRECTED)))
    right, fewer = interpreted(assemble(SGD.format(temp="scalar", start=-2, code=CORRECTED)))
    assert (steps, fewer) == (40, 30)
    w = np.zeros(2)
    for x, y in zip([[1, 0.5], [1, -1.0], [1, 2.0]], [1, 2, 3], strict=True):
        w = w - 0.1 * (w @ np.array(x) - y) * np.array(x)
    assert np.allclose(right["w"][:, 0], w, rtol=0, atol=1e-15)
    assert np.abs(printed["w"]).max() > 100


BACKPROP = """
.range 1e6
.data
W1    matrix 2x3   0.5 -1 0.25 ; 1 0.5 -0.5
W2    vector 2     1 -0.5
x     vector 3     1 0.5 -1
q     scalar 1
m     scalar 2
k     scalar 1
flag  scalar
temp  {temp}
z     vector 2     0.3 -0.2
zt    matrix 1x2
a     vector 2
o     scalar
d2    scalar 0.7
d1    vector 2
dt    matrix 1x2   1 1
s     scalar
u     scalar
grad1 matrix 2x3
grad2 vector 2
zero  scalar
.code
{code}
      halt
"""


@pytest.mark.parametrize(("line", "temp", "code", "message"), [
    (6, "matrix 1x2", "temp = transpose(W2)\n o = mul(temp, a)", "1x2 and 2x1"),
    (9, "scalar", "d1 = mul(W2, d2)", "2x1 and 1x1"),
    (24, "scalar", "grad2 = mul(d2, a)", "1x1 and 2x1"),
    (26, "scalar", "grad1 = mul(d1, x)", "2x1 and 3x1"),
])
def test_lines_of_backpropagation_with_the_wrong_shape(line: int, temp: str, code: str, message: str) -> None:
    """W2 is m by 1 in the paper: line 5 transposes it, and line 6 then multiplies m numbers by 1 row."""
    with pytest.raises(SourceError, match=f"{message}: mul"):
        assemble(BACKPROP.format(temp=temp, code=code))


LOOP = """
l10:  flag = sub(k, m)
      zt = transpose(z)
l13:  {test}
l14:  s = sigmoid(zt[0])
      u = sub(q, s)
      s = mul(s, u)
l17:  dt[0] = mul(s, dt[0])
      incr_pointer(l14.a)
      incr_pointer(l17.b)
      incr_pointer(l17.c)
l20:  k = add(k, q)
l21:  {again}
l22:  reset_pointer(l14.a, zt)
"""


def loop(test: str, again: str) -> FleqProgram:
    return assemble(BACKPROP.format(temp="scalar", code=LOOP.format(test=test, again=again)))


def test_lines_13_to_21_of_backpropagation_go_round_for_ever() -> None:
    """k - m <= 0 from the first element on, so line 13 skips to 20, and 21 returns to 13: nothing is ever computed."""
    program = loop("if flag <= 0 goto l20", "goto l13")
    outcome = run(program, 1000)
    assert not outcome.halted
    assert np.array_equal(program.named(outcome.state.memory)["dt"], [[1.0, 1.0]])


def test_with_line_22_as_its_target_line_13_leaves_at_once() -> None:
    """The target mended, the condition is still inverted: it ends the loop while there are elements left."""
    memory, steps = interpreted(loop("if flag <= 0 goto l22", "goto l13"))
    assert np.array_equal(memory["dt"], [[1.0, 1.0]])
    assert steps == 4


def test_line_21_of_backpropagation_skips_the_subtraction() -> None:
    """With the condition turned, the flag of line 10 is never computed again: the pointers run off the memory."""
    with pytest.raises(ProgramError, match=r"pointer . is 26: there are 26 memory columns"):
        interpreted(loop("if flag <= 0 goto l14", "goto l13"))


def test_the_loop_as_corrected() -> None:
    """While k - m <= 0 it goes on: what hadamard does in one instruction."""
    program = loop("zero = add(zero, zero)", "flag = sub(k, m); if flag <= 0 goto l14")
    memory, _ = interpreted(program)
    sigmoid = 1 / (1 + np.exp([-0.3, 0.2]))
    assert np.allclose(memory["dt"][0], sigmoid * (1 - sigmoid), rtol=0, atol=1e-15)
