"""Programs written from Python: they are those of the text, shapes follow the rules, and mistakes are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from punchcard.errors import ProgramError
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.functions import Function, Shape, same_shape
from punchcard.machines.fleq.oracle import run
from punchcard.machines.fleq.text.assembler import assemble, disassemble
from tests.test_fleq_language import NEWTON

WALK = """
.data
M    matrix 2x3   1 2 3 ; 4 5 6
more matrix 1x4   0 0 1 1
sum  vector 2
.code
step:   sum = add(M[0], sum); if more[0] <= 0 goto next
        goto done
next:   incr_pointer(step.a)
        incr_pointer(step.flag); goto step
done:   reset_pointer(step.a, M[1])
        reset_pointer(step.p, done)
end:
"""


def test_a_program_is_that_of_the_text() -> None:
    p = Builder()
    a, e, two = p.matrix("A", [[4, 1], [2, 3]]), p.matrix("E", 0.03 * np.eye(2)), p.matrix("two", 2 * np.eye(2))
    x = p.mul(a, e, into="X")
    at, xt = p.transpose(a, into="At"), p.matrix("Xt", shape=(2, 2))
    loop = p.label("loop")
    y = p.mul(at, x, into="Y")
    t, one = p.scalar("t", -11), p.scalar("one", 1)
    p.sub(two, y, into=y)
    p.mul(p.transpose(x, into=xt), y, into=x)
    p.add(t, one, into=t, goto=loop, if_leq=t)
    program = p.program()
    assert program == assemble(NEWTON)
    assert assemble(disassemble(program)) == program


def test_pointers_branches_and_labels_ahead() -> None:
    p = Builder()
    m, more, total = p.matrix("M", [[1, 2, 3], [4, 5, 6]]), p.matrix("more", [[0, 0, 1, 1]]), p.vector("sum", 2)
    p.label("step")
    p.add(m[0], total, into=total, goto="next", if_leq=more[0])
    p.goto("done")
    p.label("next")
    p.incr_pointer("step", "a")
    p.incr_pointer("step", "flag", goto="step")
    p.label("done")
    p.reset_pointer("step", "a", m[1])
    p.reset_pointer("step", "p", "done")
    p.label("end")
    program = p.program()
    assert program == assemble(WALK)
    assert program.named(run(program, 100).state.memory)["sum"][:, 0].tolist() == [6, 15]


def test_constants_and_temporaries_come_last_and_are_shared() -> None:
    p = Builder()
    p.reserve(["t"])
    first = p.add(p.constant(1.0), p.constant(2.5))
    p.scalar("x", 7)
    p.release(first)
    second = p.sub("x", p.constant(2.5))
    assert second == first
    third = p.mul(p.matrix("v", [[1, 2]]), "x")
    assert third.shape == Shape(2, 1)
    program = p.program()
    assert [variable.name for variable in program.variables] == ["x", "v", "one", "k2", "t_", "t2"]
    memory = program.named(run(program, 9).state.memory)
    assert (memory["t_"].item(), memory["t2"].tolist()) == (4.5, [[7.0], [14.0]])


def test_only_the_variables_in_use() -> None:
    p = Builder()
    p.scalar("idle")
    p.add(p.scalar("x", 1), "x", into="y", goto="end", if_leq=p.scalar("flag"))
    p.label("end")
    assert [variable.name for variable in p.program().variables] == ["idle", "x", "flag", "y"]
    assert [variable.name for variable in p.program(only_used=True).variables] == ["x", "flag", "y"]


def test_a_function_of_ones_own() -> None:
    maximum = Function("maximum", 2, same_shape, np.maximum)
    declared, given = Builder([maximum]), Builder()
    declared.maximum(declared.scalar("a", 3), "a", into="b")
    given.call(maximum, given.scalar("a", 3), "a", into="b")
    assert declared.program() == given.program()


def test_notes_say_where_an_instruction_comes_from() -> None:
    p = Builder()
    x = p.scalar("x")
    p.add(x, x, into=x)
    p.note = "line 2"
    p.add(x, x, into=x)
    p.halt()
    p.note = None
    p.halt()
    assert p.notes == {1: "line 2", 2: "line 2"}


def pointer_that_is_not_there(p: Builder) -> None:
    p.label("l")
    p.transpose("a", into="c")
    p.incr_pointer("l", "b")


@pytest.mark.parametrize(("write", "message"), [
    (lambda p: p.mul("a", "x"), "shapes of mul: 2x1 and 1x1: mul"),
    (lambda p: p.mul("a", "a", into="a"), "mul of 2x1 and 2x1 is 1x1, but 'a' is 2x1"),
    (lambda p: p.add("a"), "add takes 2 operands: 1 given"),
    (lambda p: p.call("ad", "a", "a"), r"unknown function 'ad' \(did you mean 'add'\?\)"),
    (lambda p: p.add("b", "x"), r"unknown variable 'b'.*: declare it first"),
    (lambda p: p.scalar("a"), "variable 'a' is declared twice"),
    (lambda p: p.scalar("goto"), "variable 'goto': a name is letters"),
    (lambda p: p.scalar("2b"), "variable '2b': a name is letters"),
    (lambda p: p.vector("v", 3, [1, 2]), r"variable 'v': a value of the shape \(2,\), where it must be \(3, 1\)"),
    (lambda p: p.matrix("v", [1, 2]), "where it must be a matrix"),
    (lambda p: p["a"][1], r"'a\[1\]' is beyond 'a', which has 1 column"),
    (lambda p: p["a"][0][0], r"'a\[0\]\[0\]' is beyond"),
    (lambda p: [p.label("l"), p.label("l")], "label 'l' is placed twice"),
    (lambda p: p.label("l-1"), "label 'l-1': a name is letters"),
    (lambda p: p.goto("loop"), "unknown label 'loop': place it"),
    (lambda p: p.add("x", "x", into="x", if_leq="x"), "if_leq='x': goto, where to jump, is missing"),
    (pointer_that_is_not_there, "instruction 0 has no pointer 'b'"),
])
def test_mistakes_are_named(write: Callable[[Builder], Any], message: str) -> None:
    p = Builder()
    p.vector("a", 2)
    p.scalar("x")

    def whole() -> None:
        write(p)
        p.program()

    with pytest.raises(ProgramError, match=message):
        whole()


def test_no_function_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="neither a method nor a function 'mull'"):
        Builder().mull("a")


def test_what_would_go_wrong_in_silence_is_refused() -> None:
    p, other = Builder(), Builder()
    a = p.scalar("a", 1)
    t = p.add(a, a)
    p.release(t)
    with pytest.raises(ProgramError, match="'t' is not a temporary that is in use"):
        p.release(t)
    with pytest.raises(ProgramError, match="'a' is not a temporary"):
        p.release(a)
    with pytest.raises(ProgramError, match="is not a variable of this program"):
        p.add(a, other.scalar("b", 1))
    with pytest.raises(ProgramError, match="is not a variable of this program"):
        p.add(a, a, into=3)
    with pytest.raises(ProgramError, match="the pointer p leads to a label, not to 'a'"):
        p.reset_pointer("loop", "p", a)
    with pytest.raises(ProgramError, match="label 'goto' begins an instruction"):
        p.label("goto")
