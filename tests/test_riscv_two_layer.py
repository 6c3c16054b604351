"""The two-layer design of the RISC-V machine: results lag one loop, and nobody notices."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import punchcard
from punchcard.engines import Controls, prepare
from punchcard.errors import SizeError
from punchcard.machines.riscv.designs.base import RiscvSizes, pending_word, settle
from punchcard.machines.riscv.designs.two_layer import RiscvTwoLayer
from punchcard.machines.riscv.isa import encode
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.oracle import LaggingInterpreter, RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram
from tests.riscv_cases import program_of, random_registers, random_words
from tests.test_riscv_machine import follow


@dataclass
class Compared:
    """How many instructions were compared, how many loops were spent on stalls, the faults, and what went wrong."""

    steps: int = 0
    stalls: int = 0
    faults: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def random_program(machine: RiscvMachine, seed: int) -> RiscvProgram:
    sizes = machine.sizes
    return program_of(random_words(seed, sizes.memory, sizes.base, multiply=False), sizes.base)


def begin(machine: RiscvMachine, program: RiscvProgram, seed: int) -> tuple[Tensor, RiscvInterpreter]:
    """A card and an interpreter with the same random registers."""
    card, oracle = machine.punch(program), machine.oracle(program, lambda: -1, lambda byte: None)
    oracle.registers = random_registers(seed, machine.sizes.memory, machine.sizes.base)
    first = machine.layout.region("registers").start
    for i, value in enumerate(oracle.registers):
        machine.layout.put_number_at(card, "memory", first + i, value)
    return card, oracle


def compare(
    machine: RiscvMachine, programs: list[RiscvProgram], loops: int, engine: str = "dense", seed: int = 0,
) -> Compared:
    """Each program until it ends; a batch has no host, so a system call ends it too."""
    found, live = Compared(), {}
    cards = []
    for i, program in enumerate(programs):
        card, oracle = begin(machine, program, seed + i)
        cards.append(card)
        live[i] = oracle

    def look(loop: int, batch: Tensor) -> None:
        for i, oracle in list(live.items()):
            fault = oracle.fault
            if loop > machine.design.warm_up and fault is None:
                found.steps += 1
                found.stalls += isinstance(oracle, LaggingInterpreter) and oracle.stalls
                oracle.step()
            card = batch[i]
            event = machine.layout.number_at(card, "event", 0)
            wrong = machine.differences(programs[i], card, oracle) + [str(v) for v in machine.layout.violations(card)]
            if bool(event & 4) != (loop > machine.design.warm_up and fault is not None):
                wrong.append(f"the events are {event}, the interpreter's fault is {fault}")
            if fault is None and (event & 2 > 0) != (oracle.fault is not None and oracle.fault.instruction is None):
                wrong.append(f"the events are {event}, the next fault is {oracle.fault}")
            found.wrong += [f"program {i}, loop {loop}: {line}" for line in wrong]
            if fault is not None and loop > machine.design.warm_up:
                found.faults.append(fault.kind)
            if wrong or event or oracle.waits:
                del live[i]

    runner = prepare(engine, machine.weights, machine.layout, torch.stack(cards), loops=loops, fall_back=True,
                     cache=machine.engine_cache)
    runner.run(loops, Controls(watch=look))
    return found


MEMORY = 64
AHEAD = """
        la   s0, one
        lw   t0, new
        sw   t0, 0(s0)      # to the next instruction
one:    addi a0, zero, 99   # becomes addi a0, zero, 7
        li   t1, 0x12
        sb   t1, 15(s0)     # to a byte of the next
two:    addi a1, zero, 0x345  # becomes addi a1, zero, 0x125
        nop
        li   t1, 0x0130
        sh   t1, 34(s0)     # to the upper half of the next but one
        nop
three:  addi a2, zero, 0    # becomes addi a2, zero, 0x13
        lw   a3, 0(s0)
        li   a0, 5
        li   a7, 93
        ecall
new:    .word 0x00700513
"""
ECHO = """
again:  li   a0, 0
        addi a1, sp, -32
        li   a2, 20
        li   a7, 63
        ecall               # the word for a7 is pending when the call is served, and a0 when it is read
        mv   a2, a0
        beqz a2, done
        li   a7, 64
        li   a0, 1
        ecall
        j    again
done:   li   a7, 93
        li   a0, 42
        ecall
