"""The lowered engine gives the card of the equation after every loop, bit for bit: SUBLEQ, and machines from elsewhere.

In the soak it is beside the interpreters for millions of loops.
"""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from punchcard.api import build
from punchcard.card.encoding import decode_bits, encode_bits
from punchcard.machines.fleq import oracle as fleq_oracle
from punchcard.machines.fleq.fast import DecodedFleq
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.subleq import fast, oracle
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from tests import fleq_cases
from tests.cases import EXPECTED, load_subleq, programs, soaked
from tests.engine_runs import compiled_model_of, run_dense, run_lowered
from tests.lowered_cases import (
    Machine,
    assert_the_equation,
    operations,
    painters,
    random_rules,
    run_turing_machine,
    turing_machine,
)
from tests.random_programs import random_program

pytestmark = pytest.mark.usefixtures("shared_code")

LOOPS = 24


# SUBLEQ

# (design, number format, bits of a word, cells, instructions)
SIZES = [
    ("two-layer", "float32", 8, 13, 20),
    ("two-layer", "float64", 32, 9, 7),
    soaked("two-layer", "float32", 16, 29, 32),
    ("two-layer", "float64", 4, 1, 2),
    ("two-layer", "float32", 2, 2, 3),
    ("paper", "float32", 4, 30, 33),
    soaked("paper", "float64", 32, 10, 17),
    ("paper", "float32", 16, 29, 32),
    ("paper", "float64", 8, 5, 9),
]


@pytest.mark.parametrize(("design", "precision", "bits", "cells", "instructions"), SIZES)
def test_random_programs_bit_for_bit(design: str, precision: str, bits: int, cells: int, instructions: int) -> None:
    """From punched cards, and from cards in the middle of a run."""
    machine = SubleqMachine(word_bits=bits, memory=cells, instructions=instructions, design=design, precision=precision)
    rng = random.Random(f"{design} {bits} {cells}")
    for before in (0, 1, 7):
        card = machine.punch(random_program(rng, bits, cells, instructions))
        card = run_dense(machine.model, card, before).card
        assert_the_equation(machine.model, card, machine.layout, LOOPS)


@pytest.mark.parametrize("design", ["two-layer", "paper"])
def test_loops_after_halting_change_nothing(design: str) -> None:
    program = load_subleq("multiply.subleq")
    machine = SubleqMachine(memory=len(program.memory), instructions=len(program.instructions), design=design)
    cells, steps = EXPECTED["multiply.subleq"]
    assert_the_equation(machine.model, machine.punch(program), machine.layout, steps + 9)
    ended = run_lowered(machine.model, machine.punch(program), 1_000_000, facts=machine.layout, until=machine.halting)
    assert (ended.reason, ended.matched, ended.loops) == ("matched", machine.halting[0], steps + 1)
    assert {name: machine.read(ended.card).memory[i] for i, name in enumerate(program.cell_names())} == cells
    on = run_lowered(machine.model, ended.card, 100_000, facts=machine.layout)
    assert torch.equal(on.card, machine.model(ended.card))


@pytest.mark.parametrize(("cells", "instructions", "precision"), [
    (1, 1, "float32"), (1, 1, "float64"), (1, 2, "float64"), (3, 2, "float32"), (2, 3, "float64")])
def test_cards_of_a_few_columns(cells: int, instructions: int, precision: str) -> None:
    """With fewer than nine columns a head may stay soft, and then such a card may be left to another engine.

    So is a card in which the analysis finds no passive columns.
    """
    for design in ("two-layer", "paper", "one-layer"):
        machine = SubleqMachine(word_bits=3, memory=cells, instructions=instructions, design=design, precision=precision)
        program = (random_program(random.Random(cells), 3, cells, instructions) if instructions > 1
                   else Program.create([Halt()], [0] * cells))
        hard = design == "two-layer" or (design == "paper" and machine.layout.columns > 9)
        how = "lowered" if hard else "dense"
        ran = assert_the_equation(machine.model, machine.punch(program), machine.layout, 12, engine=how, notes=None)
        assert bool(ran.notes) == (how == "dense")


@pytest.mark.parametrize("design", ["two-layer", "paper"])
def test_many_loops_end_like_the_interpreter(design: str) -> None:
    machine = SubleqMachine(word_bits=12, memory=20, instructions=24, design=design, precision="float32")
    rng = random.Random(design)
    for _ in range(4):
        program = random_program(rng, 12, 20, 24)
        ran = run_lowered(machine.model, machine.punch(program), 20_000 + machine.design.warm_up, facts=machine.layout)
        assert machine.read(ran.card) == oracle.run(program, 12, 20_000).state


WIDE = SubleqMachine(word_bits=24, memory=15, instructions=9, design="two-layer")


@settings(max_examples=15)
@given(programs(), st.integers(0, 6))
def test_any_program(program: Program, before: int) -> None:
    card = run_dense(WIDE.model, WIDE.punch(program), before).card
    assert_the_equation(WIDE.model, card, WIDE.layout, 16)


SMALL = {design: SubleqMachine(word_bits=3, memory=5, instructions=7, design=design, precision="float32")
         for design in ("two-layer", "paper")}


