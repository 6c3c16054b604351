"""The long checks of the lowered engine against the interpreters: `make soak`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from punchcard.api import build
from punchcard.machines.fleq import oracle as fleq_oracle
from punchcard.machines.fleq.fast import DecodedFleq
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.subleq import fast
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from tests import fleq_cases
from tests.engine_runs import run_lowered
from tests.random_programs import random_program

pytestmark = pytest.mark.usefixtures("shared_code")

SUBLEQ_STEPS = 50_000_000
PARTS = (1, 9, 90, 900, 9_000, 90_000, 900_000)
"""A program's state is compared after each of these."""
# (bits of a word, cells, instructions, number format)
SHAPES = [(4, 11, 19, "float32"), (8, 30, 33, "float32"), (16, 60, 100, "float32"), (32, 100, 61, "float64"),
          (12, 300, 500, "float64")]


@pytest.mark.soak
@pytest.mark.parametrize("design", ["two-layer", "paper"])
def test_fifty_million_random_steps(design: str) -> None:
    """A million steps of each program; a hundred million with both designs."""
    made = 0
    for number, (bits, cells, instructions, precision) in enumerate(SHAPES, start=1):
        machine = SubleqMachine(word_bits=bits, memory=cells, instructions=instructions, design=design, precision=precision)
        rng = random.Random(f"soak {design} {bits}")
        while made < SUBLEQ_STEPS * number // len(SHAPES):
            made += run_beside(machine, endless_program(rng, bits, cells, instructions))
    assert made >= SUBLEQ_STEPS


def endless_program(rng: random.Random, bits: int, cells: int, instructions: int) -> Program:
    """A random program without halts; the last instruction but one takes a cell from itself, which always jumps."""
    program = random_program(rng, bits, cells, instructions)
    last, cell = instructions - 1, rng.randrange(cells)
    code = [i if isinstance(i, Subleq) else Subleq(cell, rng.randrange(cells), rng.randrange(last))
            for i in program.instructions[: last - 1]]
    return Program.create([*code, Subleq(cell, cell, rng.randrange(last)), Halt()], list(program.memory))


def run_beside(machine: SubleqMachine, program: Program) -> int:
    """The engine and the interpreter, part by part; how many steps were made."""
    code, memory, counter = fast.decode(program), list(program.memory), 0
    card = run_lowered(machine.model, machine.punch(program), machine.design.warm_up, facts=machine.layout).card
    for part in PARTS:
        ran = run_lowered(machine.model, card, part, facts=machine.layout)
        counter = fast.run(code, memory, machine.sizes.word_bits, part, counter)
        state = machine.read(ran.card)
        assert (state.program_counter, list(state.memory)) == (counter, memory)
        assert (ran.engine, ran.notes) == ("lowered", ())
        card = ran.card
    return sum(PARTS)


NEWTON = """
.range 16
.data
A      matrix 3x3   4 1 0 ; 1 3 -1 ; 0 -1 5
X      matrix 3x3   0.1 0 0 ; 0 0.1 0 ; 0 0 0.1
two    matrix 3x3   2 0 0 ; 0 2 0 ; 0 0 2
T      matrix 3x3
Y      matrix 3x3
turns  scalar 0
n      scalar -4
one    scalar 1
five   scalar 5
.code
loop:  T = mul(A, X)
       T = sub(two, T)
       Y = transpose(X)
       X = mul(Y, T)
       n = add(n, one); if n <= 0 goto loop
       n = sub(n, five)
       goto loop
"""


@pytest.mark.soak
@pytest.mark.parametrize(("heads", "precision", "tolerance"),
                         [(1, "float64", 1e-7), (2, "float64", 1e-9), (3, "float32", 1e-2)])
def test_a_million_instructions_that_correct_themselves(heads: int, precision: str, tolerance: float) -> None:
    """Newton's iteration for an inverse, once it has converged, takes its own error out: no error grows."""
    program = assemble(NEWTON)
    machine = build(program, heads=heads, precision=precision)
    exact, card, made = DecodedFleq(program), machine.punch(program), 0
    errors = []
    for part in (100, 900, 9_000, 90_000, 900_000):
        ran = run_lowered(machine.model, card, part, facts=machine.layout)
        assert (ran.engine, ran.notes) == ("lowered", ())
        exact.run(part)
        state = machine.read(ran.card)
        assert state.program_counter == exact.counter
        found = state.memory[: program.rows, : program.columns]
        errors.append(float(np.max(np.abs(found - exact.memory[: program.rows, : program.columns]))))
        card, made = ran.card, made + part
    assert made == 1_000_000
    assert max(errors) < tolerance, errors
    inverse = program.named(machine.read(card).memory[:, : program.columns])["X"]
    assert np.allclose(inverse @ np.array([[4, 1, 0], [1, 3, -1], [0, -1, 5]]), np.eye(3), atol=8 * tolerance)


@pytest.mark.soak
def test_many_random_fleq_programs() -> None:
    """To their ends, on one machine: the cases of all its functions and shapes come together."""
    functions = ("add", "sub", "mul", "transpose", "sigmoid", "hadamard", "percentage", *fleq_cases.POINTER_FUNCTIONS)
    machine = FleqMachine(functions=functions, size=2, memory=16, instructions=10, range=fleq_cases.RANGE, heads=2)
    rng = random.Random("soak")
    steps = 0
    while steps < 10_000:
        program = fleq_cases.random_program(rng, machine, 200)
        expected = fleq_oracle.run(program, 200)
        ran = run_lowered(machine.model, machine.punch(program), 300, facts=machine.layout, until=machine.halting)
        assert (ran.engine, ran.notes, ran.reason) == ("lowered", (), "matched")
        state = machine.read(ran.card)
        found = state.memory[: program.rows, : program.columns]
        assert np.allclose(found, expected.state.memory[:, : program.columns], rtol=0, atol=1e-6)
        assert (state.program_counter, ran.loops - 1) == (expected.state.program_counter, expected.steps)
        steps += expected.steps
