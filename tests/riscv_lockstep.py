"""Random RISC-V programs as one batch of cards beside the interpreter: registers, words, program counter and events."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from punchcard.engines import Controls, prepare
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.oracle import LaggingInterpreter, RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram
from tests.riscv_cases import program_of, random_registers, random_words


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