@settings(max_examples=15)
@given(st.sampled_from(sorted(SMALL)), st.randoms(use_true_random=False))
def test_any_bits_on_the_card(design: str, rng: random.Random) -> None:
    """Whatever is in the instructions, the cells and the scratchpad: pointers to nowhere, to instructions, to itself."""
    machine = SMALL[design]
    layout = machine.layout
    card = machine.punch(Program.create([Halt()], [0] * 5))
    for block in layout.blocks:
        for region in block.holds:
            if block.holds[region] == "bits" and block.name != "position":
                place = layout.get(card, block.name, region)
                place[...] = torch.tensor([rng.choice((-1.0, 1.0)) for _ in range(place.numel())]).reshape(place.shape)
    assert_the_equation(machine.model, card, layout, 6, notes=None)


# Machines from elsewhere


@pytest.mark.parametrize(("cells", "bits", "dtype"), [(16, 4, torch.float64), (32, 5, torch.float32), (8, 3, torch.float64)])
def test_turing_machines(cells: int, bits: int, dtype: torch.dtype) -> None:
    rng = random.Random(cells)
    rules, tape = random_rules(rng), [rng.randrange(2) for _ in range(cells)]
    machine = turing_machine(rules, tape, 3, bits, dtype)
    assert_the_equation(machine.model, machine.card, machine.layout, 60)
    ran = run_lowered(machine.model, machine.card, 12_345, facts=machine.layout)
    assert ran.notes == ()
    assert of_turing_machine(machine, ran.card) == run_turing_machine(rules, tape, 3, bits, 12_345)


def of_turing_machine(machine: Machine, card: torch.Tensor) -> tuple[list[int], int, int]:
    """Tape, place and state."""
    numbers = [decode_bits(machine.layout.get(card, rows, region)).tolist()
               for rows, region in (("symbol", "tape"), ("place", "head"), ("state", "head"))]
    return numbers[0], numbers[1][0], numbers[2][0]


@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_any_tape_on_one_turing_machine(rng: random.Random) -> None:
    """Also a place that is beyond the tape, where the head finds nothing."""
    machine = turing_machine(random_rules(random.Random(3)), [0] * 12, 0, 4)
    layout, card = machine.layout, machine.card.clone()
    layout.put(card, "symbol", "tape", encode_bits([rng.randrange(2) for _ in range(12)], 1))
    layout.put(card, "place", "head", encode_bits(rng.randrange(16), 4))
    layout.put(card, "state", "head", encode_bits(rng.randrange(4), 2))
    assert_the_equation(machine.model, card, layout, 20, notes=None)


def test_columns_that_compute_alike() -> None:
    """Two heads in one group, which move apart: no two of their rows are the same."""
    machine = painters(16, 4, moves=(1.0, 1.0))
    assert_the_equation(machine.model, machine.card, machine.layout, LOOPS)


def test_rows_that_select_a_case() -> None:
    rng = random.Random(2)
    machine = operations([rng.randrange(4) for _ in range(16)], 4)
    assert_the_equation(machine.model, machine.card, machine.layout, LOOPS)
    compiled_model = compiled_model_of(machine.model, machine.card, machine.layout)
    assert len(compiled_model.known) == 4, "one piece of code for each operation"


# The weights decide


def test_other_weights_give_other_code() -> None:
    """Two machines of one layout, card for card the same; only the rules in their weights differ."""
    rng = random.Random(8)
    tape = [rng.randrange(2) for _ in range(16)]
    rules = [random_rules(rng) for _ in range(2)]
    machines = [turing_machine(r, tape, 5, 4) for r in rules]
    first, second = (compiled_model_of(m.model, m.card, m.layout) for m in machines)
    assert first.name != second.name
    for machine, own in zip(machines, rules, strict=True):
        ran = run_lowered(machine.model, machine.card, 1000, facts=machine.layout)
        assert of_turing_machine(machine, ran.card) == run_turing_machine(own, tape, 5, 4, 1000)


def test_weights_that_are_replaced_are_compiled_anew() -> None:
    rng = random.Random(9)
    tape = [rng.randrange(2) for _ in range(16)]
    old, new = (random_rules(rng) for _ in range(2))
    machine, other = turing_machine(old, tape, 5, 4), turing_machine(new, tape, 5, 4)
    run_lowered(machine.model, machine.card, 10, facts=machine.layout)
    machine.model.load_state_dict(other.model.state_dict())
    ran = run_lowered(machine.model, machine.card, 1000, facts=machine.layout)
    assert of_turing_machine(machine, ran.card) == run_turing_machine(new, tape, 5, 4, 1000)
    with torch.no_grad():
        for parameter in machine.model.parameters():
            parameter.data.mul_(0.5)  # a change that the version of a tensor does not show
    assert_the_equation(machine.model, machine.card, machine.layout, 5, engine="dense", notes=None)


def test_a_model_that_is_gone_is_forgotten() -> None:
    machine = turing_machine(random_rules(random.Random(1)), [0] * 16, 5, 4)
    run_lowered(machine.model, machine.card, 10, facts=machine.layout)
    model = weakref.ref(machine.model)
    del machine
    gc.collect()
    assert model() is None


def test_one_code_serves_all_cards_of_a_machine() -> None:
    machine = SubleqMachine(word_bits=4, memory=6, instructions=9, design="two-layer")
    rng = random.Random(1)
    compiled_models = {compiled_model_of(machine.model, machine.punch(random_program(rng, 4, 6, 9)), machine.layout)
                       for _ in range(5)}
    assert len(compiled_models) == 1


# Long checks against the interpreters


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
