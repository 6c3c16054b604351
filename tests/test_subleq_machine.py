"""The interpreter on cases worked out by hand, and the machine against it, after every loop, for every design."""

from __future__ import annotations

import math
import random
import time

import pytest
import torch

from punchcard.errors import EncodingError, ProgramError, PunchcardError, SizeError
from punchcard.machines.lockstep import compare
from punchcard.machines.subleq import oracle
from punchcard.machines.subleq.isa import Halt, Program, State, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from tests.cases import DESIGNS, load_subleq, soaked
from tests.random_programs import random_program

STEPS_PER_DESIGN = 4_000
SOAK_STEPS = 1_000_000
# (word bits, columns): every width from 4 to 16, and cards of 8 to 256 columns
SHAPES = [(4, 8), (5, 256), (6, 16), (7, 33), (8, 64), (9, 9), (10, 128), (11, 20), (12, 65), (13, 12), (14, 32),
          (15, 100), (16, 48)]


def share(columns: int, power: float) -> float:
    """A shape's part of all steps: a loop costs the more the larger the card is."""
    return math.pow(columns, power) / sum(math.pow(other, power) for _, other in SHAPES)


def machine_of(columns: int, word_bits: int, design: str, precision: str = "float64") -> SubleqMachine:
    """A machine whose card has the given columns: one scratchpad column, two constants, cells and instructions."""
    cells = max(1, (columns - 3) * 2 // 5)
    return SubleqMachine(word_bits=word_bits, memory=cells, instructions=columns - 3 - cells, design=design,
                         precision=precision)


def check_random_programs(machine: SubleqMachine, rng: random.Random, wanted: int) -> int:
    """Compare random programs in batches until `wanted` executed instructions have been checked."""
    sizes = machine.sizes
    most, checked = max(4, min(64, 1024 // machine.layout.columns)), 0
    while checked < wanted:
        batch = max(2, min(most, (wanted - checked) // 35))  # a program makes about 35 steps
        seed = rng.getrandbits(32)
        source = random.Random(seed)
        programs = [random_program(source, sizes.word_bits, sizes.memory, sizes.instructions) for _ in range(batch)]
        comparison = compare(machine, programs, min(60, wanted))
        assert comparison.agrees, f"seed {seed}: {comparison.mismatches[0]}"
        checked += comparison.steps
    return checked


@pytest.mark.parametrize(("bits", "a", "b", "result", "goes_to"), [
    (4, 3, 5, 2, 1), (4, 5, 5, 0, 2), (4, 5, 3, -2, 2),
    (4, -8, 7, -1, 2),  # 15 wraps to -1
    (4, 1, -8, 7, 1),   # -9 wraps to 7
    (4, -8, 0, -8, 2),  # 8 wraps to -8
    (4, -8, -8, 0, 2),
    (16, 1, -32768, 32767, 1),
])
def test_one_instruction_of_the_interpreter(bits: int, a: int, b: int, result: int, goes_to: int) -> None:
    interpreter = oracle.SubleqInterpreter(Program.create([Subleq(0, 1, 2), Halt(), Halt()], [a, b]), bits)
    interpreter.step()
    assert interpreter.state == State((a, result), goes_to)


def test_where_the_interpreter_halts() -> None:
    program = Program.create([Subleq(0, 0, 1), Halt(), Subleq(0, 0, 0)], [5])
    outcome = oracle.run(program, 8, 100)
    assert (outcome.steps, outcome.halted, outcome.state) == (1, True, State((0,), 1))
    assert oracle.run(program, 8, 0).halted is False
    assert oracle.run(Program.create([Halt()]), 8, 0).halted is True


@pytest.mark.parametrize("soak", [False, soaked(True)])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("word_bits", "columns"), SHAPES)
def test_random_programs(design: str, word_bits: int, columns: int, soak: bool) -> None:
    """Steps for each design, more of them on smaller cards; float32 on every second, which the soak chooses otherwise."""
    precision = "float32" if (word_bits if soak else columns + 1) % 2 else "float64"
    machine = machine_of(columns, word_bits, design, precision)
    assert machine.layout.columns == columns
    wanted = math.ceil(SOAK_STEPS * share(columns, -1) if soak else STEPS_PER_DESIGN * share(columns, -1.5))
    assert check_random_programs(machine, random.Random(f"{'soak ' * soak}{design} {columns}"), wanted) >= wanted


@pytest.mark.parametrize("design", DESIGNS)
def test_every_pair_of_four_bit_words(design: str) -> None:
    """One instruction on all 256 pairs: the difference, the wrap-around and the branch."""
    machine = SubleqMachine(word_bits=4, memory=2, instructions=3, design=design)
    programs = [
        Program.create([Subleq(0, 1, 2), Halt(), Halt()], [a, b]) for a in range(-8, 8) for b in range(-8, 8)
    ]
    comparison = compare(machine, programs, 3)
    assert comparison.agrees, comparison.mismatches[0]
    assert comparison.steps == 256
    same_cell = [Program.create([Subleq(0, 0, 2), Halt(), Halt()], [a, 0]) for a in range(-8, 8)]
    assert compare(machine, same_cell, 3).agrees


@pytest.mark.parametrize("design", DESIGNS)
def test_read_after_write(design: str) -> None:
    """Chains in which every instruction uses what the one before has just written, as a, as b and as both."""
    code = [Subleq(0, 1, 1), Subleq(1, 2, 2), Subleq(2, 1, 3), Subleq(1, 1, 4), Subleq(1, 0, 5), Subleq(0, 1, 0)]
    machine = SubleqMachine(word_bits=6, memory=3, instructions=7, design=design)
    programs = [Program.create(code, [a, b, c]) for a in (-32, -1, 0, 1, 31) for b in (-32, 0, 5) for c in (-7, 0, 31)]
    comparison = compare(machine, programs, 60)
    assert comparison.agrees, comparison.mismatches[0]


@pytest.mark.parametrize(("precision", "design"), [
    (soaked if precision == "float32" and design != "two-layer" else pytest.param)(precision, design)
    for precision in ("float64", "float32") for design in DESIGNS])
def test_eof_holds(design: str, precision: str) -> None:
    """Loops on EOF leave the card bit-identical: a card that one loop leaves as it is stays so for ever."""
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5, design=design, precision=precision)
    result = machine.run(load_subleq("multiply.subleq"))
    assert result.halted
    card = machine.model(result.card)  # the one-layer design writes its last result in the loop after
    assert machine.read(card) == result.state
    held = card
    for _ in range(20):
        held = machine.model(held)
        assert torch.equal(held, card)


@pytest.mark.parametrize(("design", "layers", "heads", "width"), [
    ("paper", 9, [1, 2, 0, 0, 0, 1, 0, 0, 0], lambda n, log: 8 * log + 3 * n + 1 + max(3 * log, 2 * n)),
    ("two-layer", 2, [2, 1], lambda n, log: 2 * n + 8 * log + 1),
    ("one-layer", 1, [3], lambda n, log: 5 * n + 9 * log + 1),
])
def test_sizes(design: str, layers: int, heads: list[int], width: object) -> None:
    assert callable(width)
    for word_bits, columns in SHAPES:
        machine = machine_of(columns, word_bits, design)
        assert [shape.heads for shape in machine.model.shapes] == heads
        assert len(machine.model.shapes) == layers
        assert machine.layout.width == width(word_bits, machine.sizes.pointer_bits)


def test_hidden_units_at_sixteen_bits_and_256_columns() -> None:
    hidden = {design: [s.hidden for s in machine_of(256, 16, design).model.shapes] for design in DESIGNS}
    assert hidden == {
        "paper": [96, 128, 32, 128, 160, 64, 97, 34, 288], "two-layer": [224, 224], "one-layer": [512],
    }


def test_building_is_quick() -> None:
    """The paper's machine at 16 bits and 256 columns takes 0.05 s here; a second is the limit on any machine."""
    begin = time.process_time()
    machine_of(256, 16, "paper")
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("code", "memory", "steps"), [
    ([Halt()], [5], 0),
    ([Subleq(0, 0, 1), Halt()], [5], 1),
    ([Subleq(0, 1, 1), Subleq(1, 0, 2), Halt()], [5, 3], 2),
])
def test_steps_are_the_oracles(design: str, code: list[Subleq | Halt], memory: list[int], steps: int) -> None:
    """Neither the warm-up loop nor the EOF loop counts."""
    program = Program.create(code, memory)
    machine = SubleqMachine(word_bits=6, memory=3, instructions=4, design=design)
    for limit in (steps, steps + 1, 1000):
        result = machine.run(program, max_steps=limit)
        assert (result.steps, result.halted) == (steps, True)
    if steps:
        result = machine.run(program, max_steps=steps - 1)
        assert (result.steps, result.halted) == (steps - 1, False)
        assert result.state == oracle.run(program, 6, steps - 1).state


def test_misfits_are_refused() -> None:
    machine = SubleqMachine(word_bits=4, memory=2, instructions=3)
    with pytest.raises(ProgramError, match="the program has 4 instructions, the machine has room for 3: build it with "
                                           "instructions=4 or more"):
        machine.punch(Program.create([Subleq(0, 0, 1)] * 3, [0]))
    with pytest.raises(ProgramError, match="the program has 3 memory cells, the machine has room for 2"):
        machine.punch(Program.create([Halt()], [1, 2, 3]))
    with pytest.raises(ProgramError, match="cell 'm1' is 8, which does not fit a word of 4 bits: the range is -8 to 7"):
        machine.punch(Program.create([Halt()], [1, 8]))
    with pytest.raises(PunchcardError, match=r"unknown design 'two_layer' \(did you mean 'two-layer'\?\)"):
        SubleqMachine(design="two_layer")
    with pytest.raises(SizeError, match="memory=0"):
        SubleqMachine(memory=0)
    with pytest.raises(SizeError, match="instructions=0"):
        SubleqMachine(instructions=0)
    with pytest.raises(SizeError, match="the most is 16777216"):
        SubleqMachine(memory=1 << 24)
    with pytest.raises(SizeError, match="does not fit the layout"):
        machine.read(torch.zeros(3, 3))
    with pytest.raises(EncodingError, match="not a ±1 bit"):
        machine.read(machine.layout.blank())
    with pytest.raises(PunchcardError, match="read takes one card"):
        machine.read(machine.layout.blank().unsqueeze(0))
