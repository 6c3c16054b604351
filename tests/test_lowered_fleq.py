"""The lowered engine on FLEQ machines: what is exact agrees bit for bit, soft products and sigmoids within their bounds."""

from __future__ import annotations

import random
import runpy

import numpy as np
import pytest
import torch
from torch import Tensor

from punchcard.api import build
from punchcard.card.packed import PackedCard
from punchcard.engines import prepare
from punchcard.engines.lowered.card_state import CardState
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.machines.fleq import oracle
from punchcard.machines.fleq.isa import Call, FleqProgram, PointerUpdate, Step
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import EXAMPLES, soaked
from tests.engine_runs import run_dense, run_lowered
from tests.fleq_cases import POINTER_FUNCTIONS, RANGE, random_program
from tests.lowered_cases import assert_the_equation, cards_of

pytestmark = pytest.mark.usefixtures("shared_code")

EXACT = ("add", "sub", *POINTER_FUNCTIONS)
"""Rounded once, or not at all: there is but one way to compute them."""


def tolerance(machine: FleqMachine, function: str | None) -> float:
    """Two results within the bound of the exact one differ by twice the bound at most; what is exact, not at all."""
    d = machine.sizes.size
    if function is None or function in EXACT or (function == "transpose" and d & (d - 1) == 0):
        return 0.0
    return 2 * machine.bound(function)


def called(machine: FleqMachine, program: FleqProgram, card: Tensor) -> str | None:
    """The function that the next loop calls."""
    instruction = program.instructions[machine.read(card).program_counter]
    action = instruction.action if isinstance(instruction, Step) else None
    return action.function if isinstance(action, Call | PointerUpdate) else None


def assert_within_bounds(machine: FleqMachine, program: FleqProgram, card: Tensor, loops: int) -> Tensor:
    """Every card is what the model makes of the one before, but for what the function called has written to memory."""
    layout = machine.layout
    seen, ran = cards_of(machine.model, card, layout, loops)
    assert (ran.engine, ran.notes) == ("lowered", ())
    for loop, found in enumerate(seen, start=1):
        function = called(machine, program, card)
        allowed = torch.zeros_like(card)
        layout.put(allowed, "incoming", "memory", tolerance(machine, function))
        apart = (machine.model(card) - found).abs()
        assert bool((apart <= allowed).all()), f"loop {loop}, {function}: off by {float((apart - allowed).max())} too much"
        card = found
    return card


# (d, functions, options)
MACHINES = [
    soaked(1, ("add", "sub", "mul", "transpose", "sigmoid", "hadamard", "percentage", *POINTER_FUNCTIONS), {"heads": 1}),
    (2, ("add", "sub", "mul", "transpose", "sigmoid", *POINTER_FUNCTIONS), {"heads": 2}),
    (2, ("add", "mul", "transpose"), {"anchors": True}),
    (2, ("add", "inverse", "sqrt", "percentage", "hadamard"), {"heads": 2, "precision": "float32"}),
    soaked(3, ("add", "mul", "transpose", "hadamard"), {"heads": 3, "precision": "float32"}),
    (1, ("add", "reset_pointer"), {"design": "three-layer"}),
    soaked(1, ("add", "mul", "sigmoid", *POINTER_FUNCTIONS), {"design": "three-layer"}),
    soaked(2, ("add", "sub", "mul", "transpose", "sigmoid", *POINTER_FUNCTIONS), {"heads": 2, "design": "three-layer"}),
    soaked(2, ("add", "inverse", "hadamard", "percentage"), {"design": "three-layer", "precision": "float32"}),
    soaked(3, ("add", "mul", "transpose"), {"heads": 3, "design": "three-layer"}),
    soaked(3, ("add", "mul", "sub"), {"heads": 3}),
    soaked(4, ("add", "sub", "transpose", "sigmoid"), {}),
]


@pytest.mark.parametrize(("d", "functions", "options"), MACHINES)
def test_random_programs(d: int, functions: tuple[str, ...], options: dict[str, object]) -> None:
    """From a punched card and from one in the middle of the run; to the end, and some loops more."""
    machine = FleqMachine(functions=functions, size=d, memory=12 + 2 * d, instructions=7, range=RANGE,
                          **options)  # type: ignore[arg-type]
    rng = random.Random(f"{d} {functions}")
    program = random_program(rng, machine, 30)
    while len(program.used_functions()) < min(len(functions), 4):
        program = random_program(rng, machine, 30)
    card = machine.punch(program)
    last = assert_within_bounds(machine, program, card, 30)
    assert_within_bounds(machine, program, run_dense(machine.model, card, 4).card, 12)
    if machine.precision.name == "float64" and not machine.anchors:
        expected = oracle.run(program, 30).state.memory[:, : program.columns]
        assert np.allclose(machine.read(last).memory[: program.rows, : program.columns], expected, rtol=0, atol=1e-5)


def test_exact_functions_bit_for_bit() -> None:
    machine = FleqMachine(functions=("add", "sub", "transpose", *POINTER_FUNCTIONS), size=2, memory=20, instructions=10,
                          range=RANGE, precision="float32")
    assert_the_equation(machine.model, machine.punch(random_program(random.Random(1), machine, 40)), machine.layout, 40)


LARGE = """
.range 64
.data
a  matrix {d}x{d}   {a}
b  matrix {d}x{d}   {b}
c  matrix {d}x{d}
n  scalar -2
one scalar 1
.code
   c = mul(a, b)
   a = transpose(c)
   n = add(n, one); if n <= 0 goto 0
   halt
"""


