"""Minsky machines: the translation against a plain Minsky interpreter, and the paper's print against both."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.errors import ProgramError
from punchcard.machines.subleq import oracle as subleq_oracle
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.minsky import Add, MinskyInstruction, MinskyProgram, Sub, assemble, translate

LIMIT = 300


@dataclass(frozen=True)
class MinskyOutcome:
    """The registers by name, whether the machine halted, and its steps."""

    registers: dict[str, int]
    halted: bool
    steps: int


def run_minsky(program: MinskyProgram, max_steps: int) -> MinskyOutcome:
    """Run until the machine halts or has made `max_steps` steps. Registers are unbounded."""
    names = [name for name, _ in program.registers]
    values = [value for _, value in program.registers]
    counter = steps = 0
    while steps < max_steps:
        instruction = program.instructions[counter]
        if isinstance(instruction, Add):
            values[instruction.register] += 1
            counter += 1
        elif isinstance(instruction, Sub):
            if values[instruction.register] == 0:
                counter = instruction.target
            else:
                values[instruction.register] -= 1
                counter += 1
        else:
            return MinskyOutcome(dict(zip(names, values, strict=True)), True, steps)
        steps += 1
    halted = not isinstance(program.instructions[counter], Add | Sub)
    return MinskyOutcome(dict(zip(names, values, strict=True)), halted, steps)


@st.composite
def machines(draw: st.DrawFn) -> MinskyProgram:
    registers = draw(st.integers(1, 4))
    count = draw(st.integers(1, 10))
    register, target = st.integers(0, registers - 1), st.integers(0, count)
    code = draw(st.lists(st.one_of(st.builds(Add, register), st.builds(Sub, register, target), st.just(Halt())),
                         min_size=count, max_size=count))
    values = draw(st.lists(st.integers(0, 6), min_size=registers, max_size=registers))
    return MinskyProgram((*code, Halt()), tuple((f"r{i}", v) for i, v in enumerate(values)))


def run_translated(program: Program, machine: MinskyProgram) -> dict[str, int] | None:
    """The registers at the end, or None when it does not halt."""
    outcome = subleq_oracle.run(program, 32, 6 * LIMIT)
    named = program.named(outcome.state.memory)
    return {name: named[name] for name, _ in machine.registers} if outcome.halted else None


@given(machines())
def test_the_translation_does_what_the_machine_does(machine: MinskyProgram) -> None:
    expected = run_minsky(machine, LIMIT)
    found = run_translated(translate(machine), machine)
    if expected.halted:
        assert found == expected.registers


def test_the_printed_translation_is_wrong() -> None:
    """Every operand pair swapped, as in the paper: most halting machines end with other registers, or never."""
    rng = random.Random(11)
    halting = right = 0
    for _ in range(400):
        registers, count = rng.randint(1, 3), rng.randint(2, 8)
        code: list[MinskyInstruction] = [
            Add(rng.randrange(registers)) if rng.random() < 0.5
            else Sub(rng.randrange(registers), rng.randrange(count + 1)) for _ in range(count)
        ]
        machine = MinskyProgram((*code, Halt()), tuple((f"r{i}", rng.randint(0, 4)) for i in range(registers)))
        expected = run_minsky(machine, LIMIT)
        if not expected.halted:
            continue
        halting += 1
        program = translate(machine)
        assert run_translated(program, machine) == expected.registers
        swapped = tuple(Subleq(i.b, i.a, i.c) if isinstance(i, Subleq) else i for i in program.instructions)
        printed = Program(swapped, program.memory, program.symbols)
        right += run_translated(printed, machine) == expected.registers
    assert halting > 100
    assert right < halting / 4


@pytest.mark.parametrize(("text", "instructions", "registers"), [
    (".data\nx 3\ny 0\n.code\nloop: sub x, done\nadd y\nsub z_, loop\ndone: halt\n.data\nz_ 0",
     (Sub(0, 3), Add(1), Sub(2, 0), Halt()), {"x": 3, "y": 0, "z_": 0}),
    ("add x\nloop: sub y, loop", (Add(0), Sub(1, 1), Halt()), {"x": 0, "y": 0}),
    ("sub x, end\nhalt\nend:", (Sub(0, 2), Halt(), Halt()), {"x": 0}),
])
def test_language(text: str, instructions: tuple[MinskyInstruction, ...], registers: dict[str, int]) -> None:
    machine = assemble(text)
    assert (machine.instructions, machine.registers) == (instructions, tuple(registers.items()))


def test_helper_cells_get_out_of_the_way() -> None:
    program = translate(assemble(".data\nhelper 2\nc_zero 1\n.code\nadd helper\nadd c_zero"))
    assert [s.name for s in program.symbols] == ["helper", "c_zero", "c_minus_one", "_c_zero", "c_plus_one", "_helper"]
    outcome = subleq_oracle.run(program, 8, 10)
    assert program.named(outcome.state.memory)["helper"] == 3


@pytest.mark.parametrize(("text", "message"), [
    (".data\nx -1\n.code\nadd x", "line 2, column 1: register 'x': a register holds one integer, 0 or more"),
    (".data\nx 1 2\n.code\nadd x", "register 'x': a register holds one integer"),
    ("", "the program is empty"),
    (".data\nx 1\n.code\nadd y", "line 4, column 5: unknown memory cell 'y'"),
    ("sub x, nowhere", "line 1, column 8: unknown label 'nowhere'"),
    ("subleq x, y", r"line 1, column 1: unknown instruction 'subleq' \(did you mean 'sub'\?\): there are add"),
])
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        assemble(text)
