"""The interpreter itself, on cases worked out by hand."""

from __future__ import annotations

import pytest

from punchcard.machines.subleq.isa import Halt, Program, State, Subleq
from punchcard.machines.subleq.oracle import SubleqInterpreter, run


@pytest.mark.parametrize(("bits", "a", "b", "result", "goes_to"), [
    (4, 3, 5, 2, 1), (4, 5, 5, 0, 2), (4, 5, 3, -2, 2),
    (4, -8, 7, -1, 2),  # 15 wraps to -1
    (4, 1, -8, 7, 1),   # -9 wraps to 7
    (4, -8, 0, -8, 2),  # 8 wraps to -8
    (4, -8, -8, 0, 2),
    (16, 1, -32768, 32767, 1),
])
def test_one_instruction(bits: int, a: int, b: int, result: int, goes_to: int) -> None:
    interpreter = SubleqInterpreter(Program.create([Subleq(0, 1, 2), Halt(), Halt()], [a, b]), bits)
    interpreter.step()
    assert interpreter.state == State((a, result), goes_to)


def test_halting() -> None:
    program = Program.create([Subleq(0, 0, 1), Halt(), Subleq(0, 0, 0)], [5])
    outcome = run(program, 8, 100)
    assert (outcome.steps, outcome.halted, outcome.state) == (1, True, State((0,), 1))
    assert run(program, 8, 0).halted is False
    assert run(Program.create([Halt()]), 8, 0).halted is True