@pytest.mark.parametrize("d", [4, soaked(8)])
def test_many_rows_and_columns(d: int) -> None:
    rng = np.random.default_rng(8)
    a, b = (" ; ".join(" ".join(f"{x:.4f}" for x in row) for row in rng.uniform(-0.5, 0.5, (d, d))) for _ in "ab")
    program = assemble(LARGE.format(d=d, a=a, b=b))
    machine = build(program, heads=2)
    last = assert_within_bounds(machine, program, machine.punch(program), 12)
    expected = oracle.run(program, 100)
    assert expected.halted
    found = machine.read(last).memory[:d, : program.columns]
    assert np.allclose(found, expected.state.memory[:, : program.columns], atol=1e-6)


COLUMNS = """
.range 64
.data
m    matrix 2x4   1 2 3 4 ; 5 6 7 8
sum  matrix 2x1
n    scalar -3
one  scalar 1
back scalar -4
.code
   sum = add(sum, m[0])
   incr_pointer(0.b)
   n = add(n, one); if n <= 0 goto 0
   reset_pointer(0.b, m)
   sum = sub(sum, sum)
   n = add(n, back); if n <= 0 goto 0
   halt
"""


@pytest.mark.parametrize("design", ["compact", soaked("three-layer")])
def test_a_program_that_changes_its_own_pointers(design: str) -> None:
    """It adds up the columns of a matrix, again and again: an instruction is stored to, and read from there."""
    program = assemble(COLUMNS)
    machine = build(program, design=design)
    card = machine.punch(program)
    assert_the_equation(machine.model, card, machine.layout, 45)
    for loops in (12, 13, 29, 10_000):
        ran = run_lowered(machine.model, card, loops, facts=machine.layout)
        found, expected = machine.read(ran.card), oracle.run(program, loops).state
        assert np.array_equal(found.memory[:2, : program.columns], expected.memory[:, : program.columns])
        assert found.program_counter == expected.program_counter


def test_what_follows_is_checked() -> None:
    """Registers that do not fit their instruction: the code made for those that do is not used for them."""
    program = assemble(".data\nx scalar 3\ny scalar 1\n.code\ny = add(x, y)\nhalt")
    machine = build(program, design="three-layer", memory=12)
    card = machine.punch(program)
    odd = card.clone()
    machine.layout.get(odd, "write_idle", "scratchpad")[...] = 1.0
    packed, strange = (PackedCard.of(machine.layout, one) for one in (card, odd))
    compiled_model = CompiledModel(machine.weights, machine.layout, packed)
    live, other = CardState(compiled_model, packed), CardState(compiled_model, strange)
    assert live.advance(1)[0] == 1
    assert machine.read(live.tensor()).memory[0, 1] == 4.0
    assert other.advance(1)[0] == 0
    assert "beyond its limit" in other.why()
    assert torch.equal(other.tensor(), odd)


def test_a_block_of_ones_own() -> None:
    text = """
    .data
    a  matrix 2x2   1 -2 ; 3 0.5
    b  matrix 2x2   0 -1 ; 4 0.25
    c  matrix 2x2
    n  scalar -3
    one scalar 1
    .code
       c = maximum(a, b)
       a = sub(b, c)
       n = add(n, one); if n <= 0 goto 0
       halt
    """
    own = runpy.run_path(str(EXAMPLES / "own_block.py"))
    program = assemble(text, functions={"maximum": own["MAXIMUM"]})
    machine = build(program, blocks=[own["BLOCK"]])
    assert_the_equation(machine.model, machine.punch(program), machine.layout, 14)


def test_the_engine_that_made_the_loops_is_named() -> None:
    """The paper's design is lowered, but its stores are not: nearly all loops are made by another engine, and no run says
    that the compiled code made them."""
    program = assemble((EXAMPLES / "newton.fleq").read_text())
    machine = build(program, design="paper")
    runner = prepare("auto", machine.weights, machine.layout, machine.punch(program), cache=machine.engine_cache)
    assert runner.engine == "lowered", "nothing shows before the first store"
    ran = runner.run(10)
    assert (ran.engine, ran.made["lowered"] + ran.made["dense"]) == ("dense", 10)
    assert ran.made["dense"] >= 9
    assert ran.notes == runner.notes
    assert ran.notes[0].startswith(f"{ran.made['dense']} loops were made by the dense engine: what is stored to row ")
    result = machine.run(program, max_steps=1000)
    assert result.engine != "lowered"
    assert any(f"made by the {result.engine} engine" in note for note in result.notes)


@pytest.mark.parametrize(("precision", "d"), [
    ("float64", 2), soaked("float64", 4), soaked("float32", 2), soaked("float32", 4)])
def test_a_transpose_of_the_least_numbers(precision: str, d: int) -> None:
    """A hard average of d columns: each is a d-th, which below the normal numbers is rounded. Above them nothing is."""
    least = float(np.finfo(precision).smallest_subnormal)
    normal = float(np.finfo(precision).smallest_normal)
    program = assemble(f".data\nx matrix {d}x{d}\ny matrix {d}x{d}\n.code\ny = transpose(x)")
    machine = FleqMachine.for_program(program, precision=precision)
    for value in (least, 3 * least, 1000 * least, normal, 3.1 * normal, 2 * d * normal, 1.7 * 2 * d * normal):
        x = np.full((d, d), value, dtype=precision).astype(np.float64)
        given = program.with_values({"x": x})
        dense, lowered = (machine.run(given, engine=engine).memory["y"] for engine in ("dense", "lowered"))
        assert np.array_equal(dense, x.T), value
        assert np.abs(lowered - x.T).max() <= (d * least if value < 2 * d * normal else 0.0), value
