"""The FLEQ interpreter, on cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from punchcard.errors import ProgramError
from punchcard.machines.fleq.functions import BUILT_IN, Function, Shape, same_shape
from punchcard.machines.fleq.isa import Branch, Call, FleqProgram, Halt, PointerUpdate, Step, variables_in_order
from punchcard.machines.fleq.oracle import FleqInterpreter, run
from punchcard.machines.fleq.text.assembler import assemble
from tests.test_fleq_language import NEWTON


def values(text: str, steps: int = 100, **extra: Function) -> dict[str, list[list[float]]]:
    """The variables at the end of a run that halts."""
    program = assemble(text, functions=extra)
    outcome = run(program, steps)
    assert outcome.halted
    return {name: value.tolist() for name, value in program.named(outcome.state.memory).items()}


def test_newton_gives_the_inverse() -> None:
    program = assemble(NEWTON)
    outcome = run(program, 1000)
    found = program.named(outcome.state.memory)
    assert (outcome.halted, outcome.steps, outcome.state.program_counter) == (True, 2 + 12 * 5, 7)
    assert np.allclose(found["X"], [[0.3, -0.1], [-0.2, 0.4]], atol=1e-12)
    assert found["t"].item() == 1


@pytest.mark.parametrize(("call", "result"), [
    ("R = add(M, M)", [[2, 4, 6], [8, 10, 12]]),
    ("R = sub(M, M)", [[0, 0, 0], [0, 0, 0]]),
    ("R = mul(S, M)", [[4, 5, 6], [2, 4, 6]]),       # S^T M, with S = 0 2 ; 1 0
    ("R = percentage(M)", [[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]]),
    ("Q = transpose(M)", [[1, 4], [2, 5], [3, 6]]),
    ("v = mul(M, w)", [[14], [19], [24]]),            # w = 2, 3
    ("x = mul(w, w)", [[13]]),
    ("w = hadamard(w, M[2])", [[6], [18]]),
    ("w = sigmoid(zero)", [[0.5], [0.5]]),
    ("x = inverse(x)", [[0.25]]),
    ("x = sqrt(x)", [[2]]),
    ("row = mul_ba(M, w)", [[14, 19, 24]]),
    ("M[1] = add(M[0], w)", [[1, 3, 3], [4, 7, 6]]),
])
def test_one_function(call: str, result: list[list[float]]) -> None:
    found = values(f"""
        .range 64
        .data
        M matrix 2x3 1 2 3 ; 4 5 6
        S matrix 2x2 0 2 ; 1 0
        R matrix 2x3
        Q matrix 3x2
        v vector 3
        w vector 2 2 3
        zero vector 2
        x scalar 4
        row matrix 1x3
        .code
        {call}
    """)
    assert np.allclose(found[call.split(" ", 1)[0].split("[")[0]], result, atol=1e-15)


@pytest.mark.parametrize(("start", "increment", "jumps"), [(-2, 1, True), (-1, 1, True), (0, 1, False), (5, -9, True)])
def test_a_flag_that_was_just_written_counts(start: int, increment: int, jumps: bool) -> None:
    """-1 + 1 is 0, which jumps, though the old value would have decided the same; 0 + 1 shows that it is the new one."""
    program = assemble(f".data\nt scalar {start}\nd scalar {increment}\n.code\nt = add(t, d); if t <= 0 goto 2\nhalt\nhalt")
    interpreter = FleqInterpreter(program)
    interpreter.step()
    assert interpreter.program_counter == (2 if jumps else 1)
    assert interpreter.memory[0, 0] == start + increment


@pytest.mark.parametrize(("text", "wanted"), [
    # branches alone: of v the first entry counts
    ("""
        .data
        x scalar 1
        v vector 2 0 7
        n scalar
        one scalar 1
        .code
        if x <= 0 goto wrong
        if v <= 0 goto right
        wrong: halt
        right: n = add(n, one); goto end
        halt
        end: n = add(n, one)
     """, {"n": [[2]]}),
    # the sum of the columns: the pointer is beyond M at the end, and not used again
    ("""
        .data
        M matrix 2x3 1 2 3 ; 4 5 6
        sum vector 2
        t scalar -2
        one scalar 1
        .code
        step: sum = add(M[0], sum)
              incr_pointer(step.a)
              t = add(t, one); if t <= 0 goto step
     """, {"sum": [[6], [15]]}),
    # the next instruction is changed: 2 + 1, 4 into q, 1 + 2
    ("""
        .data
        x scalar 1
        y scalar 2
        r scalar
        q scalar
        .code
              reset_pointer(next.a, y)
        next: r = add(x, x)
              incr_pointer(other.c)
        other: r = add(y, y)
              reset_pointer(last.b, y)
        last: x = add(x, x)
     """, {"x": [[3]], "y": [[2]], "r": [[3]], "q": [[4]]}),
    # a scalar result over a column that held three numbers leaves zeros under it
    (".data\nv vector 3 1 2 3\nx scalar 5\n.code\nreset_pointer(step.c, v)\nstep: x = add(x, x)",
     {"v": [[10], [0], [0]], "x": [[5]]}),
])
def test_programs_by_hand(text: str, wanted: dict[str, list[list[float]]]) -> None:
    found = values(text)
    assert {name: found[name] for name in wanted} == wanted


def test_changing_flag_and_target_of_the_next_instruction() -> None:
    program = assemble("""
        .data
        plus scalar 1
        minus scalar -1
        .code
              reset_pointer(next.flag, minus)
              reset_pointer(next.p, end)
              incr_pointer(next.p)
        next: if plus <= 0 goto next
              halt
        end:  halt
              halt
    """)
    interpreter = FleqInterpreter(program)
    for _ in range(4):
        interpreter.step()
    assert interpreter.program_counter == 6
    assert interpreter.halted
    assert program.instructions[3] == Step(None, Branch(0, 3)), "the program itself stays as it was"


def test_an_instruction_that_changes_itself_was_fetched_before() -> None:
    program = assemble(".code\nself: reset_pointer(self.p, 1); goto self\nhalt")
    interpreter = FleqInterpreter(program)
    interpreter.step()
    assert interpreter.program_counter == 0
    interpreter.step()
    assert interpreter.program_counter == 1


def test_halting() -> None:
    program = assemble(".data\nx scalar 5\n.code\nx = sub(x, x)\nhalt\nx = sub(x, x)")
    outcome = run(program, 100)
    assert (outcome.halted, outcome.steps, outcome.state.program_counter) == (True, 1, 1)
    assert run(program, 0).halted is False
    assert run(assemble(".code\nhalt"), 0).halted is True
    interpreter = FleqInterpreter(program)
    for _ in range(3):
        interpreter.step()
    assert interpreter.steps == 1, "a halt changes nothing"


def test_the_state_is_a_copy() -> None:
    interpreter = FleqInterpreter(assemble(".data\nx scalar 1\n.code\nx = add(x, x)"))
    before = interpreter.state
    interpreter.step()
    assert (before.memory[0, 0], before.program_counter) == (1, 0)
    assert (interpreter.state.memory[0, 0], interpreter.state.program_counter) == (2, 1)


def test_functions_of_the_user() -> None:
    maximum = Function("maximum", 2, same_shape, np.maximum)
    same = Function("same", 1, same_shape, lambda a: a)
    text = ".data\nx vector 2 1 5\ny vector 2 3 2\n.code\nx = maximum(x, y)\nx = same(x)"
    assert values(text, maximum=maximum, same=same)["x"] == [[3], [5]], "a result may share memory with its operand"
    assert maximum.reference(np.array([[1.0]]), np.array([[2.0]])).tolist() == [[2]]


@pytest.mark.parametrize(("code", "message"), [
    ("reset_pointer(1.a, one)\nt = transpose(t)\nincr_pointer(1.a)\ngoto 1",
     "instruction 1: pointer a is 5: there are 5 memory columns, counted from 0"),
    ("reset_pointer(1.c, one)\nM = add(M, M)",
     "instruction 1: pointer c is 4: there are 5 memory columns, counted from 0, and 2 are used from there"),
    ("reset_pointer(1.b, one)\nM = add(M, M)", "instruction 1: pointer b is 4"),
    ("reset_pointer(2.flag, one)\nincr_pointer(2.flag)\nif t <= 0 goto 0", "instruction 2: pointer flag is 5"),
    ("reset_pointer(2.p, 3)\nincr_pointer(2.p)\nif t <= 0 goto 0",
     "instruction 2: pointer p is 4: there are 4 instructions, counted from 0"),
    ("half = percentage(one); if half <= 0 goto 0", "instruction 0: a flag that is not an integer: 0.01 in 'half'"),
    ("loop: one = add(one, one); goto loop", r"instruction 0: 32.0 in 'one' is beyond the range, 16.0"),
    ("half = inverse(half)", "instruction 0: inf in 'half' is beyond the range"),
    ("t = sub(t, one)\nt = sqrt(t)", "instruction 1: nan in 't' is beyond the range"),
])
def test_errors(code: str, message: str) -> None:
    program = assemble(f".data\nM matrix 2x2 9 9 ; 9 9\nt scalar\nhalf scalar\none scalar 1\n.code\n{code}")
    with pytest.raises(ProgramError, match=message):
        run(program, 20)


def test_the_range_names_the_variable_that_is_written() -> None:
    program = assemble(".data\nx scalar 9\ny scalar\nM matrix 1x2\n.code\nreset_pointer(1.c, M[1])\ny = add(x, x)")
    with pytest.raises(ProgramError, match=r"instruction 1: 18.0 in 'M' is beyond the range, 16.0"):
        run(program, 20)


def test_the_range_need_not_be_checked() -> None:
    program = assemble(".data\nx scalar 9\n.code\nx = add(x, x)\nx = add(x, x)")
    interpreter = FleqInterpreter(program, check_range=False)
    interpreter.step()
    interpreter.step()
    assert interpreter.memory[0, 0] == 36
    assert run(program, 5, check_range=False).halted


def test_programs_that_no_text_gives() -> None:
    variables = variables_in_order([("x", Shape(1, 1))])
    wrong = Function("wrong", 1, same_shape, lambda a: np.zeros((2, 2)))
    shape = Shape(1, 1)
    for step, message in (
        (Step(PointerUpdate(1, "a")), "instruction 0: instruction 1 has no pointer a"),
        (Step(PointerUpdate(0, "p", 1)), "instruction 0: instruction 0 has no pointer p"),
        (Step(Call("wrong", 0, None, 0, shape, None, shape)), "instruction 0: wrong gives 2x2, but its result is 1x1"),
        (Step(None, Branch(-1, 0)), "pointer flag is -1"),
    ):
        program = FleqProgram((step, Halt()), variables, {"x": np.zeros((1, 1))}, {**BUILT_IN, "wrong": wrong})
        with pytest.raises(ProgramError, match=message):
            run(program, 5)