"""


@pytest.fixture(scope="module")
def machine() -> RiscvMachine:
    return RiscvMachine(memory=MEMORY, design="two-layer")


def test_random_programs(machine: RiscvMachine) -> None:
    """Self-modifying programs with all instructions and faults, after every loop, many side by side."""
    found = compare(machine, [random_program(machine, seed) for seed in range(20)], 20, "scratchpad")
    assert found.wrong == []
    assert found.steps > 280
    assert found.stalls == 1
    assert {*found.faults} >= {"illegal instruction", "load out of range", "misaligned fetch"}


def test_random_programs_by_the_equation(machine: RiscvMachine) -> None:
    found = compare(machine, [random_program(machine, seed) for seed in (3, 4)], 6)
    assert found.wrong == []
    assert found.steps == 10


@pytest.mark.soak
@pytest.mark.parametrize(("memory", "base", "engine"), [
    (64, 0, "dense"), (64, 0x80000000, "scratchpad"), (100, 0x7FFF8F00, "scratchpad"), (300, 0xFFFFFB50, "scratchpad")])
def test_many_random_programs(memory: int, base: int, engine: str) -> None:
    machine = RiscvMachine(memory=memory, base=base, design="two-layer")
    for seed in range(0, 40 if engine == "dense" else 200, 40):
        programs = [random_program(machine, seed + i) for i in range(40)]
        assert compare(machine, programs, 40 if engine == "dense" else 100, engine, seed).wrong == []


def test_a_store_to_the_next_instruction_costs_a_loop(machine: RiscvMachine) -> None:
    program = assemble(AHEAD, "ahead.s")
    plain = RiscvInterpreter(program, MEMORY)
    plain.run()
    assert [plain.registers[i] for i in (10, 11, 12, 13)] == [5, 0x125, 0x13, 0x00700513]
    report = punchcard.run(program, machine=machine, engine="scratchpad", check=True)
    assert report.agrees
    assert report.result.status == 5
    assert report.result.state == plain.state
    assert report.result.steps == plain.steps + 2


def test_an_interpreter_that_does_not_lag_falls_out_of_step(machine: RiscvMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LaggingInterpreter, "stalls", property(lambda self: False, lambda self, value: None))
    report = punchcard.run(assemble(AHEAD, "ahead.s"), machine=machine, engine="scratchpad", check=True)
    assert not report.agrees


@pytest.mark.parametrize("stored", [0, encode("ebreak"), encode("ecall")])
def test_what_is_stored_may_end_the_run(machine: RiscvMachine, stored: int) -> None:
    """An instruction that is refused, or a call, is met as stored, a loop later."""
    program = assemble(f"""
        la s0, next
        li a7, 93
        lw t0, new
        sw t0, 0(s0)
next:   nop
new:    .word {stored}
""", "end.s")
    report = punchcard.run(program, machine=machine, engine="scratchpad", check=True, max_steps=20)
    assert report.agrees
    assert report.result.steps == 7
    kinds = {0: "illegal instruction", encode("ebreak"): "breakpoint"}
    fault: Any = report.result.fault
    assert (fault.kind if fault else None) == kinds.get(stored)


def test_the_host_sees_what_is_pending(machine: RiscvMachine) -> None:
    report = punchcard.run(assemble(ECHO, "echo.s"), machine=machine, engine="scratchpad", check=True, input=b"lag\nging")
    assert report.agrees
    assert report.result.output == b"lag\nging"
    assert report.result.status == 42


def test_a_run_goes_on_from_a_mark(machine: RiscvMachine, tmp_path: Path) -> None:
    """Its last instruction has stored to the next."""
    program, kept = assemble(AHEAD, "ahead.s"), tmp_path / "half.safetensors"
    punchcard.run(program, machine=machine, engine="scratchpad", max_steps=5, checkpoint=kept)
    report = punchcard.resume(kept, machine, engine="scratchpad", check=True, max_steps=100)
    assert report.result.status == 5


def test_a_pending_word_counts_as_stored(machine: RiscvMachine) -> None:
    program = program_of([encode("addi", rd=10, immediate=-5), encode("jal")])
    card = machine.model(machine.model(machine.punch(program)))
    column = machine.layout.region("registers").start + 10
    assert machine.layout.number_at(card, "memory", column) == 0
    assert pending_word(machine.layout, card) == (column, 0xFFFFFFFB)
    assert machine.readout(program, card).values["a0"] == -5
    before = machine.read(card)
    settle(machine.layout, card)
    assert machine.layout.number_at(card, "memory", column) == 0xFFFFFFFB
    assert pending_word(machine.layout, card) is None
    assert machine.read(card) == before


def test_sizes(machine: RiscvMachine) -> None:
    facts = machine.summary()
    assert (facts["layers"], facts["heads"], facts["dtype"]) == (2, [2, 2], "float64")
    with pytest.raises(SizeError, match="design 'two-layer' with multiply=True"):
        RiscvTwoLayer().layout(RiscvSizes(64, multiply=True))


def test_compiled_code_keeps_step(machine: RiscvMachine) -> None:
    """Stores to the next instruction, loads right after stores and pending operands, on the lowered engine."""
    follow(machine, assemble("""
        la s0, one
        lw t0, new
        sw t0, 0(s0)
one:    addi a0, zero, 99
        sw a0, 4(s0)
        lw a1, 4(s0)
        addi a1, a1, 1
new:    .word 0x00700513
""", "short.s"), 11, "lowered")
